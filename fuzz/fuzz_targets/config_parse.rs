//! Fuzzes one check: `cargo xtask fuzz config_parse`. What must hold is said in `checks/config_parse.rs`.
#![no_main]

#[path = "../checks/config_parse.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
