//! Fuzzes one check: `cargo xtask fuzz realtime`. What must hold is said in `checks/realtime.rs`.
#![no_main]

#[path = "../checks/realtime.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
