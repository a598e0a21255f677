//! Policy from outside, in whole: against naive models, and in simulated fleets.
//!
//! Not here: one rule at a time (`tests.rs` beside the code).

mod exchanges;
mod fixture;
mod model;
mod sim;

/// A seed nobody chose, printed so that a failure can be repeated with `POLICY_SEED=<seed>`.
#[expect(clippy::disallowed_methods, reason = "a test may be told its seed")]
pub(crate) fn fresh_seed(test: &str) -> u64 {
    use std::hash::{BuildHasher, Hasher};
    let given = std::env::var("POLICY_SEED")
        .ok()
        .and_then(|s| s.parse().ok());
    let seed = given.unwrap_or_else(|| {
        let state = std::collections::hash_map::RandomState::new();
        state.build_hasher().finish()
    });
    println!("{test}: POLICY_SEED={seed}");
    seed
}
