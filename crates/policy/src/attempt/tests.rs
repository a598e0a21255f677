//! Order, weights, ejection and its end, the retry budget, and what a reload keeps.
//!
//! Not here: whole exchanges with faults over time (`tests/sim`).

use std::sync::Arc;
use std::time::Duration;

use wire::head::Method;

use super::{Asker, Attempts, Failure, Sent, Upstreams, WAIT_MAX, Wanted, may_repeat};
use crate::caller::{Caller, Proven};
use crate::clock::Mono;
use crate::fixture::{BackendPlan, ONE, RoutePlan, snapshot};
use crate::id::{BackendId, EndpointId, RouteId, WorkloadId};
use crate::operation::Operation;
use crate::retry::{Ejection, MAX_ATTEMPTS, Retries, Retry};
use crate::snapshot::Snapshot;

const ROUTE: RouteId = RouteId(0);
const NOW: Mono = Mono(1_000_000_000_000);
/// The first ejection, and the longest.
const FOR: Duration = Duration::from_secs(5);
const MOST: Duration = Duration::from_secs(300);

fn backends(plans: &[(&str, &[u32])]) -> Snapshot {
    let plans: Vec<BackendPlan<'_>> = plans
        .iter()
        .map(|(name, weights)| BackendPlan {
            name,
            weights,
            ..ONE
        })
        .collect();
    snapshot(&[RoutePlan {
        workloads: &["w"],
        backends: &plans,
        ..RoutePlan::default()
    }])
}

fn first(up: &mut Upstreams, s: &Snapshot, now: Mono) -> u32 {
    let mut tries = begin(up, ROUTE, s);
    up.next(&mut tries, Wanted::default(), s, now)
        .expect("an endpoint")
        .0
}

/// Every endpoint that one exchange would try.
fn all(up: &mut Upstreams, s: &Snapshot) -> Vec<u32> {
    let mut tries = begin(up, ROUTE, s);
    std::iter::from_fn(|| up.next(&mut tries, Wanted::default(), s, NOW))
        .map(|e| e.0)
        .collect()
}

fn of_model(model: &str) -> Wanted<'_> {
    Wanted {
        model: Some(model),
        ..Wanted::default()
    }
}

fn eject(up: &mut Upstreams, endpoint: u32, s: &Snapshot, now: Mono) {
    for _ in 0..5 {
        up.observe(
            EndpointId(endpoint),
            Err(Failure::Connect),
            Wanted::default(),
            s,
            now,
        );
    }
}

fn is_ejected(up: &Upstreams, endpoint: u32, now: Mono) -> bool {
    up.ejected(now).contains(&EndpointId(endpoint))
}

fn begin(up: &mut Upstreams, route: RouteId, s: &Snapshot) -> Attempts {
    let attempts = Attempts::on(route, s);
    up.begun(&attempts, s);
    attempts
}

#[test]
fn backends_are_tried_in_written_order_and_each_endpoint_once() {
    let s = backends(&[("a", &[1]), ("b", &[1, 1]), ("c", &[1])]);
    for seed in 0..50 {
        let tried = all(&mut Upstreams::new(&s, seed), &s);
        assert_eq!((tried[0], tried[3]), (0, 3), "seed {seed}");
        let mut middle = [tried[1], tried[2]];
        middle.sort_unstable();
        assert_eq!(middle, [1, 2], "seed {seed}");
    }
}

#[test]
fn an_exchange_has_at_most_four_tries() {
    let s = backends(&[("a", &[1; 9])]);
    let mut up = Upstreams::new(&s, 1);
    let mut tried = all(&mut up, &s);
    assert_eq!(tried.len(), 4);
    tried.sort_unstable();
    tried.dedup();
    assert_eq!(tried.len(), 4, "none twice");
}

#[test]
fn weights_share_the_traffic() {
    let s = backends(&[("a", &[1, 2, 7])]);
    // Workers differ in their seeds; each must see the shares, small seeds too.
    for seed in [0, 1, 2, 3, 0xdead_beef] {
        let mut up = Upstreams::new(&s, seed);
        let mut seen = [0_i64; 3];
        for _ in 0..20_000 {
            seen[first(&mut up, &s, NOW) as usize] += 1;
        }
        // Four standard deviations of the widest share are about 260.
        for (got, share) in seen.iter().zip([2000, 4000, 14_000]) {
            assert!((got - share).abs() < 280, "seed {seed}: {seen:?}");
        }
    }
}

#[test]
fn workers_with_neighbouring_seeds_choose_differently() {
    let s = backends(&[("a", &[1, 1])]);
    let run = |seed| {
        let mut up = Upstreams::new(&s, seed);
        (0..64).map(|_| first(&mut up, &s, NOW)).collect::<Vec<_>>()
    };
    assert_ne!(run(2), run(3));
    assert_ne!(run(0), run(1));
    assert_eq!(run(5), run(5), "one seed, one course");
}

