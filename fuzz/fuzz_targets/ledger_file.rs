//! Fuzzes one check: `cargo xtask fuzz ledger_file`. What must hold is said in `checks/ledger_file.rs`.
#![no_main]

#[path = "../checks/ledger_file.rs"]
mod check;
#[path = "../../crates/ledger/tests/ledger/rows.rs"]
#[expect(dead_code, reason = "the check needs a part of what the tests share")]
mod rows;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check::fuzz_one(input));
