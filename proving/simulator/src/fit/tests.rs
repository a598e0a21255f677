//! The parts of a fit: windows and regressions.

use std::time::Duration;

use experiment::random::Rng;

use super::*;
use crate::trace::{Meta, Recorded, Times};

const SEED: u64 = 11;

/// Two requests, the second long after the first.
fn two_requests() -> Trace {
    let recorded = |i: u64| Recorded {
        id: format!("made-up-{i}"),
        prompt_tokens: 300,
        output_tokens: 50,
        times: Times {
            arrival: Duration::from_secs(100 * i),
            ..Times::default()
        },
    };
    Trace {
        meta: Meta::default(),
        requests: vec![recorded(0), recorded(1)],
        timeseries: Vec::new(),
    }
}

#[test]
fn a_lone_request_after_a_pause_tells_what_its_own_steps_took() {
    let trace = two_requests();
    let setup = Setup::of(&trace, Some(600), None);
    let steps_s = |line: &Line| {
        let mut log = Log::new(None);
        let run = replay(&trace, &setup, cost_of(line), |step| log.record(step)).unwrap();
        let mut recorded = trace.clone();
        for (recorded, times) in recorded.requests.iter_mut().zip(&run.requests) {
            recorded.times = *times;
        }
        log.windows(&recorded, &run, 1..2)
            .iter()
            .map(|w| w.seconds / w.features[0])
            .collect::<Vec<f64>>()
    };
    // Nothing but a base: each window is so many steps of it.
    let steps = steps_s(&[0.02, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(steps.len(), 3);
    assert!(
        steps.iter().all(|step| (step - 0.02).abs() < 1e-6),
        "{steps:?}"
    );
}

#[test]
fn a_regression_finds_the_line_that_made_its_windows() {
    let mut rng = Rng::new(SEED);
    let line = [0.01, 0.005, 1e-4, 0.0, 2e-4, 5e-8];
    let windows: Vec<window::Window> = (0..200)
        .map(|_| {
            let size = [10.0, 3.0, 2000.0, 1e6, 300.0, 3e5];
            let features = size.map(|size| size * (0.2 + rng.unit()));
            let seconds = features
                .iter()
                .zip(line)
                .map(|(feature, cost)| feature * cost)
                .sum();
            window::Window { features, seconds }
        })
        .collect();
    for (found, made) in solve::least_squares(&windows, 0.25, None)
        .into_iter()
        .zip(line)
    {
        assert!(
            (found - made).abs() < 1e-3 * made.max(1e-9),
            "{found} for {made}"
        );
    }
}
