//! Fuzzes one check: `cargo xtask fuzz gate_upstream`. What must hold is said in `checks/gate_upstream.rs`.
#![no_main]

#[path = "../checks/gate_upstream.rs"]
mod check;
#[path = "../checks/gate.rs"]
mod gate;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
