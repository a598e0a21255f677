//! The same hand-written request over HTTP/1.1 and HTTP/2: refused over both, or the same at the engine.
//!
//! Invariant: only what a version of HTTP cannot express is omitted.
//! Not here: malformed HTTP/2 streams (`http2`), malformed HTTP/1.1 heads (`framing`).

use std::collections::BTreeMap;

use super::cases::Rng;
use super::engine::Engine;
use crate::harness::h2::{DATA, END_STREAM, Ended, Frames};
use crate::harness::{Connection, Gate, answer};

/// Requests of a run, each sent twice.
const REQUESTS: usize = 800;
/// A body that a server which reads no body would parse as another request.
const HIDDEN: &str =
    "POST /v1/chat/completions HTTP/1.1\r\nhost: engine\r\ncontent-length: 2\r\n\r\n{}";

/// The hosts that a request names: HTTP/1.1's fields, and HTTP/2's authority and fields.
type Hosts = (
    &'static [&'static str],
    &'static [(&'static str, &'static str)],
);

/// Ways to send the host, the usual one first.
const HOSTS: [Hosts; 8] = [
    (&["gate.test"], &[(":authority", "gate.test")]),
    (&["gate.test"], &[("host", "gate.test")]),
    (
        &["gate.test"],
        &[(":authority", "gate.test"), ("host", "gate.test")],
    ),
    (
        &["gate.test", "gate.test"],
        &[
            (":authority", "gate.test"),
            ("host", "gate.test"),
            ("host", "gate.test"),
        ],
    ),
    (
        &["gate.test", "gate.test"],
        &[("host", "gate.test"), ("host", "gate.test")],
    ),
    (
        &["gate.test", "evil.test"],
        &[(":authority", "gate.test"), ("host", "evil.test")],
    ),
    (&["user@gate.test"], &[(":authority", "user@gate.test")]),
    (&[], &[]),
];
const METHODS: [&str; 9] = [
    "GET", "HEAD", "DELETE", "POST", "PUT", "PATCH", "OPTIONS", "TRACE", "BREW",
];
const TARGETS: [&str; 16] = [
    "/v1/models#x",
    "/v1/chat/completions?a#b",
    "/v1/models",
    "/v1/chat/completions",
    "/v1/chat/completions?a=b",
    "/v1/models?",
    "/v1//models",
    "/v1/%2e/models",
    "/v1/models/",
    "/v1/models;x",
    "/v1/models%00",
    "/v1/mod\u{e9}ls",
    "/v1/\"models\"",
    "/V1/models",
    "*",
    "v1/models",
];
const FIELDS: [&[(&str, &str)]; 14] = [
    &[],
    &[("x-a", "b")],
    &[("x-a", "b"), ("x-a", "c")],
    &[("x-a", "")],
    &[("x-a", "b\u{1}")],
    &[("x-a", "b\tc")],
    &[("x a", "b")],
    &[("x-a", "\u{e9}")],
    &[("expect", "100-continue")],
    &[("expect", "200-ok")],
    &[("authorization", "Bearer a"), ("x-api-key", "b")],
    &[("x-workload-app", "v")],
    &[("content-encoding", "gzip")],
    &[("te", "trailers")],
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    /// The request ends with its head.
    Nothing,
    /// The head says 0.
    Zero,
    Declared,
    /// Chunks, or data without a length.
    Undeclared,
    /// The same with an empty body.
    Empty,
    /// Twice the same length.
    Twice,
    /// An invalid length.
    Wrong,
}

const FRAMINGS: [Framing; 7] = [
    Framing::Nothing,
    Framing::Zero,
    Framing::Declared,
    Framing::Undeclared,
    Framing::Empty,
    Framing::Twice,
    Framing::Wrong,
];

#[derive(Debug, Clone, Copy)]
struct Request {
    method: &'static str,
    target: &'static str,
    hosts: usize,
    fields: &'static [(&'static str, &'static str)],
    framing: Framing,
    body: &'static str,
}

impl Request {
    const fn takes_no_body(&self) -> bool {
        matches!(self.method.as_bytes(), b"GET" | b"HEAD" | b"DELETE")
    }

    fn hides_a_body(&self) -> bool {
        self.takes_no_body() && self.framing == Framing::Undeclared
    }
}

