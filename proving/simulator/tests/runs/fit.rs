//! Fits of a made-up run.

use std::time::Duration;

use experiment::random::Rng;
use simulator::cost::{DecodeCost, PrefillCost, StepCost};
use simulator::fit::{FARTHEST, Fitted, fit};
use simulator::kv::KvConfig;
use simulator::replay::{BlockSource, Blocks, Setup, replay};
use simulator::scheduler::SchedulerConfig;
use simulator::score::{Score, Share};
use simulator::trace::{Meta, Recorded, Times, Trace};
use simulator::virtual_time::Parallelism;

const SEED: u64 = 11;

/// Costs that no fit knows.
fn hidden() -> StepCost {
    StepCost {
        overhead_ms: 0.0,
        prefill: PrefillCost {
            base_ms: 16.0,
            per_token_us: 60.0,
            per_pair_ns: 4.0,
        },
        decode: DecodeCost::Line {
            base_ms: 12.0,
            per_sequence_us: 150.0,
            per_context_token_ns: 60.0,
        },
        experts: None,
    }
}

/// What a made-up recording is like.
#[derive(Clone, Copy)]
pub(crate) struct MadeUp {
    pub(crate) requests: u64,
    /// Every duration is off by up to this share.
    pub(crate) noise: f64,
    pub(crate) parallelism: Parallelism,
    /// KV blocks of each engine.
    pub(crate) blocks: u32,
    /// Mean seconds between arrivals.
    pub(crate) gap: f64,
}

impl Default for MadeUp {
    fn default() -> Self {
        Self {
            requests: 60,
            noise: 0.0,
            parallelism: Parallelism::default(),
            blocks: 600,
            gap: 0.12,
        }
    }
}

