//! Random tests that can be had again: each prints its seed first.

use std::time::{SystemTime, UNIX_EPOCH};

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

/// So many cases from a seed of this moment, or from that in `PROPTEST_RNG_SEED`.
pub(crate) fn seeded(cases: u32) -> ProptestConfig {
    let mut config = ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.map_or(0, |now| now.as_nanos() as u64)
        }
    };
    println!("seed {seed}: PROPTEST_RNG_SEED={seed} has it again");
    config.rng_seed = RngSeed::Fixed(seed);
    config
}
