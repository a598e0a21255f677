//! Poisson, periodic and modulated streams.

use std::time::Duration;

use super::*;
use crate::arrivals::{Actor, Mmpp, Pace, Process, Scope};

const SEED: u64 = 31;

fn times(process: &Process, span_s: f64) -> Vec<f64> {
    println!("seed {SEED}");
    let actor = Actor {
        profile: 0,
        number: 0,
    };
    let mut pace = Pace::new(SEED, Scope::Profile, actor, process);
    let mut from = Duration::ZERO;
    std::iter::from_fn(|| {
        from = pace.next(from, None)?.at;
        Some(from.as_secs_f64())
    })
    .take_while(|at| *at < span_s)
    .collect()
}

#[test]
fn a_poisson_stream_has_1_at_every_scale() {
    let span = 10_000.0;
    let times = times(&Process::Exponential { mean_s: 0.1 }, span);
    for window in [1.0, 10.0, 60.0] {
        let seen = dispersion(&times, span, window, 10.0, 0.0).unwrap();
        let error = seen.error.unwrap();
        assert!((seen.index - 1.0).abs() < 4.0 * error, "{window}: {seen:?}");
        let theory = (2.0 / (span / window)).sqrt();
        assert!(
            error < 2.0 * theory && error > 0.5 * theory,
            "{window}: {seen:?}"
        );
    }
}

#[test]
fn a_modulated_stream_has_its_closed_form() {
    let mmpp = Mmpp::new(20.0, 0.5, 2.0, 10.0).unwrap();
    let span = 60_000.0;
    let times = times(&Process::Mmpp(mmpp), span);
    for window in [1.0, 10.0, 100.0] {
        let seen = dispersion(&times, span, window, mmpp.rate(), 60.0).unwrap();
        let far = (seen.index - mmpp.dispersion(window)).abs();
        assert!(far < 4.0 * seen.error.unwrap(), "{window}: {seen:?}");
    }
}

#[test]
fn a_wrong_rate_shows_and_few_windows_have_no_error() {
    let even: Vec<f64> = (0..1000).map(|i| f64::from(i) * 0.1 + 0.05).collect();
    assert!(dispersion(&even, 100.0, 1.0, 10.0, 0.0).unwrap().index < 1e-9);
    let slow = dispersion(&even, 100.0, 1.0, 20.0, 0.0).unwrap();
    assert!((slow.index - 5.0).abs() < 1e-9);
    assert_eq!(
        dispersion(&even, 100.0, 10.0, 10.0, 0.0).unwrap().error,
        None
    );
    assert_eq!(dispersion(&even, 0.5, 1.0, 10.0, 0.0), None);
}
