//! Fits of a made-up run.

use std::time::Duration;

use super::*;
use crate::kv::KvConfig;
use crate::score::Score;
use crate::trace::{Meta, Recorded, Times};
use experiment::random::Rng;

const SEED: u64 = 11;

/// A recording that nobody made: a run of the simulator itself, on costs that the fit does not know, with every
/// duration off by up to `noise`.
pub(crate) fn made_up(requests: u64, noise: f64) -> (Trace, SchedulerConfig, StepCost) {
    println!("seed {SEED}");
    let mut rng = Rng::new(SEED);
    let config = SchedulerConfig {
        max_num_seqs: 32,
        max_num_batched_tokens: 1024,
        max_model_len: 4096,
        reserve_full_prompt: true,
        async_scheduling: true,
        kv: KvConfig {
            block_size: 16,
            blocks: 250,
            prefix_caching: true,
            sliding_window: None,
        },
    };
    let mut at = 0.0;
    let recorded = (0..requests).map(|i| {
        at += rng.exponential(0.25);
        Recorded {
            id: format!("made-up-{i}"),
            prompt_tokens: rng.lognormal(400.0, 0.8).clamp(20.0, 2000.0) as u32,
            output_tokens: rng.lognormal(200.0, 0.5).clamp(20.0, 800.0) as u32,
            times: Times {
                arrival: Duration::from_secs_f64(at),
                ..Times::default()
            },
        }
    });
    let mut trace = Trace {
        meta: Meta {
            model: "made-up".to_owned(),
            max_num_seqs: Some(config.max_num_seqs),
            max_num_batched_tokens: Some(config.max_num_batched_tokens),
            max_model_len: Some(config.max_model_len),
            blocks: Some(config.kv.blocks),
            block_size: Some(config.kv.block_size),
            ..Meta::default()
        },
        requests: recorded.collect(),
        timeseries: Vec::new(),
    };
    let cost = cost_of(&[0.012, 0.004, 6e-5, 4e-9, 1.5e-4, 6e-8]);
    let run = replay(&trace, config, cost.clone(), |_| {}).expect("all fit");
    for (recorded, times) in trace.requests.iter_mut().zip(run.requests) {
        let mut off = |time: Duration| time.mul_f64(1.0 + noise * (2.0 * rng.unit() - 1.0));
        let first = times.arrival + off(times.first - times.arrival);
        let last = first + off(times.last - times.first);
        recorded.times = Times {
            first,
            last,
            ..times
        };
    }
    trace.timeseries = run.timeseries;
    (trace, config, cost)
}

fn half(text: &str) -> Share {
    text.parse().expect("a share")
}

#[test]
fn costs_fitted_to_one_half_of_a_noisy_run_predict_the_other() {
    let (trace, config, _) = made_up(120, 0.05);
    let fitted = fit(&trace, config, half("0..0.5")).unwrap();
    let replayed = replay(&trace, config, fitted.cost, |_| {}).unwrap();
    let score = Score::of(&trace, &replayed, half("0.5..1")).unwrap();
    for ((measure, compared), most) in score.measures().into_iter().zip([0.1, 0.05, 0.05]) {
        let (_, error) = compared.errors()[0];
        assert!(error.abs() < most, "mean {measure} is off by {error}");
    }
}

#[test]
fn times_outside_the_share_are_not_looked_at() {
    let (trace, config, _) = made_up(40, 0.05);
    let mut blind = trace.clone();
    for recorded in &mut blind.requests[20..] {
        recorded.times = Times {
            arrival: recorded.times.arrival,
            ..Times::default()
        };
    }
    let found = |trace| fit(trace, config, half("0..0.5")).unwrap().cost;
    assert_eq!(found(&trace), found(&blind));
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
    for (found, made) in solve::least_squares(&windows).into_iter().zip(line) {
        assert!(
            (found - made).abs() < 1e-3 * made.max(1e-9),
            "{found} for {made}"
        );
    }
}
