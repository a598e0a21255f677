//! Reservations over two limits at one instant: reserved = settled + released, and a refusal
//! holds nothing, against plain sums.

use policy::exchange::Verdict;
use policy::id::RouteId;
use policy::limit::Kind;
use policy::operation::Operation;
use policy::refusal::Refusal;
use proptest::prelude::*;

use super::operations::runner;
use crate::fixture::{RoutePlan, rate};
use crate::world::{Asked, World, call, plan};

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
    let mut world = World::routes(&[RoutePlan {
        limits: &limits,
        ..plan()
    }]);
    let (mut requests, mut tokens) = (i128::from(REQUESTS), i128::from(TOKENS));
    let mut open: Vec<(Asked, u64, u64)> = Vec::new();
    for step in steps {
        match step {
            Step::Admit(cap) => {
                let body = format!(r#"{{"model":"m","max_tokens":{cap}}}"#);
                let estimator = world.estimator(RouteId(0));
                // What an honest gate reserves for it.
                let reserved = estimator.prompt(body.len() as u64) + u64::from(*cap);
                let asked = world.ask(&call(Operation::Completions, &body));
                let fits = requests >= 1 && tokens >= i128::from(reserved);
                match &asked.verdict {
                    Verdict::Ask(_) => {
                        prop_assert!(fits, "admitted {reserved} of {tokens}");
                        requests -= 1;
                        tokens -= i128::from(reserved);
                        open.push((asked, reserved, u64::from(*cap)));
                    }
                    Verdict::Refuse(refusal)
                        if matches!(**refusal, Refusal::LargerThanLimit { .. }) =>
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
                let (asked, reserved, cap) = open.swap_remove(nth % open.len());
                // More than its cap would not be believed.
                let completion = cap.min(*completion);
                world.settle(asked, *prompt, completion);
                tokens += i128::from(reserved) - i128::from(prompt + completion);
            }
            Step::Release(nth) if !open.is_empty() => {
                // Its row does not reach the disk: it does not run.
                let (asked, reserved, _) = open.swap_remove(nth % open.len());
                world.release(asked);
                requests += 1;
                tokens += i128::from(reserved);
            }
            Step::Settle(..) | Step::Release(_) => {}
        }
        prop_assert_eq!(i128::from(world.left(0)), requests.max(0));
        prop_assert_eq!(i128::from(world.left(1)), tokens.max(0));
    }
    Ok(())
}
