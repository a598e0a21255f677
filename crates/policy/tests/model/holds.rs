//! Reservations over two limits at one instant: reserved = settled + released, and a refusal
//! holds nothing, against plain sums.

use policy::clock::Mono;
use policy::exchange::{Admitted, Decision, Opened, admit};
use policy::id::{LimitId, WorkloadId};
use policy::limit::Kind;
use policy::meter::Estimator;
use policy::operation::Operation;
use policy::record::{Count, Tokens};
use policy::refusal::Refusal;
use policy::snapshot::Snapshot;
use policy::wire::call::CallHead;
use proptest::prelude::*;

use super::operations::runner;
use crate::fixture::{ONE, RoutePlan, rate, snapshot};

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
    let (mut requests, mut tokens) = (i128::from(REQUESTS), i128::from(TOKENS));
    let mut open: Vec<(Admitted, u64)> = Vec::new();
    for step in steps {
        match step {
            Step::Admit(cap) => {
                let (decision, reserved) = ask(*cap, &s);
                let fits = requests >= 1 && tokens >= i128::from(reserved);
                match decision {
                    Ok(Decision::Forward(admitted)) => {
                        prop_assert!(fits, "admitted {reserved} of {tokens}");
                        requests -= 1;
                        tokens -= i128::from(reserved);
                        open.push((admitted, reserved));
                    }
                    Ok(Decision::Models(_)) => prop_assert!(false, "no one asked for models"),
                    Err(Refusal::LargerThanLimit { .. }) => prop_assert!(reserved > TOKENS),
                    Err(refusal) => {
                        prop_assert!(!fits, "{refusal}");
                        let which = if requests < 1 {
                            Kind::Requests
                        } else {
                            Kind::Tokens
                        };
                        prop_assert_eq!(refusal.limited(), Some(which));
                    }
                }
            }
            Step::Settle(nth, prompt, completion) if !open.is_empty() => {
                let (admitted, reserved) = open.swap_remove(nth % open.len());
                let used = Tokens {
                    prompt: Count::Reported(*prompt),
                    completion: Count::Estimated(*completion),
                    ..Tokens::default()
                };
                admitted.hold.settle(&used, None, NOW, &s);
                tokens += i128::from(reserved) - i128::from(prompt + completion);
            }
            Step::Release(nth) if !open.is_empty() => {
                let (admitted, reserved) = open.swap_remove(nth % open.len());
                admitted.hold.release(NOW, &s);
                requests += 1;
                tokens += i128::from(reserved);
            }
            Step::Settle(..) | Step::Release(_) => {}
        }
        prop_assert_eq!(i128::from(left(&s, 0)), requests.max(0));
        prop_assert_eq!(i128::from(left(&s, 1)), tokens.max(0));
    }
    Ok(())
}

fn ask(cap: u32, s: &Snapshot) -> (Result<Decision, Refusal>, u64) {
    let body = format!(r#"{{"model":"m","max_tokens":{cap}}}"#);
    let call = CallHead::read(body.as_bytes()).expect("a call");
    let opened = Opened {
        listed: None,
        workload: WorkloadId(0),
        operation: Operation::Completions,
    };
    let bytes = body.len() as u64;
    let reserved = Estimator::default().prompt(bytes) + u64::from(cap);
    let estimator = |_| Estimator::default();
    (
        admit(opened, Some(&call), bytes, estimator, NOW, 0, s),
        reserved,
    )
}

fn left(s: &Snapshot, limit: u32) -> u64 {
    s.limit(LimitId(limit))
        .expect("a limit")
        .bucket
        .level(NOW)
        .remaining
}
