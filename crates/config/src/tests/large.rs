//! Documents as large as they may be, and texts made to be slow to read.

use std::fmt::Write as _;

use policy::clock::Mono;
use policy::id::LimitId;
use policy::revision::Revision;

use super::world::World;

/// So many routes of a hundred workloads, each with a limit of its own.
fn routes(count: u32) -> World {
    let mut text = String::from("backends: { a: { url: http://127.0.0.1:1/v1 } }\nroutes:\n");
    for n in 0..count {
        let _ = writeln!(
            text,
            "  - {{ workload: w{}, match: {{ model: m{n} }}, backend: a, limits: [{{ requests: 1, per: 1m }}] }}",
            n % 100
        );
    }
    World::with(&text)
}

#[test]
fn ten_thousand_routes_are_taken() {
    let taken = routes(10_000).load().unwrap().snapshot;
    assert_eq!((taken.routes.len(), taken.workloads.len()), (10_000, 100));
    assert_eq!(taken.limits.len(), 10_000);
}

#[test]
fn many_routes_that_are_taken_again_keep_their_levels() {
    let world = routes(1_000);
    let load = || world.load().unwrap().snapshot;
    let first = Revision::first(load());
    let again = first.next(load(), Mono(1));
    assert_eq!(again.snapshot.limits.len(), 1_000);
    let bucket = |of: &Revision, id| std::ptr::from_ref(of.levels.bucket(id).unwrap());
    let mut ids = (0..1_000).map(LimitId);
    assert!(ids.all(|id| bucket(&first, id) == bucket(&again, id)));
}

#[test]
fn more_than_the_bounds_is_refused() {
    let too_long = World::with(&format!("#{}\n", "x".repeat(4 << 20)))
        .load()
        .unwrap_err();
    let said = too_long.to_string();
    assert!(said.contains("larger than 4 MiB, and no more"), "{said}");
    let mut world = World::with(
        "backends: { a: { url: https://one.example/v1, ca: ca.pem } }\nroutes: [ { workload: w, backend: a } ]\n",
    );
    world.put("ca.pem", vec![b'x'; (4 << 20) + 1]);
    let said = world.load().unwrap_err().to_string();
    assert!(said.contains("\"ca.pem\" is larger than 4 MiB"), "{said}");
    let many = World::with(&format!("a: [{}]\n", "x,".repeat(300_000)))
        .load()
        .unwrap_err();
    assert!(
        many.to_string().contains("more than 200000 values"),
        "{many}"
    );
}

#[test]
fn texts_made_to_be_slow_are_refused_all_the_same() {
    let filled = |piece: &str| piece.repeat((256 << 10) / piece.len());
    for piece in [
        "[", "{", "- ", "? ", "a: ", "a:\n ", "\"", "'", "&a ", "*a ", "!", "%", "|\n", "#\n",
        "\n", " ", "\t", "${", "\\", "-\n", "[a,", "{a: ", "---\n", "\r", "é",
    ] {
        let began = testing::Began::now();
        let faults = World::with(&filled(piece)).load().unwrap_err();
        println!("{piece:?}: {}", began.shown());
        assert!(!faults.faults.is_empty(), "{piece:?}");
    }
}
