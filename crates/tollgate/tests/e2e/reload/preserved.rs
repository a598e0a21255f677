//! What a reload preserves: exchanges in flight, the state of limits, and the listener.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use super::{call, one_route, reload, version};
use crate::harness::streams::{self, Streams};
use crate::harness::{Connection, Gate, chat, post};

#[test]
fn an_exchange_keeps_the_configuration_version_it_started_with() {
    let (old, new) = (
        Streams::start(Duration::from_millis(20)),
        Streams::start(Duration::from_millis(20)),
    );
    let gate = Gate::start(&one_route(old.address), &[]);
    // A kept-alive connection serves its next exchange under the new version.
    let mut kept = Connection::open(gate.data);
    let request = post(
        "/v1/chat/completions",
        &["x-workload-app: w"],
        &chat("m", false),
    );
    assert_eq!(kept.call(&request).status, 200);
    let clients = streams::open(gate.data, None, 0..20);
    testing::eventually("all streams are open", || {
        gate.metric("tollgate_open_streams", &[]) == 20.0
    });
    let first = version(&gate);
    reload(
        &gate,
        &one_route(new.address).replace("workload: w", "workload: [w, v]"),
    );
    let second = version(&gate);

    assert_eq!((old.credentials().len(), new.credentials().len()), (21, 0));
    assert_eq!(kept.call(&request).status, 200);
    assert_eq!((old.credentials().len(), new.credentials().len()), (21, 1));
    reload(
        &gate,
        &one_route(new.address).replace("workload: w", "workload: v"),
    );
    assert_eq!(kept.call(&request).code(), "workload_not_registered");
    assert_eq!(call(&gate, "v").status, 200);

    old.finish();
    for stream in clients.join().expect("the clients run to their end") {
        stream.assert_identical(&old.sent(stream.n));
    }
    let records = gate.records(24);
    assert_eq!(records.len(), 24, "one record for each exchange");
    let of = |version: &str| records.iter().filter(|r| r["config"] == version).count();
    assert_eq!((of(&first), of(&second)), (21, 1));
    let removed = records
        .iter()
        .filter(|r| r["code"] == "workload_not_registered");
    assert_eq!(removed.count(), 1);
}

#[test]
fn a_reload_keeps_the_usage_and_counters_of_a_limit() {
    let upstream = Streams::start(Duration::from_millis(20));
    let config = |requests: u32, others: &str| {
        format!(
            "backends: {{ up: {{ url: http://{}/v1 }} }}\n\
             routes: [ {others} {{ name: r, workload: w, backend: up, \
             limits: [ {{ requests: {requests}, per: 1h }} ] }} ]\n",
            upstream.address
        )
    };
    let gate = Gate::start(&config(3, ""), &[]);
    let statuses = |n: usize| (0..n).map(|_| call(&gate, "w").status).collect::<Vec<_>>();
    assert_eq!(statuses(2), [200, 200]);
    reload(
        &gate,
        &config(3, "{ name: before, workload: other, backend: up },"),
    );
    assert_eq!(statuses(3), [200, 429, 429]);
    reload(&gate, &config(3, ""));
    assert_eq!(statuses(2), [429, 429], "neither reload made it forget");
    let counted = gate.metric("http_local_rate_limit_rate_limited", &["workload=\"w\""]);
    assert_eq!(counted, 4.0, "counters go on over reloads");
    assert_eq!(gate.records(7).len(), 7);
}

#[test]
fn a_limit_is_exact_during_reloads() {
    const ADMITTED: usize = 300;
    const CALLS: usize = 1500;
    const RELOADS: usize = 10;
    let upstream = Streams::start(Duration::from_millis(20));
    let config = |n: usize| {
        format!(
            "backends: {{ up: {{ url: http://{}/v1, timeouts: {{ idle: {}s }} }} }}\n\
             routes: [ {{ name: r, workload: w, backend: up, \
             limits: [ {{ requests: {ADMITTED}, per: 24h }}, {{ tokens: 100M, per: 1h }} ] }} ]\n",
            upstream.address,
            60 + n,
        )
    };
    let gate = Gate::start(&config(0), &[]);
    let request = post(
        "/v1/chat/completions",
        &["x-workload-app: w"],
        &chat("m", false),
    );
    // Calls and reloads continue until there are enough of both, however the machine schedules them.
    let (made, changed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let is_enough =
        || made.load(Ordering::SeqCst) >= CALLS && changed.load(Ordering::SeqCst) >= RELOADS;
    let statuses = std::thread::scope(|scope| {
        let client = || {
            let mut statuses = Vec::new();
            while !is_enough() {
                made.fetch_add(1, Ordering::SeqCst);
                statuses.push(Connection::open(gate.data).call(&request).status);
            }
            statuses
        };
        let clients: Vec<_> = (0..6).map(|_| scope.spawn(client)).collect();
        while !is_enough() {
            let n = changed.load(Ordering::SeqCst) + 1;
            reload(&gate, &config(n));
            changed.store(n, Ordering::SeqCst);
        }
        let all = clients
            .into_iter()
            .flat_map(|c| c.join().expect("a client ends"));
        all.collect::<Vec<_>>()
    });
    let admitted = statuses.iter().filter(|s| **s == 200).count();
    let refused = statuses.iter().filter(|s| **s == 429).count();
    assert_eq!(admitted + refused, statuses.len(), "{statuses:?}");
    assert_eq!(admitted, ADMITTED, "of {CALLS} calls");
    assert_eq!(gate.records(statuses.len()).len(), statuses.len());
}

#[test]
fn a_changed_listen_address_does_not_move_the_listener() {
    let upstream = Streams::start(Duration::from_millis(20));
    let gate = Gate::start(&one_route(upstream.address), &[]);
    let head = std::fs::read_to_string(gate.path("head.yaml")).expect("it was written");
    let moved = head.replace(&gate.data.to_string(), "127.0.0.1:9");
    assert_ne!(moved, head);
    let before = version(&gate);
    gate.replace(
        "tollgate.yaml",
        (moved + &one_route(upstream.address)).as_bytes(),
    );
    testing::eventually("it is taken", || version(&gate) != before);
    assert_eq!(call(&gate, "w").status, 200);
    assert_eq!(gate.admin("/readyz").status, 200);
}
