//! Fuzzes one check: `cargo xtask fuzz usage_stream`. What must hold is said in `checks/usage_stream.rs`.
#![no_main]

#[path = "../checks/usage_stream.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