/// The outcome of a request.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// Refused with this status; 0 where the stream or the connection was closed.
    Refused(u16),
    /// Forwarded; method, target and body as the engine saw them.
    Forwarded(String, String, Vec<u8>),
}

#[test]
fn http1_and_http2_refuse_and_forward_the_same_requests() {
    let mut rng = Rng::new(testing::seed("http1_and_http2_refuse_the_same"));
    let engine = Engine::start();
    let config = format!(
        "workers: 1\nbackends: {{ up: {{ url: \"http://{}/v1\" }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        engine.address
    );
    let gate = Gate::start(&config, &[]);
    let mut counts = BTreeMap::<String, u32>::new();
    for n in 0..REQUESTS {
        // Usually only one property is unusual.
        let mut odd = |rate: usize| rng.once_in(rate);
        let (odd_method, odd_target, odd_host) = (odd(2), odd(4), odd(4));
        let (odd_fields, odd_framing) = (odd(4), odd(3));
        let odds = [odd_method, odd_target, odd_host, odd_fields, odd_framing];
        let odds = odds.iter().filter(|is_odd| **is_odd).count();
        let method = if odd_method {
            rng.pick(&METHODS)
        } else {
            "POST"
        };
        let request = Request {
            method,
            target: match (odd_target, method) {
                (true, _) => rng.pick(&TARGETS),
                (false, "POST") => "/v1/chat/completions",
                (false, _) => "/v1/models",
            },
            hosts: if odd_host { rng.below(HOSTS.len()) } else { 0 },
            fields: if odd_fields {
                FIELDS[rng.below(FIELDS.len())]
            } else {
                &[]
            },
            framing: match (odd_framing, method) {
                (true, _) => FRAMINGS[rng.below(FRAMINGS.len())],
                (false, "GET" | "HEAD" | "DELETE") => Framing::Nothing,
                (false, _) => Framing::Declared,
            },
            body: if method == "POST" {
                "{\"model\":\"m\"}"
            } else {
                HIDDEN
            },
        };
        let one = over_one(&gate, &engine, &request);
        let two = over_two(&gate, &engine, &request);
        let same = match (&one, &two) {
            // A stream that hyper refuses ends without a status.
            (Outcome::Refused(_), Outcome::Refused(0)) => true,
            // HTTP/1.1 declares a body before the path is checked; over HTTP/2 the body is known only when it arrives.
            (Outcome::Refused(400), Outcome::Refused(_)) if request.hides_a_body() => true,
            // Of two faults, each version reports the one that it detects first.
            (Outcome::Refused(_), Outcome::Refused(_)) if odds > 1 => true,
            (one, two) => one == two,
        };
        assert!(
            same,
            "{n}: {request:?}\nover HTTP/1.1: {one:?}\nover HTTP/2: {two:?}"
        );
        let name = match one {
            Outcome::Refused(status) => format!("refused {status}"),
            Outcome::Forwarded(..) => "forwarded".to_owned(),
        };
        *counts.entry(name).or_default() += 1;
    }
    println!("{REQUESTS} requests over each version: {counts:?}");
    assert_eq!(
        engine.unmatched(),
        Vec::<String>::new(),
        "requests that nobody sent"
    );
    assert!(counts["forwarded"] > 100, "{counts:?}");
}

#[test]
fn h1_an_unexpected_body_is_never_parsed_as_another_request() {
    let engine = Engine::start();
    let config = format!(
        "workers: 1\nbackends: {{ up: {{ url: \"http://{}/v1\" }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        engine.address
    );
    let gate = Gate::start(&config, &[]);
    for method in ["GET", "HEAD", "DELETE"] {
        for framing in [Framing::Declared, Framing::Undeclared] {
            let request = Request {
                method,
                target: "/v1/models",
                hosts: 0,
                fields: &[],
                framing,
                body: HIDDEN,
            };
            let refused = |outcome| matches!(outcome, Outcome::Refused(400..500));
            assert!(refused(over_one(&gate, &engine, &request)), "{request:?}");
            assert!(refused(over_two(&gate, &engine, &request)), "{request:?}");
        }
    }
    assert_eq!(engine.count(), 0, "{:?}", engine.unmatched());
    let empty = Request {
        method: "GET",
        target: "/v1/models",
        hosts: 0,
        fields: &[],
        framing: Framing::Empty,
        body: "",
    };
    let forwarded = over_two(&gate, &engine, &empty);
    assert!(
        matches!(forwarded, Outcome::Forwarded(..)),
        "an empty one is none: {forwarded:?}"
    );
}