#[test]
fn five_failures_in_a_row_eject_and_a_success_between_does_not_count() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    for _ in 0..4 {
        up.observe(EndpointId(0), Ok(503), Wanted::default(), &s, NOW);
    }
    up.observe(EndpointId(0), Ok(200), Wanted::default(), &s, NOW);
    for _ in 0..4 {
        up.observe(
            EndpointId(0),
            Err(Failure::Reset),
            Wanted::default(),
            &s,
            NOW,
        );
    }
    assert_eq!(first(&mut up, &s, NOW), 0);
    up.observe(
        EndpointId(0),
        Err(Failure::FirstByteTimeout),
        Wanted::default(),
        &s,
        NOW,
    );
    assert!(is_ejected(&up, 0, NOW));
    assert_eq!(first(&mut up, &s, NOW), 1, "the next backend takes over");
}

#[test]
fn what_a_healthy_endpoint_answers_never_ejects_it() {
    let s = backends(&[("a", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    for status in [200, 400, 401, 404, 408, 425, 429, 499].repeat(5) {
        up.observe(EndpointId(0), Ok(status), Wanted::default(), &s, NOW);
        up.observe(
            EndpointId(0),
            Err(Failure::Status(429)),
            Wanted::default(),
            &s,
            NOW,
        );
    }
    assert!(up.ejected(NOW).is_empty());
    up.observe(
        EndpointId(99),
        Err(Failure::Connect),
        Wanted::default(),
        &s,
        NOW,
    );
}

#[test]
fn after_its_time_one_exchange_tries_an_ejected_endpoint() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    eject(&mut up, 0, &s, NOW);
    assert_eq!(first(&mut up, &s, Mono(NOW.after(FOR).0 - 1)), 1);
    let later = NOW.after(FOR);
    assert_eq!(first(&mut up, &s, later), 0, "the trial");
    for _ in 0..20 {
        assert_eq!(first(&mut up, &s, later), 1, "half open is one at a time");
    }
    up.observe(EndpointId(0), Ok(200), Wanted::default(), &s, later);
    assert_eq!(first(&mut up, &s, later), 0, "restored");
}

#[test]
fn a_trial_of_which_nothing_is_heard_gives_way_to_another() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    eject(&mut up, 0, &s, NOW);
    let trial = NOW.after(FOR);
    assert_eq!(first(&mut up, &s, trial), 0);
    assert_eq!(first(&mut up, &s, trial.after(FOR)), 0);
}

#[test]
fn every_failed_trial_doubles_the_ejection_up_to_its_most() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    let mut now = NOW;
    eject(&mut up, 0, &s, now);
    let mut shut_for = FOR;
    for _ in 0..12 {
        assert!(
            is_ejected(&up, 0, Mono(now.after(shut_for).0 - 1)),
            "{shut_for:?}"
        );
        now = now.after(shut_for);
        assert!(!is_ejected(&up, 0, now), "{shut_for:?}");
        assert_eq!(first(&mut up, &s, now), 0, "the trial");
        up.observe(
            EndpointId(0),
            Err(Failure::Connect),
            Wanted::default(),
            &s,
            now,
        );
        shut_for = (shut_for * 2).min(MOST);
    }
    assert_eq!(shut_for, MOST);
}

#[test]
fn a_crowd_of_failures_at_once_is_one_ejection() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    for _ in 0..500 {
        up.observe(
            EndpointId(0),
            Err(Failure::Reset),
            Wanted::default(),
            &s,
            NOW,
        );
    }
    assert!(is_ejected(&up, 0, NOW));
    assert!(!is_ejected(&up, 0, NOW.after(FOR)));
}

#[test]
fn when_all_are_ejected_one_is_tried_rather_than_none() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    eject(&mut up, 0, &s, NOW);
    eject(&mut up, 1, &s, NOW);
    let mut tries = begin(&mut up, ROUTE, &s);
    assert_eq!(
        up.next(&mut tries, Wanted::default(), &s, NOW),
        Some(EndpointId(0))
    );
    assert_eq!(
        up.may_retry(&tries, Wanted::default(), &s, NOW),
        Retry::No,
        "but no retry is spent on an ejected one"
    );
    up.observe(EndpointId(0), Ok(200), Wanted::default(), &s, NOW);
    assert!(!is_ejected(&up, 0, NOW), "success restores");
}

#[test]
fn an_attempt_that_asked_nothing_of_the_endpoint_says_nothing_of_it() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    for _ in 0..4 {
        up.observe(
            EndpointId(0),
            Err(Failure::Connect),
            Wanted::default(),
            &s,
            NOW,
        );
    }
    let nothing_asked = [
        Failure::LocalCapacity,
        Failure::Credential,
        Failure::Untranslatable,
    ];
    for failure in nothing_asked.repeat(30) {
        up.observe(EndpointId(0), Err(failure), Wanted::default(), &s, NOW);
    }
    assert!(!is_ejected(&up, 0, NOW), "nothing was asked of it");
    up.observe(
        EndpointId(0),
        Err(Failure::Connect),
        Wanted::default(),
        &s,
        NOW,
    );
    assert!(
        is_ejected(&up, 0, NOW),
        "and what it did before is not forgotten"
    );
    let trial = NOW.after(FOR);
    assert_eq!(first(&mut up, &s, trial), 0);
    up.observe(
        EndpointId(0),
        Err(Failure::LocalCapacity),
        Wanted::default(),
        &s,
        trial,
    );
    let later = trial.after(FOR);
    assert_eq!(
        first(&mut up, &s, later),
        0,
        "a trial of which nothing is heard gives way to another, not to a longer ejection"
    );
}

