//! Known distances, probabilities that are uniform under one law, and laws that differ.

use super::*;
use crate::statistics::kolmogorov_smirnov;

const SEED: u64 = 23;

fn drawn(rng: &mut Rng, count: usize, mean: f64) -> Vec<f64> {
    (0..count).map(|_| rng.exponential(mean)).collect()
}

/// Sessions of values that hang together: each has a level of its own.
fn sessions(rng: &mut Rng, count: usize, mean: f64) -> Vec<Vec<f64>> {
    let session = |_| {
        let level = rng.exponential(mean);
        (0..8).map(|_| level + rng.exponential(0.01)).collect()
    };
    (0..count).map(session).collect()
}

#[test]
fn a_distance_is_that_of_the_steps() {
    let fit = |one: &[f64], other: &[f64]| two_samples(one, other).map(|fit| fit.statistic);
    assert_eq!(fit(&[1.0, 2.0, 3.0], &[3.0, 1.0, 2.0]), Some(0.0));
    assert_eq!(fit(&[1.0, 1.0, 2.0], &[1.0, 2.0, 2.0]), Some(1.0 / 3.0));
    assert_eq!(fit(&[1.0, 2.0], &[3.0]), Some(1.0));
    assert_eq!(fit(&[0.5, 2.0], &[1.0]), Some(0.5));
    assert_eq!(fit(&[], &[1.0]), None);
    // Smirnov's table for large samples: 1.3581 at 5 %.
    let p = ks_p(1.3581 / 1e3, 2e6 * 2e6 / 4e6);
    assert!((p / 0.05 - 1.0).abs() < 0.03, "{p}");
}

#[test]
fn probabilities_of_one_law_are_uniform_and_another_law_is_found() {
    println!("seed {SEED}");
    let mut rng = Rng::new(SEED);
    let of_one = |rng: &mut Rng| {
        two_samples(&drawn(rng, 300, 1.0), &drawn(rng, 200, 1.0)).map_or(0.0, |fit| fit.p)
    };
    let mut ps: Vec<f64> = (0..400).map(|_| of_one(&mut rng)).collect();
    ps.sort_by(f64::total_cmp);
    let fit = kolmogorov_smirnov(&ps).expect("values");
    assert!(fit.p > 0.001, "{fit:?}");
    let fit = two_samples(&drawn(&mut rng, 800, 1.0), &drawn(&mut rng, 800, 1.4));
    assert!(fit.expect("values").p < 1e-4, "{fit:?}");
}

#[test]
fn what_hangs_together_in_sessions_is_judged_by_sessions() {
    println!("seed {SEED}");
    let mut rng = Rng::new(SEED);
    let (mut by_sessions, mut by_values) = (0, 0);
    let trials = 200;
    for _ in 0..trials {
        let (one, other) = (sessions(&mut rng, 30, 1.0), sessions(&mut rng, 30, 1.0));
        let flat = |all: &[Vec<f64>]| all.concat();
        let values = two_samples(&flat(&one), &flat(&other)).expect("values");
        by_values += i32::from(values.p < 0.05);
        let pairs: Vec<_> = one.into_iter().zip(other).collect();
        let fit = by_pair(&pairs, 99, &mut rng).expect("values");
        by_sessions += i32::from(fit.p <= 0.05);
    }
    // Five in a hundred, within four standard deviations; what takes values for independent refuses far more.
    assert!((2..=22).contains(&by_sessions), "{by_sessions}");
    assert!(by_values > 80, "{by_values}");
}

#[test]
fn sessions_of_another_law_are_found_by_pairs_and_the_same_are_not() {
    println!("seed {SEED}");
    let mut rng = Rng::new(SEED);
    let one = sessions(&mut rng, 200, 1.0);
    let same: Vec<_> = one.iter().cloned().zip(one.iter().cloned()).collect();
    let fit = by_pair(&same, 199, &mut rng).expect("values");
    assert_eq!((fit.statistic, fit.p), (0.0, 1.0));
    let slower = one
        .iter()
        .map(|session| session.iter().map(|value| value * 1.5).collect());
    let pairs: Vec<_> = one.iter().cloned().zip(slower).collect();
    let fit = by_pair(&pairs, 199, &mut rng).expect("values");
    assert!(fit.p < 0.01, "{fit:?}");
    assert_eq!(by_pair(&[], 9, &mut rng), None);
}
