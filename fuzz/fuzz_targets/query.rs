//! Fuzzes one check: `cargo xtask fuzz query`. What must hold is said in `checks/query.rs`.
#![no_main]

#[path = "../checks/query.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
