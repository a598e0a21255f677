//! U10 and U12: an upstream that sends nothing, stalls, or is unreachable.
//!
//! Invariant: each wait for an upstream has its own timeout and its own error code.

use std::net::SocketAddr;
use std::time::Duration;

use testing::{Began, found};

use super::{assert_error, call, case, record};
use crate::harness::answer::{DONE, LAST_CHUNK, chunk, delta, events_head};
use crate::harness::{Gate, Step, Upstream, free_address};

/// Both in milliseconds.
fn config(address: SocketAddr, first_byte: u32, idle: u32) -> String {
    format!(
        "backends: {{ up: {{ url: http://{address}/v1, \
         timeouts: {{ connect: 2s, first_byte: {first_byte}ms, idle: {idle}ms }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n"
    )
}

#[test]
fn an_upstream_timeout_applies_in_each_phase() {
    let upstream = Upstream::start(|_, seen| {
        let begun = [events_head(), chunk(delta("one").as_bytes())].concat();
        match case(seen).as_str() {
            "no-head" => vec![Step::silence()],
            "half-a-head" => vec![Step::Send(b"HTTP/1.1 200 OK\r\n".to_vec()), Step::silence()],
            "only-informational" => {
                let hint = Step::Send(b"HTTP/1.1 102 Processing\r\n\r\n".to_vec());
                vec![hint, Step::silence()]
            }
            "no-body" => vec![Step::Send(events_head()), Step::silence()],
            _ => vec![Step::Send(begun), Step::silence()],
        }
    });
    let gate = Gate::start(&config(upstream.address, 300, 600_000), &[]);
    for (n, case) in ["no-head", "half-a-head", "only-informational"]
        .into_iter()
        .enumerate()
    {
        let began = Began::now();
        let response = gate.call(&call(case, true));
        began.took_at_least(Duration::from_millis(300));
        assert_error(&response, 504, "upstream_timeout", case);
        assert_eq!(record(&gate, n + 1, case)["outcome"], "failed");
    }
    let gate = Gate::start(&config(upstream.address, 600_000, 300), &[]);
    for (n, case) in ["no-body", "mid-stream"].into_iter().enumerate() {
        let response = gate.call(&call(case, true));
        assert_eq!((response.status, response.whole), (200, false), "{case}");
        assert!(!response.text().contains("[DONE]"), "{case}");
        let record = record(&gate, n + 1, case);
        assert_eq!(
            (&record["outcome"], &record["code"]),
            (&"failed".into(), &"upstream_cut".into())
        );
    }
}

#[test]
fn a_slow_but_steady_stream_is_never_cut() {
    let upstream = Upstream::start(|_, _| {
        let mut steps = vec![Step::Send(events_head())];
        for _ in 0..15 {
            steps.push(Step::Sleep(Duration::from_millis(100)));
            steps.push(Step::Send(chunk(delta("x").as_bytes())));
        }
        steps.push(Step::Send(
            [chunk(DONE.as_bytes()), LAST_CHUNK.to_vec()].concat(),
        ));
        steps
    });
    // Longer than the gaps, and shorter than all of them. Where the machine stands still for as long, a stream is cut.
    let gate = Gate::start(&config(upstream.address, 1000, 1000), &[]);
    let response = found("a stream comes whole", || {
        let response = gate.call(&call("m", true));
        response.whole.then_some(response)
    });
    assert_eq!(response.text(), delta("x").repeat(15) + DONE);
}

#[test]
fn an_unreachable_upstream_is_502() {
    let gate = Gate::start(&config(free_address(), 300, 300), &[]);
    assert_error(
        &gate.call(&call("m", true)),
        502,
        "upstream_unreachable",
        "refused",
    );
    let unresolved = "backends: { up: { url: http://nowhere.invalid/v1 } }\n\
         routes: [ { workload: w, backend: up } ]\n";
    let gate = Gate::start(unresolved, &[]);
    assert_error(
        &gate.call(&call("m", true)),
        502,
        "upstream_unresolved",
        "unresolved",
    );
    assert_eq!(gate.records(1)[0]["code"], "upstream_unresolved");
}
