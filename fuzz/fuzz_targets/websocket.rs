//! Fuzzes one check: `cargo xtask fuzz websocket`. What must hold is said in `checks/websocket.rs`.
#![no_main]

#[path = "../checks/websocket.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