#[test]
fn retries_are_at_most_a_tenth_of_first_tries_and_a_float() {
    let s = backends(&[("a", &[1, 1, 1, 1])]);
    let mut up = Upstreams::new(&s, 1);
    let (mut firsts, mut retries) = (0_u32, 0_u32);
    for _ in 0..10_000 {
        let mut tries = begin(&mut up, ROUTE, &s);
        firsts += 1;
        up.next(&mut tries, Wanted::default(), &s, NOW)
            .expect("one");
        while up.may_retry(&tries, Wanted::default(), &s, NOW) == Retry::Granted {
            retries += 1;
            up.next(&mut tries, Wanted::default(), &s, NOW)
                .expect("may_retry said so");
        }
        assert!(f64::from(retries) <= 10.0 + f64::from(firsts) * 0.1 + 0.01);
    }
    assert!(retries >= 1000, "the tenth is really given: {retries}");
}

#[test]
fn no_retry_without_another_endpoint_and_none_is_spent() {
    let s = backends(&[("a", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    for _ in 0..100 {
        let mut tries = begin(&mut up, ROUTE, &s);
        up.next(&mut tries, Wanted::default(), &s, NOW)
            .expect("one");
        assert_eq!(up.may_retry(&tries, Wanted::default(), &s, NOW), Retry::No);
        assert_eq!(tries.made(), 1);
    }
    assert!(up.retries[0].spend(), "the float is whole");
}

#[test]
fn the_budget_refuses_only_where_there_is_somewhere_to_go() {
    let s = backends(&[("a", &[1, 1])]);
    let mut up = Upstreams::new(&s, 1);
    while up.retries[0].spend() {}
    let mut tries = begin(&mut up, ROUTE, &s);
    up.next(&mut tries, Wanted::default(), &s, NOW)
        .expect("one");
    assert_eq!(
        up.may_retry(&tries, Wanted::default(), &s, NOW),
        Retry::Refused
    );
    up.next(&mut tries, Wanted::default(), &s, NOW)
        .expect("another");
    assert_eq!(up.may_retry(&tries, Wanted::default(), &s, NOW), Retry::No);
}

#[test]
fn an_unknown_route_has_nowhere_to_go() {
    let s = backends(&[("a", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    let mut tries: Attempts = begin(&mut up, RouteId(9), &s);
    assert_eq!(up.next(&mut tries, Wanted::default(), &s, NOW), None);
    assert_eq!(up.may_retry(&tries, Wanted::default(), &s, NOW), Retry::No);
}

#[test]
fn a_reload_keeps_what_is_known_of_addresses_that_stay() {
    let old = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&old, 1);
    eject(&mut up, 1, &old, NOW);
    while up.retries[0].spend() {}
    let new = backends(&[("b", &[5]), ("z", &[1])]);
    let mut carried = Upstreams::carried(&new, &old, &up);
    assert_eq!(
        carried.ejected(NOW),
        [EndpointId(0)],
        "b moved to the front"
    );
    assert!(!carried.retries[0].spend(), "a reload grants no retries");
    let elsewhere = backends(&[("c", &[1])]);
    assert!(
        Upstreams::carried(&elsewhere, &old, &up)
            .ejected(NOW)
            .is_empty()
    );
}

#[test]
fn an_endpoint_that_asked_for_time_is_left_alone_for_it_and_no_longer() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    let wait = Duration::from_secs(20);
    up.cooldown(
        EndpointId(0),
        Wanted::default(),
        (503, wait, false),
        &s,
        NOW,
    );
    assert_eq!(first(&mut up, &s, NOW), 1);
    assert_eq!(
        first(&mut up, &s, NOW.after(wait - Duration::from_millis(1))),
        1
    );
    assert_eq!(first(&mut up, &s, NOW.after(wait)), 0);
    up.cooldown(
        EndpointId(1),
        of_model("m"),
        (429, wait / 2, false),
        &s,
        NOW,
    );
    let mut tries = begin(&mut up, ROUTE, &s);
    assert_eq!(up.next(&mut tries, of_model("m"), &s, NOW), None);
    let least = Some((429, wait / 2));
    assert_eq!(up.waits(&tries, of_model("m"), &s, NOW), least);
    let other = up.next(&mut tries, of_model("n"), &s, NOW);
    assert_eq!(other, Some(EndpointId(1)), "a quota is of one model");
    assert_eq!(
        up.may_retry(&tries, of_model("n"), &s, NOW),
        Retry::No,
        "a is held for all"
    );
    let carried = Upstreams::carried(&s, &s, &up);
    assert_eq!(
        carried.waits(&begin(&mut up, ROUTE, &s), of_model("m"), &s, NOW),
        least
    );
}

/// A router before engines loads one model, and serves the others.
#[test]
fn an_endpoint_that_is_not_ready_for_one_model_is_left_alone_for_that_model() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    for (status, other) in [(503, 0), (529, 0), (500, 1)] {
        let mut up = Upstreams::new(&s, 1);
        up.cooldown(
            EndpointId(0),
            of_model("m"),
            (status, WAIT_MAX, false),
            &s,
            NOW,
        );
        let mut next = |model| {
            let mut tries = begin(&mut up, ROUTE, &s);
            up.next(&mut tries, of_model(model), &s, NOW)
        };
        assert_eq!(next("m"), Some(EndpointId(1)), "{status}");
        assert_eq!(next("n"), Some(EndpointId(other)), "{status}");
    }
}

#[test]
fn a_model_that_is_refused_without_a_time_rests_where_there_is_another() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    let next = |up: &mut Upstreams, model, now| {
        let mut tries = begin(up, ROUTE, &s);
        up.next(&mut tries, of_model(model), &s, now)
    };
    let second = |n| NOW.after(Duration::from_secs(n));
    let (a, b) = (Some(EndpointId(0)), Some(EndpointId(1)));
    up.rest(EndpointId(0), of_model("m"), &s, NOW);
    up.rest(EndpointId(0), of_model("m"), &s, NOW);
    assert_eq!((next(&mut up, "m", NOW), next(&mut up, "n", NOW)), (b, a));
    assert_eq!(
        next(&mut up, "m", second(1)),
        a,
        "once for those that came together"
    );
    up.rest(EndpointId(0), of_model("m"), &s, second(1));
    assert_eq!(next(&mut up, "m", second(2)), b, "twice as long");
    assert_eq!(next(&mut up, "m", second(3)), a);
    // Where all rest, each is tried as ever.
    up.rest(EndpointId(0), of_model("m"), &s, second(3));
    up.rest(EndpointId(1), of_model("m"), &s, second(3));
    assert_eq!(next(&mut up, "m", second(3)), a);
    up.observe(EndpointId(0), Ok(200), Wanted::default(), &s, second(60));
    up.rest(EndpointId(0), of_model("m"), &s, second(60));
    assert_eq!(next(&mut up, "m", second(61)), a, "it began anew");
}

/// A caller of the first workload.
fn user(name: &str) -> Arc<Caller> {
    Arc::new(Caller {
        by: Proven::Token,
        user: Some(name.into()),
        ..Caller::default()
    })
}

fn of(caller: &Arc<Caller>) -> Wanted<'_> {
    let asker = Asker {
        workload: Some(WorkloadId(0)),
        caller: Some(caller),
    };
    Wanted {
        model: Some("m"),
        asker,
        ..Wanted::default()
    }
}

/// Where a caller's call goes.
fn goes(up: &mut Upstreams, caller: &Arc<Caller>, s: &Snapshot, now: Mono) -> Option<u32> {
    let mut tries = begin(up, ROUTE, s);
    up.next(&mut tries, of(caller), s, now).map(|at| at.0)
}

#[test]
fn failures_that_were_answered_to_one_caller_eject_an_endpoint_for_that_caller_alone() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let (ann, bob) = (user("ann"), user("bob"));
    let fails = |up: &mut Upstreams, of: Wanted<'_>, times, now| {
        for _ in 0..times {
            up.observe(EndpointId(0), Ok(500), of, &s, now);
        }
    };
    let mut up = Upstreams::new(&s, 1);
    fails(&mut up, of(&ann), 50, NOW);
    assert_eq!(goes(&mut up, &ann, &s, NOW), Some(1));
    assert_eq!(goes(&mut up, &bob, &s, NOW), Some(0), "not his doing");
    let carried = &mut Upstreams::carried(&s, &s, &up);
    assert_eq!(goes(carried, &ann, &s, NOW), Some(1));
    assert_eq!(goes(carried, &bob, &s, NOW), Some(0), "nor after a reload");

    // Her trials make her time longer, and nobody else's.
    let trial = NOW.after(FOR);
    assert_eq!(goes(&mut up, &bob, &s, trial), Some(0));
    assert_eq!(goes(&mut up, &ann, &s, trial), Some(0), "the trial");
    assert_eq!(goes(&mut up, &ann, &s, trial), Some(1), "one at a time");
    assert_eq!(goes(&mut up, &bob, &s, trial), Some(0));
    fails(&mut up, of(&ann), 1, trial);
    assert_eq!(goes(&mut up, &ann, &s, trial.after(FOR)), Some(1));

    // What another one gets too is the endpoint's doing: all leave it alone, as for a first time.
    let now = trial.after(FOR);
    fails(&mut up, of(&bob), 1, now);
    assert_eq!(goes(&mut up, &bob, &s, now), Some(1));
    assert_eq!(goes(&mut up, &ann, &s, now), Some(1));
    assert_eq!(goes(&mut up, &bob, &s, now.after(FOR)), Some(0), "a trial");
    up.observe(EndpointId(0), Ok(200), of(&bob), &s, now);
    for caller in [&ann, &bob] {
        assert_eq!(goes(&mut up, caller, &s, now), Some(0), "restored for all");
    }
}

