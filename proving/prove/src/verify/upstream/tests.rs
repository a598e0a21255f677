//! A recording upstream, called without a gateway.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::Recorder;
use crate::host::ports::loopback;
use crate::verify::client::{Answer, Asked, Target, Unanswered, ask};
use crate::verify::suite::{Does, Upstream};

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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let mut headers = HeaderMap::new();
    headers.insert(
        "authorization",
        HeaderValue::from_str(credential).expect("a value"),
    );
    let asked = Asked {
        method: &Method::POST,
        path: "/v1/chat/completions?a=b",
        headers: &headers,
        body: body.as_bytes(),
    };
    let target = Target::at(recorder.address());
    runtime
        .expect("a runtime")
        .block_on(ask(&target, asked, Duration::from_millis(800)))
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
    up.set(Does::Break(2)).expect("told");
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
    up.set(Does::Fail(StatusCode::BAD_GATEWAY)).expect("told");
    assert_eq!(
        call(&up, "Bearer key", "{}").expect("an answer").status,
        502
    );
    up.set(Does::Hang).expect("told");
    let late = call(&up, "Bearer key", "{}").expect_err("silence");
    assert!(matches!(late, Unanswered::Late { .. }), "{late}");
    up.set(Does::Down).expect("told");
    let down = call(&up, "Bearer key", "{}").expect_err("nobody");
    assert!(matches!(down, Unanswered::Unreachable { .. }), "{down}");
    up.set(Does::Answer).expect("told");
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
