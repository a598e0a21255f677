//! Published critical values, and what fits and what does not.

use super::*;
use crate::random::Rng;

const SEED: u64 = 17;

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

fn uniforms(seed: u64, n: usize) -> Vec<f64> {
    let mut rng = Rng::new(seed);
    sorted((0..n).map(|_| rng.unit()).collect())
}

#[test]
fn kolmogorovs_distribution_has_its_tabled_values() {
    // Critical values for large n, and for n = 100 and 20 (Miller, 1956).
    for (distance, n, p) in [
        (1.3581 / 1e3, 1e6, 0.05),
        (1.6276 / 1e3, 1e6, 0.01),
        (1.9495 / 1e3, 1e6, 0.001),
        (0.13403, 100.0, 0.05),
        (0.16081, 100.0, 0.01),
        (0.29408, 20.0, 0.05),
    ] {
        let got = ks_p(distance, n);
        assert!((got / p - 1.0).abs() < 0.03, "{distance} of {n}: {got}");
    }
    assert_eq!(ks_p(0.0, 100.0), 1.0);
    let one = kolmogorov_smirnov(&[0.3]).unwrap();
    assert!((one.statistic - 0.7).abs() < 1e-12);
    assert_eq!(kolmogorov_smirnov(&[]), None);
}

#[test]
fn andersons_distribution_has_its_tabled_values() {
    // Case 0 of D'Agostino and Stephens, 1986, table 4.2.
    for (statistic, p) in [
        (1.248, 0.25),
        (1.933, 0.10),
        (2.492, 0.05),
        (3.070, 0.025),
        (3.857, 0.01),
        (5.0, 0.0028),
    ] {
        let got = ad_p(statistic, 1e6);
        assert!((got / p - 1.0).abs() < 0.03, "{statistic}: {got}");
    }
    let (before, after) = (ad_p(TAIL - 1e-9, 1e9), ad_p(TAIL, 1e9));
    assert!((before / after - 1.0).abs() < 0.05, "{before} {after}");
    assert!(ad_p(20.0, 1e6) < 1e-9);
    // Of one value in the middle: -1 + 2 ln 2.
    let one = anderson_darling(&[0.5]).unwrap();
    assert!((one.statistic - (2.0 * 2_f64.ln() - 1.0)).abs() < 1e-12);
    assert_eq!(anderson_darling(&[]), None);
}

#[test]
fn probabilities_of_uniform_values_are_uniform() {
    println!("seeds {SEED} to {}", SEED + 399);
    for test in [kolmogorov_smirnov, anderson_darling] {
        let ps = (0..400)
            .map(|i| test(&uniforms(SEED + i, 200)).unwrap().p)
            .collect();
        assert!(kolmogorov_smirnov(&sorted(ps)).unwrap().p > 0.001);
    }
}

#[test]
fn values_that_are_not_uniform_are_found() {
    println!("seed {SEED}");
    let squared: Vec<f64> = uniforms(SEED, 2000).iter().map(|u| u.powf(1.2)).collect();
    assert!(kolmogorov_smirnov(&squared).unwrap().p < 1e-6);
    assert!(anderson_darling(&squared).unwrap().p < 1e-6);
    let all_at_0 = vec![0.0; 100];
    assert!(anderson_darling(&all_at_0).unwrap().p < 1e-12);
}
