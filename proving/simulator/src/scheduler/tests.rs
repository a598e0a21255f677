//! Steps by hand, and random aborts.

use super::*;
use crate::kv::{BlockHash, Chain};
use experiment::random::Rng;

fn config() -> SchedulerConfig {
    SchedulerConfig {
        max_num_seqs: 8,
        max_num_batched_tokens: 100,
        max_model_len: 1000,
        reserve_full_prompt: true,
        async_scheduling: false,
        kv: KvConfig {
            block_size: 10,
            blocks: 101,
            prefix_caching: true,
            sliding_window: None,
        },
    }
}

fn request(id: u64, prompt_tokens: u32, output_tokens: u32) -> Request {
    Request {
        id: RequestId(id),
        prompt_tokens,
        output_tokens,
        chain: Chain::unshared(id),
    }
}

/// `(id, context, tokens)` of each part, and who was preempted.
fn shape(step: &Step) -> (Vec<(u64, u32, u32)>, Vec<u64>) {
    let parts = step
        .work
        .iter()
        .map(|w| (w.id.0, w.context, w.tokens))
        .collect();
    (parts, step.preempted.iter().map(|id| id.0).collect())
}

fn run(scheduler: &mut Scheduler) -> Vec<(u64, u32, u32)> {
    let step = scheduler.step().expect("there is work");
    scheduler.complete(&step);
    scheduler.audit().expect("the invariants hold");
    shape(&step).0
}

#[test]
fn a_long_prompt_is_read_in_chunks_and_then_decodes() {
    let mut s = Scheduler::new(config());
    s.submit(request(1, 230, 3)).unwrap();
    assert_eq!(run(&mut s), [(1, 0, 100)]);
    assert_eq!(run(&mut s), [(1, 100, 100)]);
    assert_eq!(run(&mut s), [(1, 200, 30)]);
    assert_eq!(run(&mut s), [(1, 230, 1)]);
    assert_eq!(run(&mut s), [(1, 231, 1)]);
    assert_eq!(s.step(), None);
    assert_eq!(s.stats().kv_blocks_used, 0);
    assert_eq!(s.stats().totals.generation_tokens, 3);
}

#[test]
fn running_requests_come_first_and_the_queue_gets_the_rest_of_the_budget_in_order() {
    let mut s = Scheduler::new(config());
    s.submit(request(1, 60, 5)).unwrap();
    s.submit(request(2, 60, 5)).unwrap();
    s.submit(request(3, 60, 5)).unwrap();
    assert_eq!(run(&mut s), [(1, 0, 60), (2, 0, 40)]);
    assert_eq!(run(&mut s), [(1, 60, 1), (2, 40, 20), (3, 0, 60)]);
    assert_eq!(run(&mut s), [(1, 61, 1), (2, 60, 1), (3, 60, 1)]);
}

#[test]
fn the_sequence_limit_holds_the_queue_back() {
    let mut s = Scheduler::new(SchedulerConfig {
        max_num_seqs: 1,
        ..config()
    });
    s.submit(request(1, 10, 2)).unwrap();
    s.submit(request(2, 10, 2)).unwrap();
    assert_eq!(run(&mut s), [(1, 0, 10)]);
    assert_eq!(run(&mut s), [(1, 10, 1)]);
    assert_eq!(run(&mut s), [(2, 0, 10)]);
}

#[test]
fn a_prompt_that_does_not_fit_whole_waits_even_if_its_first_chunk_would() {
    let tight = |reserve_full_prompt| {
        let mut config = config();
        config.kv.blocks = 31;
        config.reserve_full_prompt = reserve_full_prompt;
        let mut s = Scheduler::new(config);
        s.submit(request(1, 50, 5)).unwrap();
        s.submit(request(2, 280, 5)).unwrap();
        run(&mut s)
    };
    assert_eq!(tight(true), [(1, 0, 50)]);
    assert_eq!(tight(false), [(1, 0, 50), (2, 0, 50)]);
}

#[test]
fn the_last_admitted_is_preempted_and_restarts_from_the_front_of_the_queue() {
    let mut config = config();
    config.kv.blocks = 11; // ten to give out
    config.kv.prefix_caching = false;
    let mut s = Scheduler::new(config);
    s.submit(request(1, 40, 30)).unwrap();
    s.submit(request(2, 50, 30)).unwrap();
    s.submit(request(3, 50, 30)).unwrap();
    assert_eq!(run(&mut s), [(1, 0, 40), (2, 0, 50)]);
    let first = s.step().unwrap();
    // 1 takes the tenth block, 2 finds none and is itself the last.
    assert_eq!(shape(&first), (vec![(1, 40, 1)], vec![2]));
    s.complete(&first);
    assert_eq!((s.stats().running, s.stats().waiting), (1, 2));
    assert_eq!(s.stats().totals.preemptions, 1);
    // Its 50 tokens and the one it had made need six blocks, and five are free.
    assert_eq!(run(&mut s), [(1, 41, 1)]);
    while s.stats().totals.finished == 0 {
        run(&mut s);
    }
    let again = s.step().unwrap();
    assert_eq!(shape(&again).0, [(2, 0, 51)]);
    assert!(!again.admitted[0].first);
    assert!(again.work[0].prefill);
    let emitted = s.complete(&again);
    assert_eq!(emitted[0].index, 1, "what it had sent is not sent again");
}

