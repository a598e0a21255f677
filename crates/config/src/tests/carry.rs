//! What a reload keeps.

use std::time::Duration;

use policy::clock::Mono;
use policy::id::{BudgetId, LimitId};
use policy::limit::{Bucket, Denied};
use policy::revision::Revision;

use super::world::World;

const BASE: &str = "backends: { a: { url: http://127.0.0.1:1/v1, credential: { file: key } } }\n";

fn document(routes: &str) -> World {
    let mut world = World::with(&format!("{BASE}routes:\n{routes}"));
    world.put("key", "canary-one\n");
    world
}

fn first(world: &World) -> Revision {
    Revision::first(world.load().unwrap().snapshot)
}

fn next(routes: &str, before: &Revision, now: Mono) -> Revision {
    before.next(document(routes).load().unwrap().snapshot, now)
}

fn bucket(of: &Revision, limit: u32) -> &Bucket {
    of.levels.bucket(LimitId(limit)).unwrap()
}

#[test]
fn an_unchanged_limit_keeps_its_bucket_when_a_route_is_put_before_it() {
    let before = first(&document(
        "  - { workload: w, backend: a, limits: [{ requests: 2, per: 1m }] }",
    ));
    let after = next(
        "  - { workload: v, backend: a }\n  - { workload: w, backend: a, limits: [{ requests: 2, per: 1m }] }",
        &before,
        Mono(0),
    );
    assert!(std::ptr::eq(bucket(&before, 0), bucket(&after, 0)));
}

#[test]
fn each_workload_and_each_route_has_its_own_bucket() {
    let loaded = document(
        "  - { workload: [w, v], match: { model: m }, backend: a, limits: [{ requests: 2, per: 1m }] }\n  - { workload: w, backend: a, limits: [{ requests: 2, per: 1m }] }",
    )
    .load()
    .unwrap();
    let limits = &loaded.snapshot.limits;
    let mut keys: Vec<_> = limits.iter().map(|l| l.key.as_str()).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["v/[m]/requests", "w/[*]/requests", "w/[m]/requests"]);
}

#[test]
fn a_new_rate_keeps_what_is_owed() {
    let now = Mono(5_000_000_000);
    let before = first(&document(
        "  - { workload: w, backend: a, limits: [{ tokens: 60, per: 1m }] }",
    ));
    bucket(&before, 0).take(60, now).unwrap();
    for changed in [
        "{ tokens: 120, per: 1m }",
        "{ tokens: 60, per: 1h }",
        "{ tokens: 60, per: 1m, burst: 70 }",
    ] {
        let routes = format!("  - {{ workload: w, backend: a, limits: [{changed}] }}");
        let after = next(&routes, &before, now);
        assert!(!std::ptr::eq(bucket(&before, 0), bucket(&after, 0)));
        let bucket = bucket(&after, 0);
        let room = bucket.rate().burst - 60;
        assert!(
            bucket.level(now).remaining <= room,
            "{changed}: {:?}",
            bucket.level(now)
        );
        assert!(
            matches!(bucket.take(room + 1, now), Err(Denied::Wait(_))),
            "{changed}"
        );
    }
}

#[test]
fn the_exact_window_is_matched_before_a_rewritten_one() {
    let before = first(&document(
        "  - { workload: w, backend: a, limits: [{ tokens: 10, per: 1m }, { tokens: 20, per: 1h }] }",
    ));
    let after = next(
        "  - { workload: w, backend: a, limits: [{ tokens: 30, per: 1d }, { tokens: 10, per: 1m }] }",
        &before,
        Mono(0),
    );
    assert!(std::ptr::eq(bucket(&before, 0), bucket(&after, 1)));
    let day = bucket(&after, 0);
    assert_eq!(day.rate().per, Duration::from_secs(86_400));
}

#[test]
fn the_version_moves_with_the_document_and_with_a_secret_and_not_otherwise() {
    let routes = "  - { workload: w, backend: a }";
    let first = first(&document(routes));
    let (hash, generation) = first.snapshot.version.split_once('-').unwrap();
    assert_eq!((hash.len(), generation), (12, "1"));

    let same = next(routes, &first, Mono(0));
    assert_eq!(same.snapshot.version, first.snapshot.version);

    let commented = next(&format!("  # a comment\n{routes}"), &first, Mono(0));
    assert_eq!(commented.snapshot.version, first.snapshot.version);

    let mut rotated = document(routes);
    rotated.put("key", "canary-two\n");
    let rotated = first.next(rotated.load().unwrap().snapshot, Mono(0));
    assert_eq!(*rotated.snapshot.version, *format!("{hash}-2"));

    let changed = next("  - { workload: v, backend: a }", &rotated, Mono(0));
    assert!(
        changed.snapshot.version.ends_with("-3"),
        "{}",
        changed.snapshot.version
    );
    assert!(!changed.snapshot.version.starts_with(hash));
}

