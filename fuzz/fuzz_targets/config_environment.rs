//! Fuzzes one check: `cargo xtask fuzz config_environment`. What must hold is said in `checks/config_environment.rs`.
#![no_main]

#[path = "../checks/config_environment.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
