//! Known coefficients, and intervals as wide as theory has them.

use super::*;

const SEED: u64 = 29;

#[test]
fn gamma_gaps_have_their_coefficient_and_its_sampling_error() {
    println!("seed {SEED}");
    let mut rng = Rng::new(SEED);
    let values: Vec<f64> = (0..20_000).map(|_| rng.gamma(4.0 / 9.0, 2.25)).collect();
    let seen = variation(&values, SEED).unwrap();
    // The reference notes give 0.013 at this number.
    assert!((seen.cv - 1.5).abs() < 0.05, "{seen:?}");
    assert!((seen.cv_error - 0.013).abs() < 0.004, "{seen:?}");
    assert!(
        seen.cv_interval[0] < 1.5 && 1.5 < seen.cv_interval[1],
        "{seen:?}"
    );
    assert!((seen.mean - 1.0).abs() < 0.05);
}

#[test]
fn equal_gaps_do_not_vary_and_few_have_no_answer() {
    let seen = variation(&[2.0; 500], SEED).unwrap();
    assert_eq!((seen.mean, seen.cv, seen.cv_error), (2.0, 0.0, 0.0));
    assert_eq!(variation(&[1.0; 199], SEED), None);
    assert_eq!(variation(&[0.0; 500], SEED), None);
}

#[test]
fn a_quantile_lies_between_its_neighbours() {
    assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.5), Some(2.0));
    assert_eq!(quantile(&[1.0, 2.0, 4.0], 0.75), Some(3.0));
    assert_eq!(quantile(&[], 0.5), None);
}