#[test]
fn a_refused_document_still_says_what_to_watch() {
    let world = World::with(
        "backends: { a: { url: http://h/v1, credential: { file: key } } }\nroutes: [{ workload: w, backend: a }]",
    );
    let faults = world.load().unwrap_err();
    assert!(
        faults.watched.iter().any(|p| p.ends_with("key")),
        "{:?}",
        faults.watched
    );
}

fn budgets(budgets: &str) -> World {
    let text = format!(
        "{BASE}routes: [ {{ workload: w, backend: a }} ]\nledger: {{ path: usage.db }}\nbudgets: {{ {budgets} }}\n"
    );
    let mut world = World::with(&text);
    world.put("key", "canary-one\n");
    world
}

#[test]
fn a_budget_keeps_what_was_spent_when_its_amount_changes_and_others_come_and_go() {
    let before = first(&budgets(
        "b: { tokens: 5, per: day }, x: { tokens: 1, per: day }",
    ));
    for (changed, kept) in [
        (
            "a: { tokens: 1, per: day }, b: { tokens: 9, per: day, workload: w }",
            true,
        ),
        (
            "a: { tokens: 1, per: day }, b: { tokens: 5, per: week }",
            false,
        ),
        (
            "a: { tokens: 1, per: day }, b: { tokens: 5, per: day, zone: \"+01:00\" }",
            false,
        ),
        (
            "a: { tokens: 1, per: day }, c: { tokens: 5, per: day }",
            false,
        ),
    ] {
        let after = before.next(budgets(changed).load().unwrap().snapshot, Mono(0));
        let [old, new] = [
            before.levels.spent(BudgetId(0)),
            after.levels.spent(BudgetId(1)),
        ];
        assert_eq!(std::ptr::eq(old.unwrap(), new.unwrap()), kept, "{changed}");
    }
}

/// Ids of the prices of a document, in their order.
fn price_ids(prices: &str) -> Vec<String> {
    let text = format!("{BASE}routes: [ {{ workload: w, backend: a }} ]\nprices: {prices}\n");
    let mut world = World::with(&text);
    world.put("key", "canary-one\n");
    let loaded = world.load().unwrap();
    let ids = loaded
        .snapshot
        .prices
        .iter()
        .map(|(_, _, p)| p.id.to_string());
    ids.collect()
}

#[test]
fn a_price_has_the_same_id_however_it_is_written_and_another_when_it_says_something_else() {
    let one = price_ids("{ m: { input: 0.10, output: 0.4 } }");
    for same in [
        "{ m: { output: \"0.40\", input: 0.1, per: 1M } }",
        "{ m: { input: 0.0000001, output: 0.0000004, per: 1, currency: USD, request: 0.0 } }",
        "{ m: { input: 0.1, output: 0.4, cached_input: 0.1, reasoning: 0.4 } }",
    ] {
        assert_eq!(price_ids(same), one, "{same}");
    }
    for other in [
        "{ n: { input: 0.10, output: 0.4 } }",
        "{ m: { input: 0.11, output: 0.4 } }",
        "{ m: { input: 0.10, output: 0.4, currency: EUR } }",
        "{ m: { input: 0.10, output: 0.4, request: 1 } }",
        "{ m: { input: 0.10, output: 0.4, cached_input: 0 } }",
        "{ m: { input: 0.10, output: 0.4, reasoning: 0 } }",
        "{ m: { input: 0.10, output: 0.4, tiers: [ { above: 1, input: 0.10, output: 0.4 } ] } }",
    ] {
        assert_ne!(price_ids(other), one, "{other}");
    }
    let two =
        price_ids("{ m: { input: 0.1, output: 0.4, at: { a: { input: 0.1, output: 0.4 } } } }");
    assert_eq!(two[0], one[0]);
    assert_ne!(two[1], one[0], "it is of something else");
}
