//! Fuzzes one check: `cargo xtask fuzz eventstream`. What must hold is said in `checks/eventstream.rs`.
#![no_main]

#[path = "../checks/eventstream.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
