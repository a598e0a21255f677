//! What a call holds of limits until it is settled, and what it may come to.
//!
//! Not here: that what is held is settled or given back, whatever happens (`model/holds.rs`).

use std::time::Duration;

use policy::billing::BilledBy;
use policy::estimate::Estimator;
use policy::exchange::MAX_LIMITS;
use policy::limit::Kind::{Requests, Tokens as TokenKind};
use policy::limit::Window;
use policy::operation::Operation::{
    self, Chat, Completions, Embeddings, Images, Messages, Moderations, Rerank, Responses, Speech,
};
use policy::refusal::Refusal;
use policy::tokens::{Count, Tokens};

use crate::fixture::{RoutePlan, rate};
use crate::world::{Asked, World, call, plan, usage};

/// 41 bytes, so 11 prompt tokens, with a cap of 90: a reservation of 101.
const HUNDRED: &str = r#"{"model":"m","max_tokens":90,"user":"ab"}"#;

fn both() -> World {
    let limits = &[(Requests, rate(5, 60)), (TokenKind, rate(1000, 60))];
    World::routes(&[RoutePlan { limits, ..plan() }])
}

/// A limit of so many tokens a minute.
fn of_tokens(burst: u64) -> World {
    let limits = &[(TokenKind, rate(burst, 60))];
    World::routes(&[RoutePlan { limits, ..plan() }])
}

/// The same of `both`, in any window.
fn both_rolling(amounts: [u64; 2]) -> World {
    let [requests, tokens] = amounts.map(|amount| rate(amount, 60));
    let limits = &[(Requests, requests), (TokenKind, tokens)];
    let mut s = crate::fixture::snapshot(&[RoutePlan { limits, ..plan() }]);
    for limit in &mut s.limits {
        limit.window = Window::Rolling;
    }
    World::new(s)
}

fn wait_ms(asked: &Asked) -> Option<u128> {
    if asked.code().is_empty() {
        return None;
    }
    let Refusal::Limited { wait, .. } = asked.refusal() else {
        panic!("{}", asked.refusal());
    };
    Some(wait.as_millis())
}

#[test]
fn exactly_two_requests_per_minute_refuse_a_third_after_31_seconds_and_admit_it_after_60() {
    let mut world = both_rolling([2, 100_000]);
    let begin = world.now;
    let waits = [0, 1, 31, 59, 60, 61, 119].map(|second| {
        world.now = begin.after(Duration::from_secs(second));
        let asked = world.ask(&call(Chat, HUNDRED));
        wait_ms(&asked)
    });
    let second = |n: u128| Some(n * 1000);
    assert_eq!(
        waits,
        [None, None, second(29), second(1), None, None, second(1)]
    );
}

#[test]
fn a_rolling_limit_of_tokens_is_settled_counted_again_and_given_back() {
    let mut world = both_rolling([5, 1000]);
    let asked = world.ask(&call(Chat, HUNDRED));
    assert_eq!((world.left(0), world.left(1)), (4, 899));
    world.settle(asked, 30, 20);
    assert_eq!((world.left(0), world.left(1)), (4, 950), "a request stays");
    // A call that its ledger does not take never was.
    let asked = world.ask(&call(Chat, HUNDRED));
    world.release(asked);
    assert_eq!((world.left(0), world.left(1)), (4, 950));
    // So is one that the other limit refuses.
    let mut world = both_rolling([5, 150]);
    let _open = world.ask(&call(Chat, HUNDRED));
    assert_eq!(wait_ms(&world.ask(&call(Chat, HUNDRED))), Some(60_000));
    assert_eq!((world.left(0), world.left(1)), (4, 49));
    // The gate's own count says more than the engine.
    let mut s = crate::fixture::snapshot(&[RoutePlan {
        limits: &[(TokenKind, rate(1000, 60))],
        ..plan()
    }]);
    s.routes[0].billed_by = BilledBy::Counted;
    s.limits[0].window = Window::Rolling;
    let mut world = World::new(s);
    let asked = world.ask(&call(Chat, HUNDRED));
    let settled = world.answered(asked, &usage(30, 20), true).settled;
    let count = Tokens {
        prompt: Count::Counted(400),
        ..Tokens::default()
    };
    settled.expect("it waits").correct(&count, None, &world.of);
    assert_eq!(world.left(0), 600);
}

