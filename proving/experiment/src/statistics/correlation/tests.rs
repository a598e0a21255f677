//! Independent, alternating and persistent series.

use super::*;
use crate::random::Rng;

const SEED: u64 = 23;

#[test]
fn independent_values_have_none() {
    println!("seed {SEED}");
    let mut rng = Rng::new(SEED);
    let values: Vec<f64> = (0..10_000).map(|_| rng.unit()).collect();
    let correlations = autocorrelation(&values).unwrap();
    assert!(farthest_lag(&correlations, values.len(), 0.0).1 > 0.01);
}

#[test]
fn a_persistent_series_has_its_own() {
    println!("seed {SEED}");
    let (mut rng, mut value) = (Rng::new(SEED), 0.0);
    let values: Vec<f64> = (0..100_000)
        .map(|_| {
            value = 0.5 * value + rng.normal();
            value
        })
        .collect();
    let correlations = autocorrelation(&values).unwrap();
    for (lag, wanted) in [(0, 0.5), (1, 0.25), (2, 0.125)] {
        assert!((correlations[lag] - wanted).abs() < 0.015);
    }
    let (farthest, p) = farthest_lag(&correlations, values.len(), 0.0);
    assert_eq!((farthest, p), (correlations[0], 0.0));
    assert_eq!(farthest_lag(&correlations, values.len(), 0.6).1, 1.0);
}

#[test]
fn too_few_or_equal_values_have_no_answer() {
    assert_eq!(autocorrelation(&[1.0; 100]), None);
    assert_eq!(autocorrelation(&[1.0, 2.0]), None);
}
