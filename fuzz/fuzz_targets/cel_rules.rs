//! Fuzzes one check: `cargo xtask fuzz cel_rules`. What must hold is said in `checks/cel_rules.rs`.
#![no_main]

#[path = "../checks/cel_rules.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
