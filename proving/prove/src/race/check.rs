//! Does a subject answer as the upstream does? Asked before anything is measured.
//!
//! Invariant: the yardstick is the upstream's own answer in the same run: byte for byte, or, for a
//! gateway that writes JSON anew, member for member apart from those its manifest names.
//! Not here: speed; what equals what (`same`).

mod same;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::time::Duration;

use load::client::{Fetched, Request, fetch};
use load::source::Head;

use super::scenario::{Scenario, Timing};
use crate::subject::{Body, Client, Manifest};
use same::{same_bytes, same_events, same_json};

const PATIENCE: Duration = Duration::from_secs(10);
const EVENTS: u32 = 6;
const INTERVAL: Duration = Duration::from_millis(40);
const LATENCY: &str = "x-fixed-latency-us";
const MODEL: &str = "race-model";
/// A name that every gateway on loopback answers for.
const HOST: &str = "localhost";
const UNARY: &str = r#"{"model":"race-model","messages":[{"role":"user","content":"Answer."}]}"#;
const STREAM: &str = r#"{"model":"race-model","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Answer."}]}"#;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// How the answers differ where they may.
    pub(crate) note: Option<String>,
    /// Streaming does not work, and everything else does.
    pub(crate) stream_fault: Option<String>,
    /// The upstream cannot be told what to do through it.
    pub(crate) deaf: Option<String>,
}

/// Checks status, body, streaming and usage; the first difference in a unary answer is the error.
pub(crate) fn check(
    (manifest, client): (&Manifest, &Client),
    address: SocketAddr,
    upstream: SocketAddr,
) -> Result<Checked, String> {
    let what = "the unary answer";
    let expected = upstreams_answer(upstream)?;
    let got = ask(address, &unary(Some(client), &[])?, what)?;
    let note = match manifest.body {
        Body::Bytes => same_bytes(what, &got.body, &expected).map(|()| None),
        Body::Json => same_json(what, &got.body, &expected, &manifest.differs),
    }?;
    has_usage(what, &got)?;
    let deaf = passes_headers_on(client, address)?;
    let stream_fault = match &deaf {
        Some(says) => Some(says.clone()),
        // A first stream may wait for code to be loaded; only what is true twice is a fault.
        None => check_stream((manifest, client), address, upstream)
            .or_else(|_| check_stream((manifest, client), address, upstream))
            .err(),
    };
    Ok(Checked {
        note,
        stream_fault,
        deaf,
    })
}

/// Latency is asked of the upstream by a header; a gateway that drops it would seem to be fast.
fn passes_headers_on(client: &Client, address: SocketAddr) -> Result<Option<String>, String> {
    let asks = [(LATENCY.to_owned(), INTERVAL.as_micros().to_string())];
    let got = ask(address, &unary(Some(client), &asks)?, "the delayed answer")?;
    let took = got
        .pieces
        .first()
        .map_or(Duration::ZERO, |piece| piece.after);
    let heard = took >= INTERVAL;
    Ok((!heard).then(|| format!("does not pass on the header {LATENCY}: answered in {took:?}")))
}

fn check_stream(
    (manifest, client): (&Manifest, &Client),
    address: SocketAddr,
    upstream: SocketAddr,
) -> Result<(), String> {
    let what = "the streamed answer";
    let asks = stream_asks();
    let expected = upstreams_stream(upstream)?;
    let asked = request(Some(client), &asks, STREAM.as_bytes())?;
    let got = ask(address, &asked, what)?;
    match manifest.body {
        Body::Bytes => same_bytes(what, &got.body, &expected)?,
        Body::Json => same_events(what, &got.body, &expected)?,
    }
    has_usage(what, &got)?;
    if !got.body.trim_ascii_end().ends_with(b"data: [DONE]") {
        return Err("the streamed answer does not end with [DONE]".into());
    }
    in_pieces(&got)
}

/// The upstream's own answer to a small request.
pub(super) fn upstreams_answer(upstream: SocketAddr) -> Result<Vec<u8>, String> {
    let answer = ask(upstream, &unary(None, &[])?, "the upstream's unary answer")?;
    Ok(answer.body)
}

/// The same as a stream.
pub(super) fn upstreams_stream(upstream: SocketAddr) -> Result<Vec<u8>, String> {
    let request = request(None, &stream_asks(), STREAM.as_bytes())?;
    Ok(ask(upstream, &request, "the upstream's streamed answer")?.body)
}

/// A small unary request.
pub(crate) fn unary(client: Option<&Client>, asks: &[(String, String)]) -> Result<Request, String> {
    request(client, asks, UNARY.as_bytes())
}

/// A request as `client` wants it, with what is asked of the upstream in headers.
pub(crate) fn request(
    client: Option<&Client>,
    asks: &[(String, String)],
    body: &[u8],
) -> Result<Request, String> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let further = client.map(|client| &client.headers);
    let is_own = |name: &String| name.eq_ignore_ascii_case("authorization");
    if !further.is_some_and(|further| further.keys().any(is_own)) {
        headers.push(("authorization".to_owned(), "Bearer sk-client".to_owned()));
    }
    let further = further.into_iter().flatten();
    headers.extend(further.map(|(name, value)| (name.clone(), value.clone())));
    headers.extend_from_slice(asks);
    let path = client
        .and_then(|client| client.path.as_deref())
        .unwrap_or("/v1/chat/completions");
    match client.and_then(|client| client.model.as_deref()) {
        None => post(path, &headers, body.to_vec()),
        Some(model) => post(path, &headers, named(body, model)),
    }
}

/// A POST to a host that every gateway on loopback answers for.
pub(crate) fn post(
    path: &str,
    headers: &[(String, String)],
    body: Vec<u8>,
) -> Result<Request, String> {
    let mut head = Head::post(path).and_then(|head| head.with("host", HOST));
    for (name, value) in headers {
        head = head.and_then(|head| head.with(name, value));
    }
    let head = head.map_err(|error| error.to_string())?;
    let body = body.into();
    Ok(Request { head, body })
}

/// The body with another model's name.
fn named(body: &[u8], model: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    text.replacen(MODEL, model, 1).into_bytes()
}

/// What `scenario` asks of the upstream.
pub(crate) fn asks(scenario: &Scenario, timing: &Timing) -> Vec<(String, String)> {
    let mut asks = Vec::new();
    let mut ask = |name: &str, value: u64| {
        if value > 0 {
            asks.push((name.to_owned(), value.to_string()));
        }
    };
    ask(LATENCY, scenario.latency_ms * 1_000);
    ask("x-fixed-events", scenario.events_of(timing));
    ask("x-fixed-interval-us", scenario.interval_ms * 1_000);
    asks
}

pub(super) fn stream_asks() -> Vec<(String, String)> {
    vec![
        ("x-fixed-events".to_owned(), EVENTS.to_string()),
        (
            "x-fixed-interval-us".to_owned(),
            INTERVAL.as_micros().to_string(),
        ),
    ]
}

pub(super) fn ask(address: SocketAddr, request: &Request, what: &str) -> Result<Fetched, String> {
    let fetched = fetch(address, request, PATIENCE).map_err(|error| format!("{what}: {error}"))?;
    if fetched.status == 200 {
        Ok(fetched)
    } else {
        Err(format!("{what} has status {}", fetched.status))
    }
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
