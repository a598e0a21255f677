//! Policy from outside, in whole: against naive models, and in simulated fleets.
//!
//! Not here: one rule at a time (`tests.rs` beside the code).

mod exchanges;
mod fixture;
mod fuzz_corpus;
mod model;
mod sim;
