//! Fuzzes one check: `cargo xtask fuzz traceparent`. What must hold is said in `checks/traceparent.rs`.
#![no_main]

#[path = "../checks/traceparent.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
