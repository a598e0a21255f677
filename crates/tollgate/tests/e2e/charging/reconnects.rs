//! Kept-alive connections that are lost with a request: which calls are retried, and how retries are counted.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::sync::mpsc::channel;

use super::{AuditedGate, body, named, number};
use crate::harness::answer::{COMPLETION, json};
use crate::harness::{Connection, Step, Upstream, post};

/// Answers the first request of a connection; reads the second one whole, and ends the connection.
fn dying(how: Step) -> Upstream {
    let served = std::sync::Mutex::new(std::collections::HashSet::new());
    Upstream::start(move |_, seen| {
        let mut served = served.lock().expect("no test panics here");
        if served.insert(seen.connection) {
            vec![Step::Send(json(200, COMPLETION))]
        } else {
            vec![how.clone()]
        }
    })
}

#[test]
fn a_call_lost_with_its_kept_alive_connection_is_a_counted_retry() {
    for how in [Step::Close, Step::Reset] {
        let upstream = dying(how.clone());
        let audited = AuditedGate::one(upstream.address, "");
        let mut connection = Connection::open(audited.gate.data);
        for n in 0..4 {
            let answer = connection.call(&named(&format!("c{n}"), &body(false, 50, 400)));
            assert_eq!(answer.text(), COMPLETION, "{how:?}");
        }
        // The first call opens a connection; each later one loses the kept-alive connection and opens another.
        assert_eq!(upstream.seen().len(), 7, "{how:?}");
        assert_eq!(upstream.connections(), 4, "{how:?}");
        let attempts = audited.gate.metric("tollgate_attempts_total", &[]);
        assert!((attempts - 7.0).abs() < 0.1, "{attempts}");
        let retries = audited.gate.metric("tollgate_retries_total", &[]);
        assert!((retries - 3.0).abs() < 0.1, "{retries}");
        let rows = audited.end(4);
        assert_eq!(number(&rows["c0"], "attempts"), 1);
        for n in 1..4 {
            let row = &rows[&format!("c{n}")];
            assert_eq!(number(row, "attempts"), 2, "{row}");
            assert_eq!(number(row, "unconfirmed_attempts"), 1, "{row}");
            assert_eq!(number(row, "completion_tokens"), 53, "{row}");
        }
    }
}

#[test]
fn beyond_the_retry_budget_a_lost_connection_is_502() {
    let upstream = dying(Step::Close);
    let audited = AuditedGate::one(upstream.address, "");
    let mut statuses = Vec::new();
    for n in 0..30 {
        let answer = audited
            .gate
            .call(&named(&format!("c{n}"), &body(false, 50, 40)));
        statuses.push(answer.status);
    }
    let failed = statuses.iter().filter(|status| **status == 502).count();
    assert!(failed > 3, "{statuses:?}");
    let seen = upstream.seen();
    let rows = audited.end(30);
    for (id, row) in &rows {
        let runs = seen
            .iter()
            .filter(|s| s.header("x-request-id") == [id.as_str()]);
        assert_eq!(runs.count() as u64, number(row, "attempts"), "{row}");
    }
}

#[test]
fn a_post_that_is_not_an_inference_call_is_never_retried() {
    let upstream = dying(Step::Close);
    let second = Upstream::start(|_, _| vec![Step::Send(json(200, "{}"))]);
    let config = format!(
        "workers: 1\nbackends: {{ up: {{ url: http://{}/v1 }}, other: {{ url: http://{}/v1 }} }}\n\
         routes: [ {{ workload: w, backend: [up, other], unread: [ {{ call: [POST /v1/files] }} ] }} ]\n",
        upstream.address, second.address
    );
    let gate = crate::harness::Gate::start(&config, &[]);
    let mut connection = Connection::open(gate.data);
    let call = |path: &str| post(path, &["x-workload-app: w"], "{\"input\":\"x\"}");
    assert_eq!(connection.call(&call("/v1/files")).status, 200);
    let lost = connection.call(&call("/v1/files"));
    assert_eq!((lost.status, lost.code().as_str()), (502, "upstream_reset"));
    assert_eq!((upstream.seen().len(), second.seen().len()), (2, 0));
    assert_eq!(gate.records(2)[1]["attempts"], 1);
}

/// The upstream ends its connections on demand, and reports when the gate has ended its side too.
#[test]
fn a_connection_closed_before_the_call_is_replaced_without_a_counted_retry() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    let ((close, closing), (say, closed)) = (channel::<()>(), channel::<()>());
    let (count, counted) = channel::<()>();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().flatten() {
            let mut buffer = [0; 65536];
            if matches!(tcp.read(&mut buffer), Ok(0) | Err(_)) {
                continue;
            }
            let is_ended = count.send(()).is_ok()
                && tcp.write_all(&json(200, COMPLETION)).is_ok()
                && closing.recv().is_ok()
                && tcp.shutdown(Shutdown::Write).is_ok()
                && matches!(tcp.read(&mut buffer), Ok(0));
            if !is_ended || say.send(()).is_err() {
                return;
            }
        }
    });
    let audited = AuditedGate::one(address, "");
    let mut connection = Connection::open(audited.gate.data);
    for n in 0..20 {
        let answer = connection.call(&named(&format!("c{n}"), &body(false, 50, 40)));
        assert_eq!(answer.text(), COMPLETION);
        close.send(()).expect("the upstream listens");
        closed
            .recv_timeout(testing::PATIENCE)
            .expect("the gate ends its side of a connection that the upstream ended");
    }
    assert_eq!(counted.try_iter().count(), 20, "none ran twice");
    let rows = audited.end(20);
    for row in rows.values() {
        assert_eq!(number(row, "attempts"), 1, "{row}");
        assert_eq!(number(row, "unconfirmed_attempts"), 0, "{row}");
    }
}