#[test]
fn failures_of_several_callers_and_those_without_an_answer_eject_for_all() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let callers: Vec<_> = ["ann", "bob", "cy"].map(user).into();
    for (results, is_all) in [
        ([Ok(500); 5], false),
        (
            [Ok(500), Ok(500), Err(Failure::Reset), Ok(500), Ok(500)],
            true,
        ),
        ([Err(Failure::Connect); 5], true),
    ] {
        let mut up = Upstreams::new(&s, 1);
        for result in results {
            up.observe(EndpointId(0), result, of(&callers[0]), &s, NOW);
        }
        let other = goes(&mut up, &callers[1], &s, NOW);
        assert_eq!(other, Some(u32::from(is_all)), "{results:?}");
        let mut up = Upstreams::new(&s, 1);
        for (nth, result) in results.into_iter().enumerate() {
            up.observe(EndpointId(0), result, of(&callers[nth % 2]), &s, NOW);
        }
        assert_eq!(goes(&mut up, &callers[2], &s, NOW), Some(1), "{results:?}");
    }
}

#[test]
fn a_429_of_one_caller_holds_for_that_caller_until_another_one_gets_the_same() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let (ann, bob) = (user("ann"), user("bob"));
    let minute = Duration::from_secs(60);
    for says_time in [true, false] {
        let refused = |up: &mut Upstreams, caller: &Arc<Caller>| match says_time {
            true => up.cooldown(EndpointId(0), of(caller), (429, minute, true), &s, NOW),
            false => up.rest(EndpointId(0), of(caller), &s, NOW),
        };
        let mut up = Upstreams::new(&s, 1);
        refused(&mut up, &ann);
        refused(&mut up, &ann);
        assert_eq!(goes(&mut up, &ann, &s, NOW), Some(1));
        assert_eq!(goes(&mut up, &bob, &s, NOW), Some(0));
        refused(&mut up, &bob);
        assert_eq!(goes(&mut up, &user("cy"), &s, NOW), Some(1));
    }
    let mut up = Upstreams::new(&s, 1);
    up.cooldown(EndpointId(0), of(&ann), (429, minute, false), &s, NOW);
    assert_eq!(goes(&mut up, &bob, &s, NOW), Some(1), "it is used up");
}

