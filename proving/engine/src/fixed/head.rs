//! The head of a request, as far as a constant answer needs it.
//!
//! Invariant: a body is framed by exactly one of Content-Length and chunked; both, or neither readable, is refused.
//! Not here: the body itself.

use std::time::Duration;

use super::FixedConfig;
use super::body::Body;

const MAX_HEADERS: usize = 64;

pub(super) struct Head {
    pub(super) length: usize,
    pub(super) body: Body,
    pub(super) post: bool,
    pub(super) close: bool,
    pub(super) expects_continue: bool,
    pub(super) latency: Duration,
    pub(super) events: u32,
    pub(super) interval: Duration,
    /// The caller's name for it, where the ground truth is kept.
    pub(super) id: Option<Box<str>>,
    keeps_id: bool,
}

/// The bytes are no HTTP/1.1 request that can be answered.
#[derive(Debug)]
pub(super) struct Malformed;

/// Reads a head at the start of `bytes`; `None` while it is incomplete.
pub(super) fn parse(bytes: &[u8], config: &FixedConfig) -> Result<Option<Head>, Malformed> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Malformed),
    };
    let mut head = Head {
        length,
        body: Body::Sized(0),
        post: request.method == Some("POST"),
        close: request.version == Some(0),
        expects_continue: false,
        latency: config.latency,
        events: config.events,
        interval: config.interval,
        id: None,
        keeps_id: config.ground_truth.is_some(),
    };
    let mut framings = 0;
    for header in request.headers.iter() {
        framings += usize::from(head.read(header.name, header.value)?);
    }
    if framings > 1 {
        Err(Malformed)
    } else {
        Ok(Some(head))
    }
}

impl Head {
    /// Takes one header in. Returns whether it frames the body.
    fn read(&mut self, name: &str, value: &[u8]) -> Result<bool, Malformed> {
        // Most headers are of no interest: their length tells.
        match name.len() {
            6 if is(name, "expect") => self.expects_continue = true,
            10 if is(name, "connection") => self.close |= value.eq_ignore_ascii_case(b"close"),
            12 if self.keeps_id && is(name, "x-request-id") => {
                self.id = Some(crate::ground_truth::id(value));
            }
            14 if is(name, "content-length") => {
                self.body = Body::Sized(number(value)?);
                return Ok(true);
            }
            14 if is(name, "x-fixed-events") => {
                self.events = u32::try_from(number(value)?).map_err(|_| Malformed)?;
            }
            17 if is(name, "transfer-encoding") => {
                if !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Malformed);
                }
                self.body = Body::chunked();
                return Ok(true);
            }
            18 if is(name, "x-fixed-latency-us") => {
                self.latency = Duration::from_micros(number(value)?)
            }
            19 if is(name, "x-fixed-interval-us") => {
                self.interval = Duration::from_micros(number(value)?)
            }
            _ => {}
        }
        Ok(false)
    }
}

fn is(name: &str, known: &str) -> bool {
    name.eq_ignore_ascii_case(known)
}

fn number(value: &[u8]) -> Result<u64, Malformed> {
    let digits = std::str::from_utf8(value)
        .ok()
        .filter(|v| v.bytes().all(|b| b.is_ascii_digit()));
    digits.and_then(|v| v.parse().ok()).ok_or(Malformed)
}
