//! Fuzzes one check: `cargo xtask fuzz json_head`. What must hold is said in `checks/json_head.rs`.
#![no_main]

#[path = "../checks/json_head.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
