//! Steps on the clock, by the millisecond.

use super::*;
use crate::cost::{DecodeCost, PrefillCost};
use crate::kv::{Chain, KvConfig};

/// Reading takes 10 ms and generating 1 ms, whatever runs.
fn engine(async_scheduling: bool) -> VirtualEngine {
    let config = SchedulerConfig {
        max_num_seqs: 4,
        max_num_batched_tokens: 64,
        max_model_len: 256,
        reserve_full_prompt: true,
        async_scheduling,
        kv: KvConfig {
            block_size: 16,
            blocks: 64,
            prefix_caching: false,
            sliding_window: None,
        },
    };
    let cost = StepCost {
        experts: None,
        overhead_ms: 0.0,
        prefill: PrefillCost {
            base_ms: 10.0,
            ..PrefillCost::default()
        },
        decode: DecodeCost::Line {
            base_ms: 1.0,
            per_sequence_us: 0.0,
            per_context_token_ns: 0.0,
        },
    };
    VirtualEngine::new(config, cost)
}

fn request(id: u64, output_tokens: u32) -> Request {
    Request {
        id: RequestId(id),
        prompt_tokens: 20,
        output_tokens,
        chain: Chain::unshared(id),
    }
}

/// `(ms, request, index)` of every token.
fn tokens(engine: &mut VirtualEngine) -> Vec<(u128, u64, u32)> {
    let mut out = Vec::new();
    while let Some(iteration) = engine.iterate(Duration::MAX).expect("all fit") {
        out.extend(
            iteration
                .emitted
                .iter()
                .map(|t| (iteration.at.as_millis(), t.id.0, t.index)),
        );
    }
    out
}

#[test]
fn a_request_alone_takes_its_steps() {
    let mut engine = engine(true);
    engine.post(Duration::from_millis(5), request(1, 3));
    assert_eq!(tokens(&mut engine), [(15, 1, 0), (16, 1, 1), (17, 1, 2)]);
}

#[test]
fn what_arrives_during_a_step_waits_for_one_or_two_of_them() {
    let second = |async_scheduling| {
        let mut engine = engine(async_scheduling);
        engine.post(Duration::ZERO, request(1, 5));
        engine.post(Duration::from_millis(1), request(2, 1));
        let all = tokens(&mut engine);
        all.into_iter()
            .find(|&(_, id, _)| id == 2)
            .expect("it runs")
            .0
    };
    // Seen at 10; a prompt beside a decode shares the pass over the weights.
    assert_eq!(second(false), 20);
    assert_eq!(second(true), 21, "one decode step was scheduled already");
}

#[test]
fn nothing_happens_after_the_limit() {
    let mut engine = engine(true);
    engine.post(Duration::from_millis(50), request(1, 3));
    assert!(engine.iterate(Duration::from_millis(49)).unwrap().is_none());
    assert!(engine.iterate(Duration::from_millis(59)).unwrap().is_none());
    assert!(engine.iterate(Duration::from_millis(60)).unwrap().is_some());
}

#[test]
fn a_request_that_never_fits_is_named() {
    let mut engine = engine(true);
    engine.post(Duration::ZERO, request(9, 1000));
    let (id, _) = engine.iterate(Duration::MAX).unwrap_err();
    assert_eq!(id, RequestId(9));
}
