//! Does a subject answer as the upstream does? Asked before anything is measured.
//!
//! Invariant: the yardstick is the upstream's own answer in the same run, byte for byte.
//! Not here: speed.

use std::net::SocketAddr;
use std::time::Duration;

use load::{Fetched, Request, fetch};

use super::scenario::{Scenario, Timing};
use super::subject::{Client, Subject};

const PATIENCE: Duration = Duration::from_secs(10);
const EVENTS: u32 = 6;
const INTERVAL: Duration = Duration::from_millis(40);
const UNARY: &[u8] = br#"{"model":"race-model","messages":[{"role":"user","content":"Answer."}]}"#;
const STREAM: &[u8] = br#"{"model":"race-model","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Answer."}]}"#;

/// Checks status, body, streaming and usage; the first difference is the error.
pub(crate) fn check(
    subject: &Subject,
    address: SocketAddr,
    upstream: SocketAddr,
) -> Result<(), String> {
    let client = &subject.manifest.client;
    let expected = ask(
        upstream,
        &unary("upstream", None, &[]),
        "the upstream's unary answer",
    )?;
    let got = ask(
        address,
        &unary(&subject.name, Some(client), &[]),
        "the unary answer",
    )?;
    same_body("the unary answer", &got, &expected)?;
    has_usage("the unary answer", &got)?;
    let asks = stream_asks();
    let expected = ask(
        upstream,
        &request("upstream", None, &asks, STREAM),
        "the upstream's streamed answer",
    )?;
    let got = ask(
        address,
        &request(&subject.name, Some(client), &asks, STREAM),
        "the streamed answer",
    )?;
    same_body("the streamed answer", &got, &expected)?;
    has_usage("the streamed answer", &got)?;
    if !got.body.ends_with(b"data: [DONE]\n\n") {
        return Err("the streamed answer does not end with [DONE]".into());
    }
    in_pieces(&got)
}

/// A small unary request.
pub(crate) fn unary(host: &str, client: Option<&Client>, asks: &[(String, String)]) -> Request {
    request(host, client, asks, UNARY)
}

/// A request as `client` wants it, with what is asked of the upstream in headers.
pub(crate) fn request(
    host: &str,
    client: Option<&Client>,
    asks: &[(String, String)],
    body: &[u8],
) -> Request {
    let mut headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("authorization".to_owned(), "Bearer sk-client".to_owned()),
    ];
    let further = client.into_iter().flat_map(|client| &client.headers);
    headers.extend(further.map(|(name, value)| (name.clone(), value.clone())));
    headers.extend_from_slice(asks);
    let path = client
        .and_then(|client| client.path.as_deref())
        .unwrap_or("/v1/chat/completions");
    Request::post(path, host, &headers, body)
}

/// What `scenario` asks of the upstream.
pub(crate) fn asks(scenario: &Scenario, timing: &Timing) -> Vec<(String, String)> {
    let mut asks = Vec::new();
    let mut ask = |name: &str, value: u64| {
        if value > 0 {
            asks.push((name.to_owned(), value.to_string()));
        }
    };
    ask("x-fixed-latency-us", scenario.latency_ms * 1_000);
    ask("x-fixed-events", scenario.events_of(timing));
    ask("x-fixed-interval-us", scenario.interval_ms * 1_000);
    asks
}

fn stream_asks() -> Vec<(String, String)> {
    vec![
        ("x-fixed-events".to_owned(), EVENTS.to_string()),
        (
            "x-fixed-interval-us".to_owned(),
            INTERVAL.as_micros().to_string(),
        ),
    ]
}

fn ask(address: SocketAddr, request: &Request, what: &str) -> Result<Fetched, String> {
    let fetched = fetch(address, request, PATIENCE).map_err(|error| format!("{what}: {error}"))?;
    if fetched.status == 200 {
        Ok(fetched)
    } else {
        Err(format!("{what} has status {}", fetched.status))
    }
}

fn same_body(what: &str, got: &Fetched, expected: &Fetched) -> Result<(), String> {
    if got.body == expected.body {
        return Ok(());
    }
    let pairs = got.body.iter().zip(&expected.body);
    let at = pairs.take_while(|(got, expected)| got == expected).count();
    let (got, expected) = (got.body.len(), expected.body.len());
    Err(format!(
        "{what} differs from the upstream's at byte {at} ({got} bytes, upstream {expected})"
    ))
}

fn has_usage(what: &str, got: &Fetched) -> Result<(), String> {
    let text = String::from_utf8_lossy(&got.body);
    let counted = text.contains("\"usage\":{") && text.contains("\"completion_tokens\":");
    if counted {
        Ok(())
    } else {
        Err(format!("{what} holds no usage"))
    }
}

/// A stream that arrives at once at its end was buffered.
fn in_pieces(got: &Fetched) -> Result<(), String> {
    let [first, .., last] = got.pieces.as_slice() else {
        return Err("the streamed answer came in one piece".into());
    };
    let (took, expected) = (last.after - first.after, INTERVAL * (EVENTS - 1));
    if got.pieces.len() < EVENTS as usize / 2 || took < expected / 2 {
        let pieces = got.pieces.len();
        return Err(format!(
            "the stream was buffered: {pieces} pieces in {took:?}, upstream takes {expected:?}"
        ));
    }
    Ok(())
}