#[test]
fn what_another_caller_is_asked_for_holds_for_all_as_long_as_it_asks_and_no_longer() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let callers = ["ann", "bob", "cy"].map(user);
    let [ann, bob, cy] = &callers;
    let second = |n| NOW.after(Duration::from_secs(n));
    let mut up = Upstreams::new(&s, 1);
    let asked = |up: &mut Upstreams, by: &Arc<Caller>, wait, now| {
        let wait = Duration::from_secs(wait);
        up.cooldown(EndpointId(0), of(by), (429, wait, true), &s, now);
    };
    let go = |up: &mut Upstreams, now| callers.each_ref().map(|of| goes(up, of, &s, now));
    asked(&mut up, ann, 50, NOW);
    asked(&mut up, bob, 1, second(20));
    assert_eq!(go(&mut up, second(20)), [Some(1); 3]);
    assert_eq!(go(&mut up, second(21)), [Some(1), Some(0), Some(0)]);
    // A good answer to others between: hers is her own, and so is his.
    up.observe(EndpointId(0), Ok(200), of(cy), &s, second(22));
    asked(&mut up, bob, 5, second(23));
    assert_eq!(go(&mut up, second(23)), [Some(1), Some(1), Some(0)]);
    asked(&mut up, cy, 2, second(24));
    assert_eq!(
        go(&mut up, second(24)),
        [Some(1); 3],
        "he got his with none between"
    );
    assert_eq!(go(&mut up, second(28)), [Some(1), Some(0), Some(0)]);
    // One of another model is none.
    asked(&mut up, bob, 9, second(30));
    let other = Wanted {
        model: Some("n"),
        ..of(cy)
    };
    up.observe(EndpointId(0), Ok(200), other, &s, second(30));
    asked(&mut up, cy, 9, second(30));
    assert_eq!(go(&mut up, second(30)), [Some(1); 3]);
}

#[test]
fn a_rest_of_one_caller_stays_its_own_where_others_are_served() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let callers = ["ann", "bob", "cy"].map(user);
    let [ann, bob, cy] = &callers;
    let mut up = Upstreams::new(&s, 1);
    let go = |up: &mut Upstreams| callers.each_ref().map(|of| goes(up, of, &s, NOW));
    up.rest(EndpointId(0), of(ann), &s, NOW);
    up.observe(EndpointId(0), Ok(200), of(cy), &s, NOW);
    up.rest(EndpointId(0), of(bob), &s, NOW);
    assert_eq!(go(&mut up), [Some(0), Some(1), Some(0)], "the newest");
    up.rest(EndpointId(0), of(ann), &s, NOW);
    assert_eq!(go(&mut up), [Some(1); 3]);
}

