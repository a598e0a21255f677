//! Fuzzes one check: `cargo fuzz run json_head`. The promises themselves are in `checks/json_head.rs`.
#![no_main]

#[path = "../checks/json_head.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
