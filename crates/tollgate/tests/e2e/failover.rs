//! U11: one endpoint fails, and every endpoint fails.
//!
//! Invariant: a call is retried only before the first byte, only after a retryable failure, and only
//! within the retry budget; each retry is counted.
//! Not here: what a single endpoint's faults look like (`upstream_faults`).

mod load_balancing;
mod retry_budget;

use crate::harness::answer::{COMPLETION, json, whole};
use crate::harness::{Connection, Gate, Step, Upstream, free_address};
use crate::upstream_faults::{assert_error, call, case};
use std::net::SocketAddr;

const ERROR: &str = r#"{"error":{"message":"not now","type":"x","param":null,"code":"theirs"}}"#;

/// Two backends, tried in order.
fn pair(first: SocketAddr, second: SocketAddr) -> String {
    format!(
        "backends:\n  first: {{ url: http://{first}/v1, timeouts: {{ first_byte: 10m }} }}\n  \
         second: {{ url: http://{second}/v1 }}\n\
         routes: [ {{ workload: w, backend: [first, second] }} ]\n"
    )
}

/// Two endpoints of one backend.
fn siblings(first: SocketAddr, second: SocketAddr, weight: u32) -> String {
    format!(
        "backends:\n  up:\n    endpoints:\n      - {{ url: http://{first}/v1, weight: {weight} }}\n      \
         - {{ url: http://{second}/v1 }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n"
    )
}

fn good() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))])
}

/// Fails as the model's name says: with this status, or in this way.
fn bad() -> Upstream {
    Upstream::start(|_, seen| match case(seen).as_str() {
        "reset" => vec![Step::Reset],
        "close" => vec![Step::Close],
        "malformed" => vec![
            Step::Send(b"HTTP/1.1 nonsense\r\n\r\n".to_vec()),
            Step::Close,
        ],
        "hang" => vec![Step::silence()],
        status => vec![Step::Send(json(status.parse().expect("a status"), ERROR))],
    })
}

#[test]
fn retryable_failures_go_to_the_next_backend() {
    for (n, case) in [
        "408",
        "425",
        "429",
        "500",
        "502",
        "503",
        "504",
        "529",
        "reset",
        "close",
        "malformed",
        "hang",
    ]
    .into_iter()
    .enumerate()
    {
        // A new gate for every few cases, so that no endpoint is ejected and no retry budget is exhausted.
        let (first, second) = (bad(), good());
        let mut config = pair(first.address, second.address);
        if case == "hang" {
            config = config.replace("10m", "500ms");
        }
        let gate = Gate::start(&config, &[]);
        let response = gate.call(&call(case, n % 2 == 0));
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, COMPLETION),
            "{case}"
        );
        assert_eq!((first.seen().len(), second.seen().len()), (1, 1), "{case}");
        assert_eq!(
            first.seen()[0].body,
            second.seen()[0].body,
            "{case}: the same call"
        );
        let record = &gate.records(1)[0];
        assert_eq!(
            (&record["attempts"], &record["backend"]),
            (&2.into(), &"second".into())
        );
        assert_eq!(record["status"], 200);
        // What may have run at the first backend is charged and recorded too.
        let may_have_run = !case.bytes().all(|b| b.is_ascii_digit());
        assert_eq!(
            record["unconfirmed_attempts"] == 1,
            may_have_run,
            "{case}: {record}"
        );
        assert_eq!(
            record["prompt_tokens"] == 7,
            !may_have_run,
            "{case}: {record}"
        );
        let backend = ["backend=\"first\""];
        assert!(
            (gate.metric("tollgate_retries_total", &backend) - 1.0).abs() < 0.1,
            "{case}"
        );
        assert!(
            (gate.metric("tollgate_attempts_total", &[]) - 2.0).abs() < 0.1,
            "{case}"
        );
    }
}

/// Answers as the model's name says, and not with what was asked for.
fn no_answer() -> Upstream {
    Upstream::start(|_, seen| {
        let answer = match case(seen).as_str() {
            "page" => whole(200, "text/html", b"<p>log in first</p>"),
            "no-content" => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
            "302" => {
                b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
                    .to_vec()
            }
            status => json(status.parse().expect("a status"), ERROR),
        };
        vec![Step::Send(answer)]
    })
}

#[test]
fn what_does_not_serve_a_call_gives_way_to_the_next_backend() {
    for (n, case) in ["page", "no-content", "302", "401", "402", "403", "404"]
        .into_iter()
        .enumerate()
    {
        let (first, second) = (no_answer(), good());
        let gate = Gate::start(&pair(first.address, second.address), &[]);
        let answer = gate.call(&call(case, n % 2 == 0));
        assert_eq!(
            (answer.status, answer.text().as_str()),
            (200, COMPLETION),
            "{case}"
        );
        assert_eq!((first.seen().len(), second.seen().len()), (1, 1), "{case}");
        let record = &gate.records(1)[0];
        assert_eq!(record["attempts"], 2, "{case}");
        assert_eq!(record["prompt_tokens"], 7, "{case}: it costs what answered");
        let result = match n {
            0..3 => "result=\"upstream_bad_response\"",
            _ => "result=\"4xx\"",
        };
        let tries = gate.metric("tollgate_attempts_total", &["backend=\"first\"", result]);
        assert!((tries - 1.0).abs() < 0.1, "{case}: {tries}");
    }
}

