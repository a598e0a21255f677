//! Fuzzes one check: `cargo xtask fuzz http1_request`. What must hold is said in `checks/http1_request.rs`.
#![no_main]

#[path = "../checks/http1_request.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
