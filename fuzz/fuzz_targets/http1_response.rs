//! Fuzzes one check: `cargo xtask fuzz http1_response`. What must hold is said in `checks/http1_response.rs`.
#![no_main]

#[path = "../checks/http1_response.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