#[test]
fn a_page_in_place_of_an_answer_that_would_be_translated_gives_way_too() {
    for stream in [false, true] {
        let (first, second) = (no_answer(), good());
        let config = pair(first.address, second.address)
            .replace("/v1, timeouts", "/v1, dialect: anthropic, timeouts");
        let gate = Gate::start(&config, &[]);
        let answer = gate.call(&call("page", stream));
        assert_eq!((answer.status, answer.text().as_str()), (200, COMPLETION));
        assert_eq!((first.seen().len(), second.seen().len()), (1, 1));
        let record = &gate.records(1)[0];
        assert_eq!(record["attempts"], 2);
        assert_eq!(record["prompt_tokens"], 7, "it costs what answered");
    }
}

#[test]
fn a_refused_connection_is_retried_at_the_next_backend() {
    let second = good();
    let gate = Gate::start(&pair(free_address(), second.address), &[]);
    assert_eq!(gate.call(&call("m", false)).text(), COMPLETION);
    assert_eq!(gate.records(1)[0]["attempts"], 2);
}

#[test]
fn failures_that_are_not_retryable_are_not_retried() {
    let (first, second) = (bad(), good());
    let gate = Gate::start(&pair(first.address, second.address), &[]);
    for status in [400_u16, 409, 413, 422] {
        let response = gate.call(&call(&status.to_string(), false));
        assert_eq!((response.status, response.text().as_str()), (status, ERROR));
    }
    assert_eq!(second.seen().len(), 0);
    assert!(gate.records(4).iter().all(|r| r["attempts"] == 1));
}

#[test]
fn a_list_of_statuses_is_the_whole_list() {
    let (first, second) = (bad(), good());
    let listed = "backend: [first, second], retries: { statuses: 503 }";
    let config = pair(first.address, second.address).replace("backend: [first, second]", listed);
    let gate = Gate::start(&config, &[]);
    for status in [402_u16, 404, 500] {
        let response = gate.call(&call(&status.to_string(), false));
        assert_eq!((response.status, response.text().as_str()), (status, ERROR));
    }
    for status in ["401", "403"] {
        let response = gate.call(&call(status, false));
        assert_error(&response, 502, "upstream_credential_refused", status);
    }
    assert_eq!(second.seen().len(), 0);
    assert_eq!(gate.call(&call("503", false)).text(), COMPLETION);
}

#[test]
fn when_every_backend_fails_the_client_gets_the_last_answer() {
    let (first, second) = (bad(), bad());
    let gate = Gate::start(&pair(first.address, second.address), &[]);
    for status in [429_u16, 503, 529] {
        let response = gate.call(&call(&status.to_string(), false));
        assert_eq!((response.status, response.text().as_str()), (status, ERROR));
        assert_eq!(response.header("retry-after"), None, "none was sent");
    }
    assert_eq!((first.seen().len(), second.seen().len()), (3, 3));
}

#[test]
fn an_upstreams_retry_after_reaches_the_client() {
    let upstream = Upstream::start(|_, _| {
        let head = "HTTP/1.1 429 Slow\r\ncontent-type: application/json\r\nretry-after: 17\r\n";
        let length = ERROR.len();
        vec![Step::Send(
            format!("{head}content-length: {length}\r\n\r\n{ERROR}").into(),
        )]
    });
    let gate = Gate::start(&crate::upstream_faults::one(upstream.address), &[]);
    let response = gate.call(&call("m", false));
    assert_eq!(
        (response.status, response.header("retry-after")),
        (429, Some("17"))
    );
}

#[test]
fn a_call_lost_with_a_reused_connection_is_retried_and_counted() {
    // Answers once on each connection, then resets it when the next request has arrived.
    let upstream = Upstream::start(|n, _| {
        if n % 2 == 0 {
            vec![Step::Send(json(200, COMPLETION))]
        } else {
            vec![Step::Reset]
        }
    });
    let gate = Gate::start(&crate::upstream_faults::one(upstream.address), &[]);
    let mut connection = Connection::open(gate.data);
    for _ in 0..5 {
        let response = connection.call(&call("m", false));
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, COMPLETION)
        );
    }
    assert_eq!((upstream.seen().len(), upstream.connections()), (9, 5));
    let attempts: Vec<_> = gate
        .records(5)
        .iter()
        .map(|r| r["attempts"].clone())
        .collect();
    assert_eq!(attempts, [1, 2, 2, 2, 2], "the second may have run it too");
}

#[test]
fn an_idle_connection_closed_by_the_upstream_is_not_reused() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION)), Step::Close]);
    let gate = Gate::start(&crate::upstream_faults::one(upstream.address), &[]);
    let mut connection = Connection::open(gate.data);
    for _ in 0..10 {
        assert_eq!(connection.call(&call("m", false)).text(), COMPLETION);
    }
    assert_eq!((upstream.seen().len(), upstream.connections()), (10, 10));
}
