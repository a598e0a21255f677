//! Fuzzes one check: `cargo xtask fuzz translate`. What must hold is said in `checks/translate.rs`.
#![no_main]

#[path = "../checks/translate.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