#[test]
fn a_shared_prefix_is_read_from_the_cache_but_never_the_last_token() {
    let mut s = Scheduler::new(config());
    let tokens: Vec<u32> = (0..40).collect();
    let like = |id, tokens: &[u32]| Request {
        chain: Chain::of_tokens(tokens, 10, id),
        ..request(id, tokens.len() as u32, 1)
    };
    s.submit(like(1, &tokens)).unwrap();
    assert_eq!(run(&mut s), [(1, 0, 40)]);
    s.submit(like(2, &tokens)).unwrap();
    assert_eq!(run(&mut s), [(2, 30, 10)]);
    let mut other = tokens.clone();
    other[15] = 99;
    s.submit(like(3, &other)).unwrap();
    assert_eq!(run(&mut s), [(3, 10, 30)]);
    let totals = s.stats().totals;
    assert_eq!((totals.prefix_queries, totals.prefix_hits), (120, 40));
    assert_eq!(
        (totals.prompt_tokens, totals.prompt_tokens_cached),
        (120, 40)
    );
}

#[test]
fn a_request_that_can_never_fit_is_refused_with_its_reason() {
    let mut config = config();
    config.kv.blocks = 51;
    let mut s = Scheduler::new(config);
    let refusal = |s: &mut Scheduler, r| s.submit(r).unwrap_err();
    assert!(matches!(
        refusal(&mut s, request(1, 0, 5)),
        NeverFits::Empty { .. }
    ));
    assert!(matches!(
        refusal(&mut s, request(1, 999, 2)),
        NeverFits::Context { .. }
    ));
    assert_eq!(
        refusal(&mut s, request(1, 500, 1)),
        NeverFits::Blocks {
            blocks: 51,
            there_are: 50
        }
    );
    s.submit(request(1, 499, 1)).unwrap();
    assert_eq!(
        refusal(&mut s, request(1, 5, 5)),
        NeverFits::IdInUse(RequestId(1))
    );
}

#[test]
fn a_second_step_may_be_chosen_while_the_first_is_under_way() {
    let mut s = Scheduler::new(config());
    s.submit(request(1, 50, 2)).unwrap();
    let first = s.step().unwrap();
    let second = s.step().unwrap();
    assert_eq!(shape(&second).0, [(1, 50, 1)]);
    assert_eq!(s.step(), None, "both tokens are under way");
    assert_eq!(s.complete(&first)[0].index, 0);
    let last = s.complete(&second)[0];
    assert!(last.last && last.index == 1);
    assert_eq!(s.unfinished(), 0);
}

#[test]
fn a_sliding_window_frees_the_blocks_it_has_passed() {
    let mut config = config();
    config.kv.sliding_window = Some(20);
    let mut s = Scheduler::new(config);
    s.submit(request(1, 200, 50)).unwrap();
    run(&mut s);
    run(&mut s);
    run(&mut s);
    // 21 blocks of the layers that see all, and of the others those with the last 20 tokens and the newest.
    assert_eq!(s.stats().kv_blocks_used, 21 + 3);
    while s.unfinished() > 0 {
        run(&mut s);
    }
    assert_eq!(s.stats().kv_blocks_used, 0);
}

#[test]
fn aborts_at_any_moment_leave_nothing_behind() {
    let seed = testing::seed("aborts_at_any_moment_leave_nothing_behind");
    let requests = testing::number_of("SCHEDULER_REQUESTS", 3_000);
    for window in [None, Some(25)] {
        random_aborts(seed, requests, window);
    }
}

/// So many requests, sharing beginnings at random, in a cache too small for them; half are aborted at a random
/// moment, some of them between a step and its end.
fn random_aborts(seed: u64, requests: u64, sliding_window: Option<u32>) {
    let mut config = config();
    config.kv.blocks = 60;
    config.kv.sliding_window = sliding_window;
    let mut rng = Rng::new(seed);
    let mut s = Scheduler::new(config);
    let (mut next, mut under_way) = (0, VecDeque::new());
    while next < requests || s.unfinished() > 0 {
        while next < requests && s.stats().waiting < 5 {
            next += 1;
            let family = rng.below(4) * 1000;
            let known = (0..rng.below(12))
                .map(|i| BlockHash(family + i + 1))
                .collect::<Vec<_>>();
            let prompt = known.len() as u32 * 10 + 1 + rng.below(60) as u32;
            let request = Request {
                chain: Chain::of_blocks(known, next),
                ..request(next, prompt, 1 + rng.below(80) as u32)
            };
            s.submit(request).expect("fits");
        }
        if under_way.len() < 1 + rng.below(2) as usize {
            under_way.extend(s.step());
        }
        if rng.below(8) == 0 {
            s.abort(RequestId(next - (rng.below(20)).min(next)));
        }
        if (under_way.len() == MAX_STEPS_UNDER_WAY || rng.below(2) == 0)
            && let Some(step) = under_way.pop_front()
        {
            s.complete(&step);
        }
        if rng.below(16) == 0 {
            s.audit().expect("the invariants hold");
        }
    }
    let stats = s.stats();
    assert_eq!(
        (stats.running, stats.waiting, stats.kv_blocks_used),
        (0, 0, 0)
    );
    assert_eq!(stats.totals.submitted, requests);
    for happened in [
        stats.totals.aborted,
        stats.totals.preemptions,
        stats.totals.prefix_hits,
    ] {
        assert!(
            happened > requests / 20,
            "nothing was tried: {:?}",
            stats.totals
        );
    }
}
