//! Request limits.

use std::sync::{Arc, Barrier};
use std::time::Duration;

use super::{assert_refused, call, call_without_tokens, config, engine, number, refused};
use crate::harness::{Connection, Gate, Response};

/// Opens all connections, then sends one call on each of them at the same time.
fn call_concurrently(gate: &Gate, calls: usize) -> Vec<Response> {
    let barrier = Arc::new(Barrier::new(calls));
    let threads: Vec<_> = (0..calls)
        .map(|_| {
            let (mut connection, barrier) = (Connection::open(gate.data), Arc::clone(&barrier));
            std::thread::spawn(move || {
                barrier.wait();
                connection.call(&call("a", 1, "1,1"))
            })
        })
        .collect();
    threads
        .into_iter()
        .map(|t| t.join().expect("an answer"))
        .collect()
}

fn admitted(responses: &[Response]) -> usize {
    for refused in responses.iter().filter(|r| r.status != 200) {
        assert_refused(refused, "in a volley");
    }
    responses.iter().filter(|r| r.status == 200).count()
}

#[test]
fn two_a_minute_admits_two_of_64_concurrent_connections() {
    let upstream = engine();
    let gate = Gate::start(&config(&upstream, "{ requests: 2, per: 1m }"), &[]);
    let responses = call_concurrently(&gate, 64);
    assert_eq!(admitted(&responses), 2);
    assert_eq!(
        upstream.seen().len(),
        2,
        "a refused call costs the upstream nothing"
    );
    assert!((refused(&gate, "a", "requests") - 62.0).abs() < 0.1);
    let records = gate.records(64);
    let of = |outcome: &str| records.iter().filter(|r| r["outcome"] == outcome).count();
    assert_eq!((of("completed"), of("refused"), records.len()), (2, 62, 64));
    assert!(
        records
            .iter()
            .all(|r| (r["limited"] == "requests") == (r["status"] == 429))
    );
}

/// A bucket would have one again after 30 seconds.
#[test]
fn two_in_any_minute_admit_two_of_64_and_tell_the_rest_to_wait_for_the_whole_minute() {
    let upstream = engine();
    let limit = "{ requests: 2, per: 1m, window: rolling }";
    let gate = Gate::start(&config(&upstream, limit), &[]);
    let responses = call_concurrently(&gate, 64);
    assert_eq!(admitted(&responses), 2);
    assert_eq!(upstream.seen().len(), 2);
    for refused in responses.iter().filter(|response| response.status == 429) {
        let wait = number(refused, "retry-after-ms");
        assert!((30_001..=60_000).contains(&wait), "{wait} ms");
        assert_eq!(number(refused, "x-ratelimit-remaining-requests"), 0);
    }
}

#[test]
fn fifty_an_hour_admits_fifty_of_200_concurrent_calls() {
    let upstream = engine();
    let gate = Gate::start(&config(&upstream, "{ requests: 50, per: 1h }"), &[]);
    assert_eq!(admitted(&call_concurrently(&gate, 200)), 50);
    assert_eq!(upstream.seen().len(), 50);
    assert!((refused(&gate, "a", "requests") - 150.0).abs() < 0.1);
}

#[test]
fn each_workload_has_a_limit_of_its_own() {
    let upstream = engine();
    let gate = Gate::start(&config(&upstream, "{ requests: 2, per: 1m }"), &[]);
    for workload in ["a", "b"] {
        let statuses: Vec<_> = (0..4)
            .map(|_| gate.call(&call(workload, 1, "1,1")).status)
            .collect();
        assert_eq!(statuses, [200, 200, 429, 429], "{workload}");
        assert!((refused(&gate, workload, "requests") - 2.0).abs() < 0.1);
        assert!(refused(&gate, workload, "tokens").abs() < 0.1);
    }
}

#[test]
fn rate_limit_headers_are_on_every_answer() {
    let upstream = engine();
    let gate = Gate::start(&config(&upstream, "{ requests: 2, per: 2h }"), &[]);
    let mut connection = Connection::open(gate.data);
    for left in [1, 0] {
        let response = connection.call(&call("a", 1, "1,1"));
        assert_eq!(response.status, 200);
        assert_eq!(number(&response, "x-ratelimit-limit-requests"), 2);
        assert_eq!(number(&response, "x-ratelimit-remaining-requests"), left);
        assert!(response.header("x-ratelimit-reset-requests").is_some());
        assert_eq!(response.header("x-ratelimit-limit-tokens"), None);
    }
    let response = connection.call(&call("a", 1, "1,1"));
    assert_refused(&response, "the third");
    let wait = number(&response, "retry-after-ms");
    assert!(
        (3_480_000..=3_600_000).contains(&wait),
        "one an hour: {wait}"
    );
    assert_eq!(number(&response, "x-ratelimit-remaining-requests"), 0);
    let reset = response
        .header("x-ratelimit-reset-requests")
        .expect("the header is set");
    // Two hours, less what the calls took.
    let near = ["2h0m0", "1h59m", "1h58m"];
    assert!(near.iter().any(|s| reset.starts_with(s)), "{reset}");
}

