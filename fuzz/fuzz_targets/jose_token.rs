//! Fuzzes one check: `cargo xtask fuzz jose_token`. What must hold is said in `checks/jose_token.rs`.
#![no_main]

#[path = "../checks/jose_token.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
