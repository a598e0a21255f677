//! Fuzzes one check: `cargo xtask fuzz usage_unary`. What must hold is said in `checks/usage_unary.rs`.
#![no_main]

#[path = "../checks/usage_unary.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
