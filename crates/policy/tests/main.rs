//! Policy from outside, in whole: against naive models, and in simulated fleets.
//!
//! Not here: one rule at a time, where no exchange is needed to see it (`tests.rs` beside the code).

mod exchanges;
mod fixture;
mod front;
mod fuzz_corpus;
mod model;
mod sim;
mod world;
