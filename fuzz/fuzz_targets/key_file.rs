//! Fuzzes one check: `cargo xtask fuzz key_file`. What must hold is said in `checks/key_file.rs`.
#![no_main]

#[path = "../checks/key_file.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
