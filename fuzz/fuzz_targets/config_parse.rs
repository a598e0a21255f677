//! Fuzzes one check: `cargo fuzz run config_parse`. The promises themselves are in `checks/config_parse.rs`.
#![no_main]

#[path = "../checks/config_parse.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
