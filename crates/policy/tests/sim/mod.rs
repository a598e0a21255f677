//! A simulated fleet: clients, workers and faulty engines in virtual time, one seed.
//!
//! Invariant: a run is a function of its seed. The checkers see only what a client and an engine
//! could see, never the inside of a bucket.
//! Not here: sockets and real time (the end-to-end tests), one rule at a time (`tests.rs`).

mod checkers;
mod engines;
mod fleet;
pub(crate) mod rng;

use checkers::check;
use fleet::{Fleet, Scene, Seen};
use policy::limit::Kind;

/// Seeds that are always run; one of a run that failed is added here.
const CORPUS: &str = include_str!("../corpus/sim.txt");

fn corpus() -> impl Iterator<Item = u64> {
    CORPUS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.trim().parse().ok())
}

#[test]
fn limits_hold_and_every_admitted_call_settles_once_in_the_committed_runs() {
    let mut runs = 0;
    let (mut admitted, mut refused, mut retried, mut aborted, mut ejected) = (0, 0, 0, 0, 0);
    for seed in corpus() {
        println!("sim seed {seed}");
        let seen = Fleet::run(seed, &Scene::of(seed));
        check(&seen).unwrap_or_else(|says| panic!("seed {seed}: {says}"));
        runs += 1;
        admitted += seen.calls.iter().filter(|c| c.admitted()).count();
        refused += seen.calls.iter().filter(|c| !c.admitted()).count();
        retried += seen.calls.iter().filter(|c| c.tries.len() > 1).count();
        aborted += seen.calls.iter().filter(|c| c.aborted).count();
        ejected += seen.ejections;
    }
    assert!(runs >= 8, "the corpus is there");
    // They are worth checking.
    println!(
        "{admitted} admitted, {refused} refused, {retried} retried, {aborted} aborted, {ejected} ejected"
    );
    assert!(admitted > 1000 && refused > 1000, "limits are reached");
    assert!(
        retried > 50 && aborted > 50 && ejected > 10,
        "faults happen"
    );
}

#[test]
fn limits_hold_and_every_admitted_call_settles_once_in_fresh_runs() {
    let first = testing::seed("sim");
    for seed in (0..4).map(|n| first.wrapping_add(n)) {
        check(&Fleet::run(seed, &Scene::of(seed)))
            .unwrap_or_else(|says| panic!("seed {seed}: {says}"));
    }
}

#[test]
fn a_run_is_a_function_of_its_seed() {
    let run = |seed| format!("{:?}", Fleet::run(seed, &Scene::of(seed)).calls);
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
}

/// The canary: a gate that forgets to settle must not pass.
#[test]
#[should_panic(expected = "settled 0 times")]
fn a_gate_that_forgets_to_settle_is_caught() {
    let scene = Scene {
        forget_every: Some(50),
        ..Scene::of(1)
    };
    check(&Fleet::run(1, &scene)).unwrap_or_else(|says| panic!("{says}"));
}

/// The canaries: a gate that admits more than was promised must not pass.
#[test]
#[should_panic(expected = "requests in a window")]
fn a_gate_that_admits_too_many_requests_is_caught() {
    check(&with_half_promised(Kind::Requests)).unwrap_or_else(|says| panic!("{says}"));
}

#[test]
#[should_panic(expected = "tokens in a window")]
fn a_gate_that_admits_too_many_tokens_is_caught() {
    check(&with_half_promised(Kind::Tokens)).unwrap_or_else(|says| panic!("{says}"));
}

/// A run in which tokens are the scarcer limit, so that both kinds are reached.
fn with_half_promised(kind: Kind) -> Seen {
    let mut scene = Scene::of(1);
    if kind == Kind::Tokens {
        scene.requests = crate::fixture::rate(1000, 1);
        scene.tokens = crate::fixture::rate(20_000, 60);
    }
    let mut seen = Fleet::run(1, &scene);
    for limit in seen.promised.iter_mut().filter(|limit| limit.kind == kind) {
        limit.rate.amount = (limit.rate.amount / 2).max(1);
        limit.rate.burst = (limit.rate.burst / 2).max(1);
    }
    seen
}
