//! Random tests that can be had again: each prints its seed first.

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

/// So many cases, or as many as `PROPTEST_CASES` says, from the seed of this name.
pub(crate) fn seeded(name: &str, cases: u32) -> ProptestConfig {
    let cases = testing::number_of("PROPTEST_CASES", cases.into());
    ProptestConfig {
        cases: u32::try_from(cases).expect("not so many"),
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(testing::seed(name)),
        ..ProptestConfig::default()
    }
}
