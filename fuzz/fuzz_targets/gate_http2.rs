//! Fuzzes one check: `cargo xtask fuzz gate_http2`. What must hold is said in `checks/gate_http2.rs`.
#![no_main]

#[path = "../checks/gate_http2.rs"]
mod check;
#[path = "../checks/gate.rs"]
mod gate;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
