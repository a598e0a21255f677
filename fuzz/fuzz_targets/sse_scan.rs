//! Fuzzes one check: `cargo xtask fuzz sse_scan`. What must hold is said in `checks/sse_scan.rs`.
#![no_main]

#[path = "../checks/sse_scan.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