#[test]
fn whoever_says_several_names_is_one_caller() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let said = |by, key: Option<&str>, name: Option<&str>| {
        Arc::new(Caller {
            by,
            key: key.map(Arc::from),
            user: name.map(Arc::from),
            is_user_said: by != Proven::Header && name.is_some(),
            ..Caller::default()
        })
    };
    for (by, key) in [(Proven::Header, None), (Proven::Key, Some("k"))] {
        let [a, b, none] = [Some("a"), Some("b"), None].map(|name| said(by, key, name));
        let mut up = Upstreams::new(&s, 1);
        for caller in [&a, &b, &none].repeat(10) {
            up.observe(EndpointId(0), Ok(500), of(caller), &s, NOW);
        }
        for caller in [&a, &b, &none, &said(by, key, Some("c"))] {
            assert_eq!(goes(&mut up, caller, &s, NOW), Some(1), "{by:?}");
        }
        assert_eq!(goes(&mut up, &user("ann"), &s, NOW), Some(0), "{by:?}");
        let other = said(Proven::Key, Some("l"), Some("a"));
        assert_eq!(goes(&mut up, &other, &s, NOW), Some(0), "{by:?}");
    }
}

#[test]
fn a_table_full_of_models_that_nobody_has_still_learns_of_another() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    for nth in 0..256 {
        up.rest(EndpointId(0), of_model(&format!("none-{nth}")), &s, NOW);
    }
    up.rest(EndpointId(0), of_model("m"), &s, NOW);
    let mut tries = begin(&mut up, ROUTE, &s);
    let next = up.next(&mut tries, of_model("m"), &s, NOW);
    assert_eq!(next, Some(EndpointId(1)), "a full table learns it");
}

#[test]
fn what_one_call_is_refused_for_says_nothing_of_the_others() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    let asks =
        |up: &Upstreams, at, model: &str| up.asks_usage((BackendId(at), Some(model)), &s, NOW);
    for _ in 0..5 {
        up.refuses_to_be_asked(BackendId(0), Some("m"), NOW);
        up.refuses_to_be_asked(BackendId(0), Some("m"), NOW);
        assert!(asks(&up, 0, "m"));
        up.took_to_be_asked(BackendId(0), Some("m"));
    }
    for _ in 0..3 {
        up.refuses_to_be_asked(BackendId(0), Some("m"), NOW);
    }
    assert!(!asks(&up, 0, "m") && asks(&up, 0, "n") && asks(&up, 1, "m"));
    let carried = Upstreams::carried(&s, &s, &up);
    assert!(!asks(&carried, 0, "m"));
    let later = NOW.after(Duration::from_secs(3600));
    assert!(up.asks_usage((BackendId(0), Some("m")), &s, later));
}

