//! Fuzzes one check: `cargo xtask fuzz request_open`. What must hold is said in `checks/request_open.rs`.
#![no_main]

#[path = "../checks/request_open.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
