//! Upstreams that answer with `retry-after` or an exhausted quota.

use std::time::Duration;

use super::{AuditedGate, body, named};
use crate::harness::answer::{COMPLETION, json};
use crate::harness::{Step, Upstream};

fn busy(status: u16, fields: &str, content_type: &str) -> Vec<u8> {
    let error = r#"{"error":{"message":"later"}}"#;
    let length = error.len();
    format!(
        "HTTP/1.1 {status} Busy\r\ncontent-type: {content_type}\r\n{fields}\r\ncontent-length: {length}\r\n\r\n{error}"
    )
    .into_bytes()
}

fn call(n: u32) -> Vec<u8> {
    named(&format!("c{n}"), &body(false, 20, 40))
}

/// A gate that has made its first call, to an endpoint that answered with these fields and to one that served it.
fn sent_away(fields: &'static str) -> (AuditedGate, [Upstream; 2]) {
    let first = Upstream::start(move |n, _| {
        vec![Step::Send(if n == 0 {
            busy(503, fields, "application/json")
        } else {
            json(200, COMPLETION)
        })]
    });
    let second = Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))]);
    let backends = format!(
        "first: {{ url: http://{}/v1 }}, second: {{ url: http://{}/v1 }}",
        first.address, second.address
    );
    let audited = AuditedGate::start(&backends, "[first, second]", "", "");
    assert_eq!(audited.gate.call(&call(0)).text(), COMPLETION);
    (audited, [first, second])
}

#[test]
fn an_endpoint_is_not_called_until_its_retry_after_has_elapsed() {
    let calls = |[first, second]: &[Upstream; 2]| (first.seen().len(), second.seen().len());
    let (audited, both) = sent_away("retry-after: 250");
    for n in 1..5 {
        assert_eq!(audited.gate.call(&call(n)).text(), COMPLETION);
    }
    assert_eq!(calls(&both), (1, 5));
    audited.end(5);

    let (audited, both) = sent_away("retry-after: 1");
    testing::pace(Duration::from_millis(1100));
    assert_eq!(audited.gate.call(&call(1)).text(), COMPLETION);
    assert_eq!(calls(&both), (2, 1));
    audited.end(2);
}

#[test]
fn when_every_endpoint_is_backing_off_the_client_gets_retry_after_and_none_is_called() {
    for (status, fields, seconds) in [
        // A minute, which is waited for whole.
        (429, "retry-after: 60", 1..=60),
        (503, "retry-after-ms: 60000", 1..=60),
        (
            429,
            "x-ratelimit-remaining-tokens: 0\r\nx-ratelimit-reset-tokens: 1m0s",
            1..=60,
        ),
    ] {
        let answer = busy(status, fields, "application/json");
        let upstream = Upstream::start(move |_, _| vec![Step::Send(answer.clone())]);
        let audited = AuditedGate::one(upstream.address, "");
        // The first answer is the upstream's own.
        assert_eq!(audited.gate.call(&call(0)).status, status);
        for n in 1..4 {
            let refusal = audited.gate.call(&call(n));
            assert_eq!(
                (refusal.status, refusal.code().as_str()),
                (status, "upstream_status")
            );
            let wait = refusal.header("retry-after").expect("the header is set");
            let wait: u64 = wait.parse().expect("seconds");
            assert!(seconds.contains(&wait), "{fields}: {wait}");
        }
        assert_eq!(upstream.seen().len(), 1, "{fields}");
        let rows = audited.end(4);
        assert_eq!(rows["c1"]["attempts"], 0);
    }
}

#[test]
fn an_exhausted_quota_of_one_model_does_not_block_another() {
    let upstream = Upstream::start(|n, _| {
        vec![Step::Send(if n == 0 {
            busy(429, "retry-after: 60", "application/json")
        } else {
            json(200, COMPLETION)
        })]
    });
    let audited = AuditedGate::one(upstream.address, "");
    assert_eq!(audited.gate.call(&call(0)).status, 429);
    assert_eq!(audited.gate.call(&call(1)).status, 429);
    let other = body(false, 20, 40).replace("\"m\"", "\"n\"");
    assert_eq!(audited.gate.call(&named("other", &other)).status, 200);
    assert_eq!(upstream.seen().len(), 2);
    audited.end(3);
}

#[test]
fn the_retry_after_of_an_unreadable_error_reaches_the_client() {
    let upstream =
        Upstream::start(|_, _| vec![Step::Send(busy(503, "retry-after: 17", "text/html"))]);
    let audited = AuditedGate::one(upstream.address, "");
    let refusal = audited.gate.call(&call(0));
    assert_eq!(
        (refusal.status, refusal.code().as_str()),
        (503, "upstream_status")
    );
    assert_eq!(refusal.header("retry-after"), Some("17"));
    audited.end(1);
}
