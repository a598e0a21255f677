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

/// Engines in parallel, like that one.
fn engines(data: u32, lockstep: bool) -> VirtualEngine {
    let one = engine(false);
    let config = *one.groups[0].config();
    VirtualEngine::parallel(config, one.cost, Parallelism { data, lockstep })
}

/// Which rank got each request, by number.
fn ranks(engine: &mut VirtualEngine) -> Vec<usize> {
    let mut ranks = Vec::new();
    while let Some(iteration) = engine.iterate(Duration::MAX).expect("all fit") {
        for admitted in &iteration.admitted {
            ranks.push((admitted.id.0, admitted.rank));
        }
    }
    ranks.sort_unstable();
    ranks.into_iter().map(|(_, rank)| rank).collect()
}

#[test]
fn a_request_goes_where_least_wait_and_run_as_last_heard() {
    let mut engines = engines(3, false);
    // All at once: each counts as waiting where it went, so they go around.
    for id in 0..6 {
        engines.post(Duration::ZERO, request(id, 200));
    }
    // Heard at 100 ms: two run in each. The next goes to the first of them, and counts there as four that run.
    for id in 6..9 {
        engines.post(Duration::from_millis(101), request(id, 1));
    }
    assert_eq!(ranks(&mut engines), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
    let mut engines = self::engines(2, false);
    engines.post(Duration::ZERO, request(0, 200));
    engines.post(Duration::ZERO, request(1, 1));
    // Before anything was heard, one waits in each. At 150 ms one still runs in the first, none in the second.
    engines.post(Duration::from_millis(50), request(2, 1));
    engines.post(Duration::from_millis(150), request(3, 1));
    assert_eq!(ranks(&mut engines), [0, 1, 0, 1]);
}

#[test]
fn ranks_in_lockstep_wait_for_the_slowest_and_alone_they_do_not() {
    for (lockstep, apart) in [(false, 1), (true, 10)] {
        let mut engines = engines(2, lockstep);
        engines.post(Duration::ZERO, request(0, 40));
        engines.post(Duration::from_millis(15), request(1, 1));
        let mut of_first = Vec::new();
        while let Some(iteration) = engines.iterate(Duration::MAX).expect("all fit") {
            let tokens = iteration.emitted.iter().filter(|token| token.id.0 == 0);
            of_first.extend(tokens.map(|_| iteration.at.as_millis()));
        }
        let longest = of_first.windows(2).map(|pair| pair[1] - pair[0]).max();
        // While the second reads its prompt of 10 ms.
        assert_eq!(longest, Some(apart), "lockstep: {lockstep}");
    }
}

#[test]
fn a_request_is_queued_between_steps_and_an_aborted_one_leaves_its_rank() {
    let mut engines = engines(2, false);
    for id in 0..4 {
        engines.post(Duration::from_millis(3 * id), request(id, 30));
    }
    let mut queued = Vec::new();
    while let Some(iteration) = engines.iterate(Duration::from_millis(30)).expect("all fit") {
        for admitted in &iteration.admitted {
            queued.push((
                admitted.id.0,
                admitted.queued.as_millis(),
                admitted.scheduled.as_millis(),
            ));
        }
    }
    // The first two find idle engines; the others come while those read for 10 ms.
    assert_eq!(queued, [(0, 0, 0), (1, 3, 3), (2, 10, 10), (3, 13, 13)]);
    for id in 0..4 {
        assert!(engines.abort(RequestId(id)), "{id}");
        assert!(!engines.abort(RequestId(id)), "{id} again");
    }
    assert_eq!(
        (engines.stats().running, engines.stats().kv_blocks_used),
        (0, 0)
    );
    engines.post(Duration::from_secs(9), request(9, 1));
    assert!(engines.abort(RequestId(9)), "before it arrives");
    assert_eq!(ranks(&mut engines), Vec::<usize>::new());
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