/// A recording that nobody made: a run of the simulator itself, on costs that the fit does not know.
pub(crate) fn made_up(like: MadeUp) -> (Trace, Setup, StepCost) {
    println!("seed {SEED}");
    let mut rng = Rng::new(SEED);
    let setup = Setup {
        scheduler: SchedulerConfig {
            max_num_seqs: 32,
            max_num_batched_tokens: 1024,
            max_model_len: 4096,
            reserve_full_prompt: true,
            async_scheduling: true,
            kv: KvConfig {
                block_size: 16,
                blocks: like.blocks,
                prefix_caching: true,
                sliding_window: None,
            },
        },
        parallelism: like.parallelism,
        blocks: Blocks {
            count: like.blocks,
            source: BlockSource::Recorded,
        },
    };
    let mut at = 0.0;
    let recorded = (0..like.requests).map(|i| {
        at += rng.exponential(like.gap);
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
    let scheduler = setup.scheduler;
    let mut trace = Trace {
        meta: Meta {
            model: "made-up".to_owned(),
            max_num_seqs: Some(scheduler.max_num_seqs),
            max_num_batched_tokens: Some(scheduler.max_num_batched_tokens),
            max_model_len: Some(scheduler.max_model_len),
            data_parallel: Some(like.parallelism.data),
            shares_experts: like.parallelism.lockstep,
            blocks: Some(like.blocks),
            block_size: Some(scheduler.kv.block_size),
            ..Meta::default()
        },
        requests: recorded.collect(),
        timeseries: Vec::new(),
    };
    let cost = hidden();
    let run = replay(&trace, &setup, cost.clone(), |_| {}).expect("all fit");
    for (recorded, times) in trace.requests.iter_mut().zip(run.requests) {
        let mut off = |time: Duration| time.mul_f64(1.0 + like.noise * (2.0 * rng.unit() - 1.0));
        let scheduled = times.queued + off(times.scheduled - times.queued);
        let first = scheduled + off(times.first - times.scheduled);
        let last = first + off(times.last - times.first);
        recorded.times = Times {
            scheduled,
            first,
            last,
            ..times
        };
    }
    trace.timeseries = run.timeseries;
    (trace, setup, cost)
}

fn half(text: &str) -> Share {
    text.parse().expect("a share")
}

/// Step times that these costs give for the kinds of steps that the made-up runs have, milliseconds.
fn step_times(cost: &StepCost) -> [f64; 4] {
    let load = |prefill_tokens: u64, decodes: u32| simulator::scheduler::Load {
        prefills: u32::from(prefill_tokens > 0),
        prefill_tokens,
        prefill_pairs: prefill_tokens * prefill_tokens / 2,
        decodes,
        decode_context: u64::from(decodes) * 600,
        routed: prefill_tokens + u64::from(decodes),
    };
    [load(0, 4), load(0, 12), load(400, 8), load(900, 10)]
        .map(|load| cost.of(&load).as_secs_f64() * 1e3)
}

fn assert_found_again(fitted: &Fitted, cost: &StepCost, within: f64) {
    let (found, hidden) = (step_times(&fitted.cost), step_times(cost));
    for (found, hidden) in found.into_iter().zip(hidden) {
        let off = found / hidden - 1.0;
        assert!(
            off.abs() < within,
            "a step of {hidden:.2} ms was found as {found:.2} ms"
        );
    }
}

fn assert_blocks_found(fitted: &Fitted, made: &Setup) {
    let (found, hidden) = (fitted.setup.blocks, made.blocks.count);
    let off = f64::from(found.count) / f64::from(hidden) - 1.0;
    assert!(off.abs() < 0.05, "{} blocks for {hidden}", found.count);
    assert_eq!(found.source, BlockSource::Fitted);
}

#[test]
fn costs_fitted_to_one_half_of_a_noisy_run_predict_the_other() {
    let (trace, setup, _) = made_up(MadeUp {
        requests: 120,
        noise: 0.05,
        ..MadeUp::default()
    });
    let fitted = fit(&trace, &setup, half("0..0.5"), &mut |_| {}).unwrap();
    let replayed = replay(&trace, &setup, fitted.cost, |_| {}).unwrap();
    let score = Score::of(&trace, &replayed, half("0.5..1")).unwrap();
    for ((measure, compared), most) in score.measures().into_iter().zip([0.1, 0.05, 0.05]) {
        let (_, error) = compared.errors()[0];
        assert!(error.abs() < most, "mean {measure} is off by {error}");
    }
}

#[test]
fn blocks_that_nobody_reported_are_found_with_the_costs() {
    let (mut trace, made, cost) = made_up(MadeUp {
        requests: 100,
        ..MadeUp::default()
    });
    trace.meta.blocks = None;
    // Nothing but requests tells of them. Where there is a series beside them, they are found below (engines in parallel).
    trace.timeseries.clear();
    let setup = Setup::of(&trace, None, None);
    let fitted = fit(&trace, &setup, half("0..0.5"), &mut |_| {}).unwrap();
    assert_blocks_found(&fitted, &made);
    assert_eq!(fitted.unsure_blocks, None);
    // A full cache makes chaos of small differences, so that costs are found less exactly than blocks.
    assert_found_again(&fitted, &cost, 0.08);
}

#[test]
fn blocks_that_were_never_short_stay_ample() {
    let (mut trace, _, cost) = made_up(MadeUp {
        requests: 30,
        blocks: 20_000,
        gap: 0.5,
        ..MadeUp::default()
    });
    trace.meta.blocks = None;
    let fitted = fit(
        &trace,
        &Setup::of(&trace, None, None),
        half("0..0.5"),
        &mut |_| {},
    )
    .unwrap();
    assert_eq!(fitted.setup.blocks.source, BlockSource::Ample);
    assert_found_again(&fitted, &cost, 0.05);
}

#[test]
fn engines_in_parallel_are_found_again_alone_and_in_lockstep() {
    for (lockstep, gap, reported) in [(false, 0.06, false), (true, 0.1, true)] {
        let parallelism = Parallelism { data: 2, lockstep };
        let like = MadeUp {
            requests: 100,
            parallelism,
            gap,
            ..MadeUp::default()
        };
        let (mut trace, made, cost) = made_up(like);
        if !reported {
            trace.meta.blocks = None;
        }
        let setup = Setup::of(&trace, None, None);
        assert_eq!(setup.parallelism, parallelism);
        let fitted = fit(&trace, &setup, half("0..0.5"), &mut |_| {}).unwrap();
        if !reported {
            assert_blocks_found(&fitted, &made);
        }
        assert_found_again(&fitted, &cost, 0.05);
    }
}

#[test]
fn an_engine_that_is_not_the_recorded_one_is_far_and_so_is_one_constant_step() {
    let parallelism = Parallelism {
        data: 4,
        lockstep: false,
    };
    let like = MadeUp {
        parallelism,
        gap: 0.03,
        ..MadeUp::default()
    };
    let (trace, mut setup, _) = made_up(like);
    let right = fit(&trace, &setup, half("0..0.5"), &mut |_| {}).unwrap();
    assert!(right.distance.worst() < 0.05, "{:?}", right.distance);
    assert!(right.null_distance.total > 2.0 * right.distance.total);
    setup.parallelism = Parallelism::default();
    let wrong = fit(&trace, &setup, half("0..0.5"), &mut |_| {}).unwrap();
    assert!(wrong.distance.worst() > FARTHEST, "{:?}", wrong.distance);
}

#[test]
fn a_recording_in_which_nothing_takes_time_is_fitted_by_nothing() {
    let (mut trace, setup, _) = made_up(MadeUp::default());
    for recorded in &mut trace.requests {
        let at = recorded.times.arrival;
        recorded.times = Times {
            arrival: at,
            queued: at,
            scheduled: at,
            first: at,
            last: at,
        };
    }
    let fitted = fit(&trace, &setup, half("0..0.5"), &mut |_| {}).unwrap();
    assert!(fitted.distance.worst() > FARTHEST, "{:?}", fitted.distance);
}

/// A recording as files, the engine's clock so many seconds after the wall clock, and what the front end took of each
/// request before it was queued.
fn files(trace: &Trace, model: &str, before_queue_s: &[f64]) -> (String, String) {
    let meta = format!(
        r#"{{"model": "{model}", "engine_kwargs": {{"max_num_seqs": 32, "max_num_batched_tokens": 1024, "max_model_len": 4096}}}}"#
    );
    let line = |(i, r): (usize, &Recorded)| {
        let t = r.times;
        let [queued, scheduled, first, last] = [t.queued, t.scheduled, t.first, t.last]
            .map(|at| 7_000.0 + at.as_secs_f64() + before_queue_s[i]);
        format!(
            r#"{{"request_id": "{}", "input_toks": {}, "output_toks": {}, "arrival_time": {:.6}, "queued_ts": {queued:.6}, "scheduled_ts": {scheduled:.6}, "first_token_ts": {first:.6}, "last_token_ts": {last:.6}}}"#,
            r.id,
            r.prompt_tokens,
            r.output_tokens,
            1.75e9 + t.arrival.as_secs_f64(),
        )
    };
    let lines: Vec<String> = trace.requests.iter().enumerate().map(line).collect();
    (meta, lines.join("\n"))
}

#[test]
fn stamps_outside_the_share_change_nothing_in_what_is_fitted() {
    let like = MadeUp {
        requests: 40,
        noise: 0.05,
        ..MadeUp::default()
    };
    let (mut trace, _, _) = made_up(like);
    // Of a known model there is a prior, and of an unknown one none.
    for model in ["made-up", "meta-llama/Llama-3.1-8B"] {
        // What the front end takes is least for a request outside the share: the clocks must not be aligned by it.
        let mut before_queue_s = vec![0.004; trace.requests.len()];
        let found = |trace: &Trace, before_queue_s: &[f64]| {
            let (meta, requests) = files(trace, model, before_queue_s);
            let trace = Trace::parse(&meta, &requests, None).unwrap();
            let setup = Setup::of(&trace, None, None);
            let fitted = fit(&trace, &setup, half("0..0.5"), &mut |_| {}).unwrap();
            format!("{fitted:?}")
        };
        let untouched = found(&trace, &before_queue_s);
        let n = trace.requests.len();
        before_queue_s[n * 3 / 4] = 0.001;
        assert_eq!(found(&trace, &before_queue_s), untouched, "{model}: a gap");
        let mut rng = Rng::new(SEED);
        for recorded in &mut trace.requests[n / 2..] {
            let mut at = recorded.times.arrival;
            let times = &mut recorded.times;
            for time in [
                &mut times.queued,
                &mut times.scheduled,
                &mut times.first,
                &mut times.last,
            ] {
                at += Duration::from_secs_f64(rng.exponential(1.0));
                *time = at;
            }
        }
        assert_eq!(found(&trace, &before_queue_s), untouched, "{model}: stamps");
    }
}

#[test]
fn clocks_are_aligned_by_the_share_alone() {
    let (trace, ..) = made_up(MadeUp::default());
    let mut before_queue_s = vec![0.5; 60];
    before_queue_s[50] = 0.1;
    let (meta, requests) = files(&trace, "made-up", &before_queue_s);
    let parsed = Trace::parse(&meta, &requests, None).unwrap();
    let apart = |trace: &Trace| {
        let times = trace.requests[0].times;
        (times.queued - times.arrival).as_secs_f64()
    };
    assert!(apart(&parsed) > 0.3, "by all requests");
    assert!(apart(&parsed.aligned(0..30)) < 1e-5, "by the share");
}
