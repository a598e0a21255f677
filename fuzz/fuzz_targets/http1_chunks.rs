//! Fuzzes one check: `cargo xtask fuzz http1_chunks`. What must hold is said in `checks/http1_chunks.rs`.
#![no_main]

#[path = "../checks/http1_chunks.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
