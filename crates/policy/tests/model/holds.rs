//! Reservations over two limits at one instant: reserved = settled + released, and a refusal
//! holds nothing, against plain sums.

use std::net::{IpAddr, Ipv4Addr};

use policy::clock::Mono;
use policy::exchange::{Answer, Env, Event, Exchange, Verdict};
use policy::id::{LimitId, RouteId};
use policy::levels::Levels;
use policy::limit::Kind;
use policy::refusal::Refusal;
use policy::shard::Shard;
use policy::wire::call::CallHead;
use policy::wire::head::ResponseHead;
use policy::wire::meter::Meter;
use proptest::prelude::*;

use super::operations::runner;
use crate::fixture::{IDENTITY, ONE, RoutePlan, rate, request, snapshot};

const NOW: Mono = Mono(5_000_000_000);
const REQUESTS: u64 = 12;
const TOKENS: u64 = 3000;

#[derive(Debug, Clone)]
enum Step {
    Admit(u32),
    Settle(usize, u64, u64),
    Release(usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => (0..1500_u32).prop_map(Step::Admit),
        1 => (2900..3500_u32).prop_map(Step::Admit),
        2 => (any::<usize>(), 0..900_u64, 0..900_u64).prop_map(|(n, p, c)| Step::Settle(n, p, c)),
        3 => any::<usize>().prop_map(Step::Release),
    ];
    prop::collection::vec(step, 0..120)
}

#[test]
fn what_was_reserved_is_settled_or_released_and_nothing_leaks() {
    runner("holds", "tests/corpus/holds.txt", 512)
        .run(&steps(), |steps| check(&steps))
        .expect("every sequence");
}

fn check(steps: &[Step]) -> Result<(), TestCaseError> {
    // A day's window: at one instant nothing refills.
    let limits = [
        (Kind::Requests, rate(REQUESTS, 86_400)),
        (Kind::Tokens, rate(TOKENS, 86_400)),
    ];
    let s = snapshot(&[RoutePlan {
        workloads: &["w"],
        backends: &[ONE],
        limits: &limits,
        ..RoutePlan::default()
    }]);
    let levels = Levels::new(&s);
    let (mut requests, mut tokens) = (i128::from(REQUESTS), i128::from(TOKENS));
    let mut shard = Shard::new(&s, None, 1);
    let env = &mut Env {
        snapshot: &s,
        levels: &levels,
        shard: &mut shard,
        now: NOW,
    };
    let mut open: Vec<(Exchange, u64)> = Vec::new();
    for step in steps {
        match step {
            Step::Admit(cap) => {
                let (exchange, verdict, reserved) = ask(*cap, env);
                let fits = requests >= 1 && tokens >= i128::from(reserved);
                match verdict {
                    Verdict::Ask(_) => {
                        prop_assert!(fits, "admitted {reserved} of {tokens}");
                        requests -= 1;
                        tokens -= i128::from(reserved);
                        open.push((exchange, reserved));
                    }
                    Verdict::Refuse(refusal)
                        if matches!(*refusal, Refusal::LargerThanLimit { .. }) =>
                    {
                        prop_assert!(reserved > TOKENS);
                    }
                    Verdict::Refuse(refusal) => {
                        prop_assert!(!fits, "{refusal}");
                        // The one that waits longer: a request refills in the time of so many tokens.
                        let each = i128::from(TOKENS / REQUESTS);
                        let short = (1 - requests) * each;
                        let which = if requests < 1 && short >= i128::from(reserved) - tokens {
                            Kind::Requests
                        } else {
                            Kind::Tokens
                        };
                        prop_assert_eq!(refusal.limited(), Some(which));
                    }
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            Step::Settle(nth, prompt, completion) if !open.is_empty() => {
                let (exchange, reserved) = open.swap_remove(nth % open.len());
                answered(exchange, *prompt, *completion, env);
                tokens += i128::from(reserved) - i128::from(prompt + completion);
            }
            Step::Release(nth) if !open.is_empty() => {
                let (mut exchange, reserved) = open.swap_remove(nth % open.len());
                // Its row does not reach the disk: it does not run.
                let refused = exchange.handle(Event::Answer(Answer::Unanswered), env);
                let Verdict::Refuse(refusal) = refused else {
                    panic!("{refused:?}");
                };
                prop_assert_eq!(refusal.reply().code, "ledger_unavailable");
                exchange.finish(&mut Meter::default(), false, env);
                requests += 1;
                tokens += i128::from(reserved);
            }
            Step::Settle(..) | Step::Release(_) => {}
        }
        prop_assert_eq!(i128::from(left(&levels, 0)), requests.max(0));
        prop_assert_eq!(i128::from(left(&levels, 1)), tokens.max(0));
    }
    Ok(())
}

/// Asks for a call of at most `cap` tokens; also gives what an honest gate reserves for it.
pub(crate) fn ask(cap: u32, env: &mut Env<'_>) -> (Exchange, Verdict, u64) {
    let body = format!(r#"{{"model":"m","max_tokens":{cap}}}"#);
    let fields = [(IDENTITY, "w"), ("content-type", "application/json")];
    let head = request("POST", "/v1/completions", &fields);
    let bytes = body.len() as u64;
    let estimator = env.shard.estimator(RouteId(0));
    let peer = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let mut exchange = Exchange::begin(&head, peer, 0, env);
    let begun = Event::Head {
        head: &head,
        peer: &peer.into(),
        length: Some(bytes),
        awaits_continue: false,
    };
    for event in [begun, Event::Body(body.len())] {
        let verdict = exchange.handle(event, env);
        assert!(matches!(verdict, Verdict::Read { .. }), "{verdict:?}");
    }
    let call = Some(CallHead::read(body.as_bytes()).expect("a call"));
    let verdict = exchange.handle(Event::BodyEnd { head: &head, call }, env);
    (exchange, verdict, estimator.prompt(bytes) + u64::from(cap))
}

/// Takes a call through one attempt to a response that reports these tokens.
fn answered(mut exchange: Exchange, prompt: u64, completion: u64, env: &mut Env<'_>) {
    let attempt = exchange.handle(Event::Answer(Answer::Entered), env);
    assert!(matches!(attempt, Verdict::Attempt(_)), "{attempt:?}");
    exchange.sent(true);
    let mut head = ResponseHead {
        status: 200,
        ..ResponseHead::default()
    };
    let pushed = head.fields.push(b"content-type", b"application/json");
    pushed.expect("a field");
    let Verdict::Relay(relay) = exchange.handle(Event::ResponseHead(&head), env) else {
        panic!("not forwarded");
    };
    let mut meter = Meter::new(relay.form);
    let usage = format!(r#""prompt_tokens":{prompt},"completion_tokens":{completion}"#);
    meter.observe(format!(r#"{{"usage":{{{usage}}}}}"#).as_bytes());
    let finish = exchange.handle(Event::End { told_error: false }, env);
    assert!(matches!(finish, Verdict::Finish), "{finish:?}");
    exchange.finish(&mut meter, false, env);
}

fn left(levels: &Levels, limit: u32) -> u64 {
    let bucket = levels.bucket(LimitId(limit));
    bucket.expect("a limit").level(NOW).remaining
}