#[test]
fn only_a_call_that_caps_itself_has_a_most() {
    let most = |operation, body| {
        let asked = World::routes(&[plan()]).ask(&call(operation, body));
        asked.estimate().at_most
    };
    let capped = r#"{"model":"m","max_tokens":100,"n":2}"#;
    assert_eq!(most(Chat, capped), Some(capped.len() as u64 + 1024 + 200));
    assert_eq!(most(Responses, capped), None);
    assert_eq!(most(Chat, r#"{"model":"m"}"#), None);
    assert_eq!(most(Embeddings, r#"{"model":"m"}"#), Some(13 + 1024));
}

#[test]
fn what_was_settled_is_corrected_by_the_count_in_either_direction() {
    for (counted, remaining) in [(70, 930), (20, 980), (2000, 0)] {
        let limits = &[(Requests, rate(5, 60)), (TokenKind, rate(1000, 60))];
        let mut s = crate::fixture::snapshot(&[RoutePlan { limits, ..plan() }]);
        s.routes[0].billed_by = BilledBy::Counted;
        let mut world = World::new(s);
        let asked = world.ask(&call(Chat, HUNDRED));
        assert_eq!((world.left(0), world.left(1)), (4, 899));
        let settled = world.answered(asked, &usage(30, 20), true).settled;
        assert_eq!((world.left(0), world.left(1)), (4, 950), "a request stays");
        let count = Tokens {
            prompt: Count::Counted(counted),
            ..Tokens::default()
        };
        settled.expect("it waits").correct(&count, None, &world.of);
        assert_eq!((world.left(0), world.left(1)), (4, remaining), "{counted}");
    }
}

#[test]
fn what_never_ran_counts_as_nothing_and_estimates_count() {
    for (is_sent, remaining) in [(false, 1000), (true, 989)] {
        let mut world = both();
        let asked = world.ask(&call(Embeddings, HUNDRED));
        world.lost(asked, is_sent);
        assert_eq!(world.left(1), remaining);
    }
}

#[test]
fn a_call_larger_than_the_bucket_is_told_so_and_holds_nothing() {
    let absurd = r#"{"max_tokens":4294967295,"n":4294967295}"#;
    for (body, expected) in [(r#"{"max_tokens":1000}"#, Some(1005)), (absurd, None)] {
        let mut world = both();
        let asked = world.ask(&call(Chat, body));
        let Refusal::LargerThanLimit {
            asked: units,
            burst: 1000,
            ..
        } = asked.refusal()
        else {
            panic!("{:?}", asked.verdict);
        };
        assert!(
            expected.is_none_or(|expected| expected == *units),
            "{units}"
        );
        assert_eq!(asked.refusal().reply().should_retry, Some(false));
        assert_eq!((world.left(0), world.left(1)), (5, 1000));
    }
}

/// What a call holds besides its prompt; `None` where it caps nothing.
fn capped(operation: Operation, body: &str) -> Option<u64> {
    let mut world = World::routes(&[plan()]);
    let asked = world.ask(&call(operation, body));
    let reserved = asked.estimate().reserved;
    let held = reserved - world.lost(asked, true);
    (held != Estimator::default().completion(None, 1)).then_some(held)
}

#[test]
fn a_call_is_held_to_the_greatest_of_the_caps_that_its_operation_has() {
    let caps = [
        r#""max_tokens":1000"#,
        r#""max_completion_tokens":2000"#,
        r#""max_output_tokens":3000"#,
    ];
    for set in 0..8_usize {
        let is_set = |at: usize| set >> at & 1 == 1;
        let mut members: Vec<&str> = (0..3).filter(|at| is_set(*at)).map(|at| caps[at]).collect();
        let cap = |at, cap: u64| is_set(at).then_some(cap);
        for _ in 0..2 {
            members.reverse();
            let body = format!("{{{}}}", members.join(","));
            let chat = cap(1, 2000).max(cap(0, 1000));
            assert_eq!(capped(Chat, &body), chat, "chat: {body}");
            assert_eq!(capped(Completions, &body), cap(0, 1000), "{body}");
            assert_eq!(capped(Messages, &body), cap(0, 1000), "{body}");
            assert_eq!(capped(Responses, &body), cap(2, 3000), "{body}");
        }
    }
    let another_is_greater = r#"{"max_tokens":1,"n_predict":100000}"#;
    for (operation, body, expected) in [
        (
            Chat,
            r#"{"max_completion_tokens":1,"max_tokens":5000}"#,
            Some(5000),
        ),
        (Chat, another_is_greater, Some(100_000)),
        (Completions, another_is_greater, Some(100_000)),
        (Messages, another_is_greater, Some(1)),
        (
            Chat,
            r#"{"max_tokens":1,"n_predict":-1}"#,
            Some(u64::from(u32::MAX)),
        ),
        // llama.cpp's alone is no cap of another engine's, and what it asks for is held all the same.
        (Chat, r#"{"n_predict":1}"#, None),
        (Completions, r#"{"n_predict":-1}"#, None),
        (Chat, r#"{"n_predict":5000}"#, Some(5000)),
        (Messages, r#"{"n_predict":5000}"#, None),
        // An answer has its least whatever caps it.
        (Chat, r#"{"max_tokens":1,"min_tokens":5000}"#, Some(5000)),
        (Completions, r#"{"min_tokens":5000}"#, Some(5000)),
        (Messages, r#"{"max_tokens":1,"min_tokens":5000}"#, Some(1)),
        // Two engines take 0 in a chat call for no cap; of a completion, 0 asks for the prompt's own scores.
        (Chat, r#"{"max_tokens":0}"#, None),
        (Completions, r#"{"max_tokens":0}"#, Some(0)),
    ] {
        assert_eq!(capped(operation, body), expected, "{operation:?}: {body}");
    }
}

#[test]
fn a_cap_counts_for_each_answer_to_each_prompt() {
    let rows = [
        (Chat, r#""n":3"#, 300),
        (Chat, r#""n":0"#, 100),
        (Chat, r#""best_of":4"#, 400),
        (Chat, r#""n":5,"best_of":4"#, 500),
        (Chat, r#""beam_width":16"#, 1600),
        (Chat, r#""n":3,"min_tokens":500"#, 1500),
        (Completions, r#""prompt":["a","b"],"beam_width":3"#, 600),
        (Messages, r#""beam_width":16"#, 100),
        // A chat call has no prompt of its own.
        (Chat, r#""prompt":["a","b"]"#, 100),
        (Completions, r#""prompt":"a""#, 100),
        (Completions, r#""prompt":[]"#, 100),
        (Completions, r#""prompt":null"#, 100),
        (Completions, r#""prompt":["a","b"]"#, 200),
        (Completions, r#""prompt":[1,2,3]"#, 100),
        (Completions, r#""prompt":[[1,2],[3],[]]"#, 300),
        (Completions, r#""prompt":["a",[3],[]],"n":2"#, 600),
        (Completions, r#""prompt":["a","b"],"n":2,"best_of":7"#, 1400),
        (Completions, r#""prompt":["a","b"],"n":7,"best_of":2"#, 1400),
        (Responses, r#""n":3,"best_of":4"#, 100),
        (Messages, r#""n":3"#, 100),
    ];
    for (operation, members, completion) in rows {
        let body = format!(r#"{{"max_tokens":100,"max_output_tokens":100,{members}}}"#);
        assert_eq!(capped(operation, &body), Some(completion), "{members}");
    }
    let guessed = Estimator::default().completion(None, 6);
    let body = r#"{"prompt":["a","b"],"n":3}"#;
    assert_eq!(capped(Completions, body), Some(guessed));
    let absurd = r#"{"max_tokens":4294967295,"n":4294967295,"prompt":["a","b","c"]}"#;
    let asked = World::routes(&[plan()]).ask(&call(Completions, absurd));
    assert_eq!(asked.estimate().reserved, u64::MAX);
}

#[test]
fn a_prompt_of_token_ids_is_estimated_by_their_number() {
    let ids = format!(r#"{{"max_tokens":1,"prompt":[{}1]}}"#, "1,".repeat(299));
    let lists = r#"{"max_tokens":1,"prompt":[[1,2],[3]]}"#;
    let text = r#"{"max_tokens":1,"prompt":["a",[1,2]]}"#;
    let of = |text: &str| (text.len() as u64).div_ceil(4);
    for (operation, body, prompt) in [
        (Completions, &*ids, 300),
        (Completions, lists, 3),
        (Completions, text, of(text)),
        (Chat, lists, of(lists)),
    ] {
        let mut world = both();
        let asked = world.ask(&call(operation, body));
        assert_eq!(world.lost(asked, true), prompt, "{body}");
    }
}

#[test]
fn only_what_generates_reserves_more_than_its_prompt() {
    let body = r#"{"model":"m","input":"0123456789","n":4}"#;
    for operation in [Embeddings, Moderations, Rerank, Speech, Images] {
        let mut world = both();
        let asked = world.ask(&call(operation, body));
        assert_eq!((world.left(1), asked.estimate().reserved), (990, 10));
        assert_eq!(asked.record().model_sent.as_deref(), Some("m"));
        assert_eq!(world.lost(asked, true), 10, "{operation:?}");
    }
    let mut world = both();
    let asked = world.ask(&call(Images, body));
    let reported = r#"{"usage":{"input_tokens":100,"output_tokens":100}}"#;
    world.answered(asked, reported, false);
    assert_eq!(world.left(1), 800, "what is reported is settled");
}

#[test]
fn each_workload_has_buckets_of_its_own_and_every_limit_of_its_grant_is_held() {
    let limits = [(TokenKind, rate(1000, 60)); MAX_LIMITS];
    let mut world = World::routes(&[RoutePlan {
        workloads: &["ide", "ci"],
        limits: &limits,
        ..plan()
    }]);
    let most = u32::try_from(MAX_LIMITS).expect("few");
    let all = |world: &World, left| (0..most).all(|limit| world.left(limit) == left);
    let asked = world.ask(&call(Embeddings, HUNDRED));
    assert!(all(&world, 989));
    world.settle(asked, 5, 0);
    assert!(all(&world, 995));
    assert!((most..2 * most).all(|limit| world.left(limit) == 1000));
}

#[test]
fn a_guessed_completion_never_exceeds_what_a_small_limit_can_hold() {
    let guessed = r#"{"model":"m"}"#;
    let capped = r#"{"model":"m","max_tokens":256}"#;
    // A prompt of 20 tokens, or of 200; the bucket; what is taken, or else asked for in vain.
    for (body, bytes, burst, expected) in [
        (guessed, 80, 100, Ok(100)),
        (guessed, 80, 1000, Ok(276)),
        (capped, 80, 100, Err(276)),
        (guessed, 800, 100, Err(456)),
    ] {
        let mut world = of_tokens(burst);
        let asked = world.ask(&call(Chat, body).bytes(bytes));
        let taken = match asked.code() {
            "" => Ok(burst - world.left(0)),
            _ => match asked.refusal() {
                Refusal::LargerThanLimit { asked, .. } => Err(*asked),
                other => panic!("{other:?}"),
            },
        };
        assert_eq!(taken, expected, "{bytes} {burst}");
    }
}

#[test]
fn what_other_calls_taught_a_route_neither_refuses_for_good_nor_opens_a_budget() {
    let body = r#"{"model":"m","max_tokens":10}"#;
    let sized = |bytes| call(Chat, body).bytes(bytes);
    let taught = |bytes, prompt| {
        let mut world = of_tokens(60_000);
        for _ in 0..400 {
            world.now = world.now.after(std::time::Duration::from_mins(1));
            let asked = world.ask(&sized(bytes));
            world.settle(asked, prompt, 1);
        }
        world.now = world.now.after(std::time::Duration::from_mins(1));
        world
    };
    // Short prompts behind a long template: two tokens a byte.
    let mut dense = taught(90, 180);
    let never = dense.ask(&sized(300_000));
    assert_eq!(never.code(), "request_exceeds_limit");
    let fits = dense.ask(&sized(200_000));
    assert!(fits.estimate().reserved > 390_000);
    assert_eq!(dense.left(0), 0, "50,000 tokens of a text take all");
    // Bodies of white space.
    let mut padded = taught(40_000, 69);
    let asked = padded.ask(&sized(200_000));
    assert!(padded.left(0) > 57_500, "{}", padded.left(0));
    assert_eq!(asked.estimate().reserved, 20_010);
}
