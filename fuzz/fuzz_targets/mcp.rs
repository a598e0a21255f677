//! Fuzzes one check: `cargo xtask fuzz mcp`. What must hold is said in `checks/mcp.rs`.
#![no_main]

#[path = "../checks/mcp.rs"]
mod check;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