#[test]
fn a_quota_of_calls_without_a_model_holds_no_call_to_one() {
    let s = backends(&[("a", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    up.cooldown(
        EndpointId(0),
        Wanted::default(),
        (429, WAIT_MAX, false),
        &s,
        NOW,
    );
    let mut tries = begin(&mut up, ROUTE, &s);
    assert_eq!(up.next(&mut tries, Wanted::default(), &s, NOW), None);
    assert_eq!(
        up.next(&mut tries, of_model("m"), &s, NOW),
        Some(EndpointId(0))
    );
}

#[test]
fn nobody_is_left_alone_for_longer_than_the_bound() {
    let s = backends(&[("a", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    up.cooldown(
        EndpointId(0),
        Wanted::default(),
        (503, Duration::MAX, false),
        &s,
        NOW,
    );
    assert_eq!(first(&mut up, &s, NOW.after(WAIT_MAX)), 0);
}

/// Calls that found an endpoint, one a second.
fn tried(up: &mut Upstreams, s: &Snapshot, seconds: std::ops::Range<u64>) -> Vec<u64> {
    let goes = |at: &u64| {
        let mut tries = begin(up, ROUTE, s);
        up.next(
            &mut tries,
            Wanted::default(),
            s,
            NOW.after(Duration::from_secs(*at)),
        )
        .is_some()
    };
    seconds.filter(goes).collect()
}

#[test]
fn one_that_asked_for_a_day_is_tried_every_15_seconds_where_there_is_no_other() {
    let s = backends(&[("a", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    let day = Duration::from_secs(86_400);
    up.cooldown(EndpointId(0), Wanted::default(), (429, day, false), &s, NOW);
    let waits = |up: &mut Upstreams, at: u64| {
        let tries = begin(up, ROUTE, &s);
        up.waits(
            &tries,
            Wanted::default(),
            &s,
            NOW.after(Duration::from_secs(at)),
        )
    };
    assert_eq!(waits(&mut up, 0), Some((429, Duration::from_secs(15))));
    assert_eq!(tried(&mut up, &s, 0..40), [15, 30]);
    // Refused again: left alone from then on, and tried as before.
    let asked_again = NOW.after(Duration::from_secs(40));
    up.cooldown(
        EndpointId(0),
        Wanted::default(),
        (429, day, false),
        &s,
        asked_again,
    );
    assert_eq!(tried(&mut up, &s, 40..80), [55, 70]);
    up.observe(
        EndpointId(0),
        Ok(200),
        Wanted::default(),
        &s,
        NOW.after(Duration::from_secs(71)),
    );
    assert_eq!(tried(&mut up, &s, 71..74), [71, 72, 73], "it is back");
}

#[test]
fn one_that_asked_for_a_minute_is_not_tried_before_and_no_success_of_earlier_ends_it() {
    let s = backends(&[("a", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    up.cooldown(
        EndpointId(0),
        Wanted::default(),
        (503, Duration::from_secs(60), false),
        &s,
        NOW,
    );
    up.observe(EndpointId(0), Ok(200), Wanted::default(), &s, NOW);
    assert_eq!(tried(&mut up, &s, 0..62), [60, 61]);
}

#[test]
fn one_that_asked_for_long_is_left_alone_where_there_is_another() {
    let s = backends(&[("a", &[1]), ("b", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    up.cooldown(
        EndpointId(0),
        Wanted::default(),
        (503, WAIT_MAX, false),
        &s,
        NOW,
    );
    for at in 0..300 {
        assert_eq!(first(&mut up, &s, NOW.after(Duration::from_secs(at))), 1);
    }
    let mut tries = begin(&mut up, ROUTE, &s);
    up.next(&mut tries, Wanted::default(), &s, NOW);
    assert_eq!(up.may_retry(&tries, Wanted::default(), &s, NOW), Retry::No);
}

#[test]
fn the_backend_of_the_next_try_is_the_one_whose_endpoint_is_chosen_then() {
    let s = backends(&[("a", &[1]), ("b", &[1, 1])]);
    let day = Duration::from_secs(86_400);
    let asked: [&[u32]; 4] = [&[], &[0], &[1, 2], &[0, 1, 2]];
    let sick: [&[u32]; 3] = [&[], &[0, 1], &[0, 1, 2]];
    let mut found = 0;
    for (asked, sick) in asked.iter().flat_map(|a| sick.iter().map(move |s| (a, s))) {
        for at in 0..40 {
            let mut up = Upstreams::new(&s, 1);
            sick.iter().for_each(|id| eject(&mut up, *id, &s, NOW));
            for id in *asked {
                up.cooldown(
                    EndpointId(*id),
                    Wanted::default(),
                    (429, day, false),
                    &s,
                    NOW,
                );
            }
            let now = NOW.after(Duration::from_secs(at));
            let mut tries = begin(&mut up, ROUTE, &s);
            let told = up.next_backend(&tries, Wanted::default(), &s, now);
            let tried = up.next(&mut tries, Wanted::default(), &s, now);
            let backend = tried.and_then(|id| s.endpoint(id)).map(|of| of.backend);
            assert_eq!(
                told, backend,
                "{asked:?} asked for a day, {sick:?} sick, {at} s"
            );
            found += u32::from(told.is_some());
        }
    }
    assert!(found > 0);
}

#[test]
fn a_kept_connection_that_broke_earns_one_counted_try_at_the_same_endpoint() {
    let s = backends(&[("a", &[1])]);
    let mut up = Upstreams::new(&s, 1);
    let mut tries = begin(&mut up, ROUTE, &s);
    assert_eq!(
        up.may_retry_there(&mut tries, Wanted::default(), &s, NOW),
        Retry::No,
        "nothing was tried"
    );
    assert_eq!(
        up.next(&mut tries, Wanted::default(), &s, NOW),
        Some(EndpointId(0))
    );
    assert_eq!(
        up.may_retry_there(&mut tries, Wanted::default(), &s, NOW),
        Retry::Granted
    );
    assert!(tries.needs_new_connection());
    assert_eq!(
        up.next(&mut tries, Wanted::default(), &s, NOW),
        Some(EndpointId(0))
    );
    assert!(!tries.needs_new_connection());
    assert_eq!(
        (
            tries.made(),
            up.next(&mut tries, Wanted::default(), &s, NOW)
        ),
        (2, None)
    );
    // Ten in hand, and a tenth of one for each first try.
    let spent = (0..20).filter(|_| {
        let mut tries = begin(&mut up, ROUTE, &s);
        up.next(&mut tries, Wanted::default(), &s, NOW)
            .expect("one");
        up.may_retry_there(&mut tries, Wanted::default(), &s, NOW) == Retry::Granted
    });
    assert_eq!(spent.count(), 11);
    let mut tries = begin(&mut up, ROUTE, &s);
    up.next(&mut tries, Wanted::default(), &s, NOW)
        .expect("one");
    assert_eq!(
        up.may_retry_there(&mut tries, Wanted::default(), &s, NOW),
        Retry::Refused
    );
    assert!(!tries.needs_new_connection());
}

#[test]
fn what_may_have_run_went_up_whole_and_was_not_answered() {
    let all = [Sent::Nothing, Sent::Part, Sent::Whole, Sent::Answered];
    for sent in all {
        let is_whole = sent == Sent::Whole;
        for failure in [
            Failure::Reset,
            Failure::FirstByteTimeout,
            Failure::Malformed,
        ] {
            assert_eq!(failure.may_have_run(sent), is_whole, "{failure:?} {sent:?}");
        }
        for failure in [Failure::Connect, Failure::Tls, Failure::Status(500)] {
            assert!(!failure.may_have_run(sent), "{failure:?} {sent:?}");
        }
    }
}

#[test]
fn only_inference_calls_and_reads_may_run_twice() {
    for operation in Operation::ALL {
        let repeats = operation.reads_body();
        assert_eq!(
            may_repeat(operation, Method::Post),
            repeats,
            "{operation:?}"
        );
        assert!(may_repeat(operation, Method::Get), "{operation:?}");
    }
    assert!(!may_repeat(Operation::Unread, Method::Delete));
}

/// The retries that so many first tries are given.
fn retries_of(firsts: u32, s: &Snapshot) -> u32 {
    let mut up = Upstreams::new(s, 1);
    let mut retries = 0;
    for _ in 0..firsts {
        let mut tries = begin(&mut up, ROUTE, s);
        up.next(&mut tries, Wanted::default(), s, NOW).expect("one");
        while up.may_retry(&tries, Wanted::default(), s, NOW) == Retry::Granted {
            retries += 1;
            up.next(&mut tries, Wanted::default(), s, NOW)
                .expect("another");
        }
    }
    retries
}

#[test]
fn a_route_says_how_many_tries_an_exchange_has() {
    let mut s = backends(&[("a", &[1; 9])]);
    for most in 1..=MAX_ATTEMPTS {
        s.routes[0].retries.attempts = most;
        assert_eq!(all(&mut Upstreams::new(&s, 1), &s).len(), most);
    }
    s.routes[0].retries.attempts = 1;
    assert_eq!(retries_of(100, &s), 0);
    let mut up = Upstreams::new(&s, 1);
    let mut tries = begin(&mut up, ROUTE, &s);
    up.next(&mut tries, Wanted::default(), &s, NOW)
        .expect("one");
    assert_eq!(
        up.may_retry_there(&mut tries, Wanted::default(), &s, NOW),
        Retry::No,
        "nor over another connection"
    );
}

#[test]
fn a_route_says_which_share_of_its_tries_is_tried_again() {
    let mut s = backends(&[("a", &[1, 1])]);
    for (share_millionths, burst, retries) in [
        (0, 3, 3),
        (250_000, 1, 251),
        (1_000_000, 1, 1000),
        (100_000, 10, 110),
    ] {
        s.routes[0].retries = Retries {
            share_millionths,
            burst,
            ..Retries::default()
        };
        let given = retries_of(1000, &s);
        // What is earned while all is saved up is lost.
        assert!(
            given <= retries && given + 1 >= retries,
            "{given} {retries}"
        );
    }
}

#[test]
fn a_reload_saves_up_no_more_than_the_new_route_says() {
    let old = backends(&[("a", &[1, 1])]);
    let mut new = backends(&[("a", &[1, 1])]);
    new.routes[0].retries.burst = 2;
    let mut up = Upstreams::carried(&new, &old, &Upstreams::new(&old, 1));
    let spent = std::iter::from_fn(|| up.retries[0].spend().then_some(()));
    assert_eq!(spent.count(), 2);
}

#[test]
fn a_backend_says_when_its_endpoints_are_left_alone_and_for_how_long() {
    let mut s = backends(&[("a", &[1]), ("b", &[1])]);
    let time = Duration::from_secs(20);
    s.backends[0].ejection = Ejection {
        failures: 2,
        time,
        max_time: time + time / 2,
    };
    let mut up = Upstreams::new(&s, 1);
    let failed = |up: &mut Upstreams, endpoint, now| {
        up.observe(
            EndpointId(endpoint),
            Err(Failure::Connect),
            Wanted::default(),
            &s,
            now,
        );
        is_ejected(up, endpoint, now)
    };
    assert!(!failed(&mut up, 0, NOW));
    assert!(failed(&mut up, 0, NOW));
    for _ in 0..4 {
        assert!(
            !failed(&mut up, 1, NOW),
            "the other backend says nothing of it"
        );
    }
    assert!(is_ejected(&up, 0, Mono(NOW.after(time).0 - 1)));
    let trial = NOW.after(time);
    assert_eq!(first(&mut up, &s, trial), 0);
    assert_eq!(first(&mut up, &s, trial), 1, "one at a time, for as long");
    assert!(failed(&mut up, 0, trial));
    assert!(
        !is_ejected(&up, 0, trial.after(time + time / 2)),
        "not twice the time"
    );
}
