//! A recording upstream, called without a gateway.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, StatusCode};
use testing::{PATIENCE, found};

use super::Recorder;
use crate::host::ports::loopback;
use crate::verify::client::{Answer, Asked, Target, Unanswered, ask};
use crate::verify::suite::{Behaviour, Upstream};

const STREAM: &str = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#;

fn start() -> Recorder {
    let upstream = Upstream {
        name: "up".into(),
        credential: "Bearer key".into(),
        refuses: StatusCode::BAD_REQUEST,
    };
    Recorder::start(&upstream, loopback(0)).expect("a port")
}

fn call(recorder: &Recorder, credential: &str, body: &str) -> Result<Answer, Unanswered> {
    call_within(PATIENCE, recorder, credential, body)
}

fn call_within(
    patience: Duration,
    recorder: &Recorder,
    credential: &str,
    body: &str,
) -> Result<Answer, Unanswered> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let mut headers = HeaderMap::new();
    headers.insert(
        "authorization",
        HeaderValue::from_str(credential).expect("a value"),
    );
    let asked = Asked {
        spelled: &std::collections::BTreeMap::new(),
        method: &Method::POST,
        path: "/v1/chat/completions?a=b",
        headers: &headers,
        body: body.as_bytes(),
    };
    let target = Target::at(recorder.address());
    runtime
        .expect("a runtime")
        .block_on(ask(&target, asked, patience))
}

#[test]
fn calls_are_written_down_and_their_usage_differs() {
    let up = start();
    let one = call(&up, "Bearer key", r#"{"model":"m"}"#).expect("an answer");
    let two = call(&up, "Bearer key", STREAM).expect("an answer");
    let seen = up.since(0);
    assert_eq!(seen.len(), 2);
    assert_eq!(
        (seen[0].path.as_str(), seen[0].peer),
        ("/v1/chat/completions?a=b", one.from)
    );
    assert_eq!((&seen[0].sent, &seen[1].sent), (&one.body, &two.body));
    assert!(two.is_stream() && two.body.ends_with(b"data: [DONE]\n\n"));
    assert_ne!(seen[0].usage, seen[1].usage);
    assert!(seen[1].last_sent > two.first_byte);
}

#[test]
fn whoever_lacks_the_credential_is_refused() {
    let up = start();
    for wrong in ["Bearer other", "key", "Bearer key2"] {
        assert_eq!(
            call(&up, wrong, "{}").expect("an answer").status,
            400,
            "{wrong}"
        );
    }
    assert!(up.since(0).iter().all(|seen| seen.usage.is_none()));
}

#[test]
fn it_breaks_fails_hangs_and_is_down_as_it_is_told() {
    let up = start();
    up.set(Behaviour::Break(2)).expect("told");
    let broken = call(&up, "Bearer key", STREAM).expect("a part");
    assert!(broken.broken.is_some());
    assert_eq!(
        String::from_utf8_lossy(&broken.body)
            .matches("data:")
            .count(),
        2
    );
    assert!(
        call(&up, "Bearer key", "{}")
            .expect("a part")
            .broken
            .is_some()
    );
    up.set(Behaviour::Fail(StatusCode::BAD_GATEWAY))
        .expect("told");
    assert_eq!(
        call(&up, "Bearer key", "{}").expect("an answer").status,
        502
    );
    up.set(Behaviour::Hang).expect("told");
    let patience = Duration::from_millis(100);
    let late = call_within(patience, &up, "Bearer key", "{}").expect_err("silence");
    assert!(matches!(late, Unanswered::Late { .. }), "{late}");
    up.set(Behaviour::Down).expect("told");
    let down = call(&up, "Bearer key", "{}").expect_err("nobody");
    assert!(matches!(down, Unanswered::Unreachable { .. }), "{down}");
    up.set(Behaviour::Answer).expect("told");
    assert_eq!(
        call(&up, "Bearer key", "{}").expect("an answer").status,
        200
    );
}

#[test]
fn a_body_that_is_too_long_is_refused_and_known_to_be_cut() {
    let up = start();
    let long = "x".repeat((4 << 20) + 1);
    let answer = call(&up, "Bearer key", &long);
    assert!(answer.is_err() || answer.is_ok_and(|answer| answer.status == 413));
    assert!(up.since(0)[0].is_cut);
}

#[test]
fn a_head_whose_body_is_held_back_or_cut_is_written_down_with_what_came_of_it() {
    let up = start();
    let mut held = TcpStream::connect(up.address()).expect("it listens");
    let head = "POST /v1/held HTTP/1.1\r\nhost: a\r\nauthorization: Bearer rogue\r\ncontent-length: 9\r\n\r\n";
    held.write_all(head.as_bytes()).expect("a head");
    let arrives = |what: &str, is_so: &dyn Fn(&[super::Seen]) -> bool| {
        found(what, || Some(up.since(0)).filter(|seen| is_so(seen)))
    };
    let seen = arrives("a head", &|seen| seen.len() == 1);
    assert_eq!(
        (seen[0].path.as_str(), seen[0].is_whole),
        ("/v1/held", false)
    );
    let authorization = seen[0]
        .headers
        .iter()
        .find(|(name, _)| name == "authorization");
    assert_eq!(authorization.expect("a header").1, b"Bearer rogue");
    held.write_all(b"half").expect("a part");
    let seen = arrives("half of a body", &|seen| seen[0].body == b"half");
    assert!(!seen[0].is_whole && !seen[0].is_cut);
    drop(held);
    let mut cut = TcpStream::connect(up.address()).expect("it listens");
    cut.write_all(head.as_bytes()).expect("a head");
    drop(cut);
    let seen = arrives("another head", &|seen| seen.len() == 2);
    assert!(!seen[1].is_whole && seen[1].body.is_empty());
}

#[test]
fn what_is_no_http_and_a_head_that_never_ends_are_written_down() {
    use std::io::Write as _;
    let up = start();
    let before = up.wires();
    let texts = [
        "SSH-2.0-secret-one\r\n\r\n",
        "POST /v1 HTTP/1.1\r\nauthorization: secret-two",
    ];
    let _open = texts.map(|text| {
        let mut stream = std::net::TcpStream::connect(up.address()).expect("it listens");
        stream.write_all(text.as_bytes()).expect("it reads");
        stream
    });
    let all = || -> Vec<String> {
        let wires = up.wires_since(&before).into_iter();
        wires
            .map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned())
            .collect()
    };
    testing::eventually("both were read", || {
        let all = all();
        texts.iter().all(|text| all.iter().any(|wire| wire == text))
    });
    assert!(up.since(0).is_empty(), "neither is a call");
    // What was there before is not told again.
    assert_eq!(up.wires_since(&up.wires()), []);
}
