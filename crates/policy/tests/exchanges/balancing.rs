//! Where calls of a balanced backend go, and where they are counted.
//!
//! Not here: the arithmetic of a choice (`policy::balancing`).

use std::sync::Arc;

use policy::balancing::{Balancer, By, Standing, Why};
use policy::clock::Mono;
use policy::exchange::Verdict;
use policy::operation::Operation::Completions;
use policy::snapshot::Snapshot;
use policy::wire::meter::Meter;

use crate::fixture::{BackendPlan, ONE, RoutePlan, snapshot};
use crate::world::{Asked, NOW, World, call, plan};

const JSON: &str = "application/json";

/// A backend of three addresses, balanced so, and one behind it that is not.
fn three(by: By) -> Snapshot {
    let pool = BackendPlan {
        name: "pool",
        weights: &[1, 1, 1],
        ..ONE
    };
    let mut s = snapshot(&[RoutePlan {
        backends: &[pool, ONE],
        ..plan()
    }]);
    s.backends[0].balancer = Some(Balancer::new(by, 3));
    s.is_balanced = true;
    s
}

fn body(nth: u32) -> String {
    format!(r#"{{"model":"m","max_tokens":10,"prompt":"{nth:_<40000}"}}"#)
}

fn standing(world: &World, place: usize, now: Mono) -> Standing {
    let balancer = world.of.snapshot.backends[0].balancer.as_ref();
    let endpoint = balancer.and_then(|balancer| balancer.endpoint(place));
    endpoint.expect("an endpoint").load.standing(now)
}

/// Calls that run at each address.
fn in_flight(world: &World) -> [u32; 3] {
    [0, 1, 2].map(|place| standing(world, place, NOW).in_flight)
}

/// A call that has begun, and where it went.
fn begun(world: &mut World, nth: u32) -> (Asked, usize) {
    let body = body(nth);
    let mut asked = world.ask(&call(Completions, &body));
    let plan = world.attempt(&mut asked);
    (asked, plan.endpoint.index())
}

fn answered(world: &mut World, asked: &mut Asked) {
    asked.exchange.sent(true);
    world.response(asked, 200, JSON);
    asked.exchange.answers(NOW, false);
    let mut meter = Meter::new(asked.relay().form);
    world.end(asked, &mut meter, false);
}

#[test]
fn calls_with_one_beginning_go_to_one_address_and_others_elsewhere() {
    let mut world = World::new(three(By::PrefixCache));
    let mut places = Vec::new();
    for nth in [1, 2, 3] {
        let (mut asked, place) = begun(&mut world, nth);
        answered(&mut world, &mut asked);
        places.push(place);
    }
    for (nth, before) in [1, 2, 3].into_iter().zip(&places) {
        let (mut asked, place) = begun(&mut world, nth);
        assert_eq!(place, *before, "prompt {nth}");
        let chosen = asked.record().extra.as_ref().and_then(|extra| extra.chosen);
        let chosen = chosen.expect("a choice");
        assert_eq!(chosen.why, Why::Prefix);
        assert!(
            chosen.seen > 39_000 && chosen.prompt == 40_002,
            "{chosen:?}"
        );
        answered(&mut world, &mut asked);
    }
    assert_eq!(in_flight(&world), [0, 0, 0]);
}

#[test]
fn a_call_is_counted_where_it_runs_and_its_prompt_until_it_is_answered() {
    let mut world = World::new(three(By::LeastLoad));
    let mut open: Vec<(Asked, usize)> = (0..6).map(|nth| begun(&mut world, nth)).collect();
    assert_eq!(in_flight(&world), [2, 2, 2]);
    let (asked, place) = &mut open[0];
    let before = standing(&world, *place, NOW).unread_bytes;
    let bytes = body(0).len() as u64;
    asked.exchange.sent(true);
    world.response(asked, 200, JSON);
    asked.exchange.answers(NOW, false);
    let after = standing(&world, *place, NOW);
    assert_eq!(
        (before, after.unread_bytes, after.in_flight),
        (2 * bytes, bytes, 2)
    );
    let (dropped, place) = open.swap_remove(1);
    drop(dropped);
    assert_eq!(standing(&world, place, NOW).in_flight, 1);
}

#[test]
fn a_failed_attempt_moves_the_call_to_another_address() {
    let mut world = World::new(three(By::LeastRequest));
    let (mut asked, first) = begun(&mut world, 1);
    asked.exchange.sent(true);
    world.response(&mut asked, 503, JSON);
    let Verdict::Attempt(plan) = &asked.verdict else {
        panic!("{:?}", asked.verdict);
    };
    let second = plan.endpoint.index();
    assert_ne!(first, second);
    let mut expected = [0, 0, 0];
    expected[second] = 1;
    assert_eq!(in_flight(&world), expected);
    // Then the third, and at last a backend that is not balanced, where nothing is counted.
    world.response(&mut asked, 503, JSON);
    world.response(&mut asked, 503, JSON);
    let Verdict::Attempt(plan) = &asked.verdict else {
        panic!("{:?}", asked.verdict);
    };
    assert_eq!(plan.endpoint.index(), 3);
    assert_eq!(in_flight(&world), [0, 0, 0]);
    assert_eq!(
        asked.record().extra,
        None,
        "it was not chosen by a balancer"
    );
}

#[test]
fn what_is_known_of_an_address_outlives_a_reload() {
    let mut world = World::new(three(By::PrefixCache));
    let (mut asked, place) = begun(&mut world, 1);
    asked.exchange.answers(NOW, false);
    let old = Arc::clone(&world.of);
    world.reload(three(By::PrefixCache));
    assert!(!Arc::ptr_eq(&old, &world.of));
    assert_eq!(in_flight(&world)[place], 1, "it runs there still");
    let (mut again, where_to) = begun(&mut world, 1);
    assert_eq!(where_to, place, "its prompt was seen there");
    answered(&mut world, &mut again);
    // One of the older revision is counted out of what both share.
    asked.exchange.give_up(false);
    let mut elsewhere = World::of(Arc::clone(&old));
    asked
        .exchange
        .finish(&mut Meter::default(), false, &mut elsewhere.env());
    drop(asked);
    assert_eq!(in_flight(&world), [0, 0, 0]);
}