fn over_one(gate: &Gate, engine: &Engine, request: &Request) -> Outcome {
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    for host in HOSTS[request.hosts].0 {
        head.push_str(&format!("host: {host}\r\n"));
    }
    let length = request.body.len();
    let (lines, body) = match request.framing {
        // Empty DATA is no body; a chunked body is one, even when it is empty.
        Framing::Empty if request.takes_no_body() => (String::new(), Vec::new()),
        Framing::Nothing => (String::new(), Vec::new()),
        Framing::Zero => ("content-length: 0\r\n".to_owned(), Vec::new()),
        Framing::Declared => (format!("content-length: {length}\r\n"), request.body.into()),
        Framing::Twice => (
            format!("content-length: {length}\r\n").repeat(2),
            request.body.into(),
        ),
        Framing::Wrong => (
            format!("content-length: +{length}\r\n"),
            request.body.into(),
        ),
        Framing::Undeclared | Framing::Empty => {
            let data = if request.framing == Framing::Empty {
                ""
            } else {
                request.body
            };
            let chunk = if data.is_empty() {
                Vec::new()
            } else {
                answer::chunk(data.as_bytes())
            };
            (
                "transfer-encoding: chunked\r\n".to_owned(),
                [&chunk[..], answer::LAST_CHUNK].concat(),
            )
        }
    };
    head.push_str("x-workload-app: w\r\ncontent-type: application/json\r\n");
    for (name, value) in request.fields {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&lines);
    head.push_str("\r\n");
    let before = engine.count();
    let mut connection = Connection::open(gate.data);
    connection.send(&[head.into_bytes(), body].concat());
    let response = match request.method {
        "HEAD" => connection.headless(),
        _ => connection.response(),
    };
    outcome(engine, before, response.status)
}

fn over_two(gate: &Gate, engine: &Engine, request: &Request) -> Outcome {
    let mut list = vec![
        (":method", request.method),
        (":scheme", "http"),
        (":path", request.target),
    ];
    let (authority, hosts): (Vec<_>, Vec<_>) = HOSTS[request.hosts]
        .1
        .iter()
        .copied()
        .partition(|(name, _)| *name == ":authority");
    list.extend(authority);
    list.extend(hosts);
    let length = match request.framing {
        Framing::Zero => "0".to_owned(),
        Framing::Wrong => format!("+{}", request.body.len()),
        _ => request.body.len().to_string(),
    };
    list.extend([
        ("x-workload-app", "w"),
        ("content-type", "application/json"),
    ]);
    list.extend(request.fields);
    let times = match request.framing {
        Framing::Nothing | Framing::Undeclared | Framing::Empty => 0,
        Framing::Zero | Framing::Declared | Framing::Wrong => 1,
        Framing::Twice => 2,
    };
    list.extend(std::iter::repeat_n(
        ("content-length", length.as_str()),
        times,
    ));
    let before = engine.count();
    let mut frames = Frames::open(gate.data, &[]);
    let ends = matches!(request.framing, Framing::Nothing | Framing::Zero);
    frames.headers(1, &list, ends);
    if !ends {
        let data = if request.framing == Framing::Empty {
            ""
        } else {
            request.body
        };
        frames.send(DATA, END_STREAM, 1, data.as_bytes());
    }
    let status = match frames.ended(1) {
        Ended::Whole(status) => status,
        Ended::Reset(_) | Ended::GoAway(_) | Ended::Closed => 0,
    };
    outcome(engine, before, status)
}

fn outcome(engine: &Engine, before: usize, status: u16) -> Outcome {
    if status != 200 {
        assert_eq!(
            engine.count(),
            before,
            "refused with {status}, and the engine saw something"
        );
        return Outcome::Refused(status);
    }
    assert_eq!(engine.count(), before + 1, "answered without the engine");
    let seen = engine.newest().expect("a request");
    Outcome::Forwarded(seen.method, seen.target, seen.body)
}