#[test]
fn a_call_after_retry_after_is_admitted() {
    let upstream = engine();
    let gate = Gate::start(&config(&upstream, "{ requests: 2, per: 1s }"), &[]);
    let mut connection = Connection::open(gate.data);
    let mut admitted = 0;
    for _ in 0..3 {
        let mut response = connection.call(&call_without_tokens("a"));
        while response.status == 200 {
            admitted += 1;
            response = connection.call(&call_without_tokens("a"));
        }
        assert_refused(&response, "used up");
        testing::pace(Duration::from_millis(number(&response, "retry-after-ms")));
        assert_eq!(
            connection.call(&call_without_tokens("a")).status,
            200,
            "as told"
        );
        admitted += 1;
    }
    assert_eq!(upstream.seen().len(), admitted);
}

#[test]
fn several_limits_are_reserved_together_or_not_at_all() {
    let upstream = engine();
    let limits =
        "{ requests: 100, per: 366d }, { tokens: 1000, per: 366d }, { requests: 3, per: 1h }";
    let gate = Gate::start(&config(&upstream, limits), &[]);
    let mut connection = Connection::open(gate.data);
    for _ in 0..3 {
        assert_eq!(connection.call(&call("a", 10, "7,3")).status, 200);
    }
    for _ in 0..10 {
        assert_refused(
            &connection.call(&call("a", 10, "7,3")),
            "3 an hour are used up",
        );
    }
    // Of 13 calls 3 were admitted, so each limit that is not exhausted was used 3 times.
    let wider = "{ requests: 100, per: 366d }, { tokens: 1000, per: 366d }";
    let response = reloaded(&gate, &config(&upstream, wider));
    assert_eq!(response.status, 200);
    assert_eq!(number(&response, "x-ratelimit-remaining-requests"), 96);
    assert_eq!(number(&response, "x-ratelimit-remaining-tokens"), 970);
    assert!((refused(&gate, "a", "requests") - 10.0).abs() < 0.1);
}

#[test]
fn all_of_sixteen_limits_hold() {
    let upstream = engine();
    let wide = (2..17).map(|m| format!("{{ requests: 1000, per: {m}m }}"));
    let limits: Vec<_> = wide
        .chain(["{ requests: 2, per: 1h }".to_owned()])
        .collect();
    let gate = Gate::start(&config(&upstream, &limits.join(", ")), &[]);
    let statuses: Vec<_> = (0..4)
        .map(|_| gate.call(&call_without_tokens("a")).status)
        .collect();
    assert_eq!(statuses, [200, 200, 429, 429]);
}

#[test]
fn a_reload_keeps_the_usage_of_a_limit_also_when_it_is_raised() {
    let upstream = engine();
    let gate = Gate::start(&config(&upstream, "{ requests: 10, per: 366d }"), &[]);
    for _ in 0..4 {
        assert_eq!(gate.call(&call_without_tokens("a")).status, 200);
    }
    // The same limit in another document: 4 of 10 are used, and each check uses one more.
    let same = "{ per: 366d, requests: 10, burst: 10 }";
    let response = reloaded(&gate, &config(&upstream, same));
    assert_eq!(number(&response, "x-ratelimit-remaining-requests"), 5);
    // A raised limit keeps the 5 that are used.
    let wider = "{ requests: 100, per: 366d }";
    let response = reloaded(&gate, &config(&upstream, wider));
    assert_eq!(number(&response, "x-ratelimit-limit-requests"), 100);
    assert_eq!(number(&response, "x-ratelimit-remaining-requests"), 94);
}

/// Reloads this configuration and returns the first answer to workload `a` under it.
fn reloaded(gate: &Gate, config: &str) -> Response {
    let version = || {
        let page = gate.metrics();
        let line = page
            .lines()
            .find(|l| l.starts_with("tollgate_config_info{"));
        line.expect("the version is a metric").to_owned()
    };
    let before = version();
    gate.reconfigure(config);
    testing::eventually("the change is taken", || version() != before);
    // A scrape is queued to every worker behind the message with the new configuration.
    gate.metrics();
    gate.call(&call_without_tokens("a"))
}
