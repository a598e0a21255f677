//! The ledger from outside: what it survives, and a fleet's table in a real Postgres.
//!
//! Not here: one rule at a time (`tests.rs` beside the code).

mod durability;
mod postgres;
mod rows;
