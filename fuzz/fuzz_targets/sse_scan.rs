//! Fuzzes one check: `cargo fuzz run sse_scan`. The promises themselves are in `checks/sse_scan.rs`.
#![no_main]

#[path = "../checks/sse_scan.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
