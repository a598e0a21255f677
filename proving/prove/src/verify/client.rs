//! One call as a client makes it, and all that came back: head, body as far as it came, and how it ended.
//!
//! Invariant: every call has a connection of its own and an end in time; no answer is ever made up: who cannot be
//! reached, says nothing in time or shows a web page is [`Unanswered`].
//! Not here: what an answer has to be (`check`).

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use http::{HeaderMap, Method, Uri};
use load::client::{self, FetchError, Lines};
use tokio::net::TcpStream;

/// How long is waited for bytes behind an answer.
const LINGER: Duration = Duration::from_millis(20);
/// Bytes of an answer that are kept; a longer one is no answer.
const BODY_BYTES_MAX: usize = 16 << 20;

/// Whom to call: `http://HOST[:PORT][/PATH]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    host: String,
    port: u16,
    /// Without a slash at its end.
    prefix: String,
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) method: &'a Method,
    pub(super) path: &'a str,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    /// Names of headers as they are written, where they are not in small letters.
    pub(super) spelled: &'a BTreeMap<String, String>,
}

/// What came back.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// The reason phrase, where it is not the usual one.
    pub(super) reason: Vec<u8>,
    /// Trailers among them, in the order of arrival.
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
    /// Every byte that came on the connection.
    pub(super) raw: Vec<u8>,
    /// Why the body is not whole.
    pub(super) broken: Option<String>,
    pub(super) first_byte: Option<Instant>,
    /// Our end of the connection.
    pub(super) from: SocketAddr,
}

/// Why there is no answer that could be held against anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unanswered {
    #[error("{target} cannot be reached: {says}")]
    Unreachable { target: String, says: String },
    #[error("{target} did not answer whole within {patience:?}")]
    Late { target: String, patience: Duration },
    #[error("{target} gave no HTTP answer: {says}")]
    NotHttp { target: String, says: String },
    #[error("{target} answered with a web page (status {status}, {kind}): is it a gateway?")]
    Html {
        target: String,
        status: u16,
        kind: String,
    },
    #[error("{target} answered with more than {BODY_BYTES_MAX} bytes")]
    TooLong { target: String },
}

impl Target {
    /// Reads an address.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |says: &str| format!("{text:?}: {says}; write http://HOST[:PORT][/PATH]");
        let uri: Uri = text.parse().map_err(|_| wrong("is no URL"))?;
        if uri.scheme_str() != Some("http") {
            return Err(wrong("its scheme is not http"));
        }
        let authority = uri.authority().ok_or_else(|| wrong("has no host"))?;
        if authority.as_str().contains('@') {
            return Err(wrong("credentials do not belong in a URL"));
        }
        let path = uri.path_and_query().map_or("", |path| path.as_str());
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port: authority.port_u16().unwrap_or(80),
            prefix: path.trim_end_matches('/').to_owned(),
        })
    }

    pub(crate) fn at(address: SocketAddr) -> Self {
        Self {
            host: address.ip().to_string(),
            port: address.port(),
            prefix: String::new(),
        }
    }

    fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.prefix)
    }
}

/// Makes one call and hears its answer to the end.
pub(super) async fn ask(
    target: &Target,
    asked: Asked<'_>,
    patience: Duration,
) -> Result<Answer, Unanswered> {
    let late = |_| Unanswered::Late {
        target: target.to_string(),
        patience,
    };
    let answer = tokio::time::timeout(patience, exchange(target, asked));
    let answer = answer.await.map_err(late)??;
    match page(&answer) {
        Some(kind) => Err(Unanswered::Html {
            target: target.to_string(),
            status: answer.status,
            kind,
        }),
        None => Ok(answer),
    }
}

async fn exchange(target: &Target, asked: Asked<'_>) -> Result<Answer, Unanswered> {
    let unreachable = |error: std::io::Error| Unanswered::Unreachable {
        target: target.to_string(),
        says: error.to_string(),
    };
    let stream = TcpStream::connect((target.host.as_str(), target.port));
    let stream = stream.await.map_err(unreachable)?;
    // Without it only latency suffers.
    let _ = stream.set_nodelay(true);
    let from = stream.local_addr().map_err(unreachable)?;
    let heard =
        client::ask_and_linger(stream, &written(target, asked), BODY_BYTES_MAX, LINGER).await;
    let (fetched, end) = heard.map_err(|error| {
        let target = target.to_string();
        match error {
            FetchError::TooLong(_) => Unanswered::TooLong { target },
            error => Unanswered::NotHttp {
                target,
                says: error.to_string(),
            },
        }
    })?;
    let usual = http::StatusCode::from_u16(fetched.status).ok();
    let usual = usual.and_then(|status| status.canonical_reason());
    let Lines {
        mut reason,
        headers,
    } = fetched.lines;
    if usual.is_some_and(|usual| usual.as_bytes() == reason) {
        reason.clear();
    }
    Ok(Answer {
        status: fetched.status,
        reason,
        headers,
        first_byte: fetched
            .pieces
            .first()
            .map(|piece| fetched.sent + piece.after),
        body: fetched.body,
        raw: fetched.raw,
        broken: end.err().map(|error| error.to_string()),
        from,
    })
}

/// The bytes of a call. Not by a [`load::source::Head`], which lets nobody give what belongs to a connection.
fn written(target: &Target, asked: Asked<'_>) -> Vec<u8> {
    let has = |name: http::HeaderName| asked.headers.contains_key(name);
    let path = match (&*target.prefix, asked.path) {
        ("", "") => "/",
        (_, path) => path,
    };
    let mut head = format!("{} {}{path} HTTP/1.1\r\n", asked.method, target.prefix);
    if !has(http::header::HOST) {
        head.push_str(&format!("host: {}\r\n", target.authority()));
    }
    if !asked.body.is_empty() {
        if !has(http::header::CONTENT_TYPE) {
            head.push_str("content-type: application/json\r\n");
        }
        head.push_str(&format!("content-length: {}\r\n", asked.body.len()));
    }
    let mut bytes = head.into_bytes();
    for (name, value) in asked.headers {
        let name = asked
            .spelled
            .get(name.as_str())
            .map_or(name.as_str(), String::as_str);
        for part in [name.as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            bytes.extend_from_slice(part);
        }
    }
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(asked.body);
    bytes
}

pub(super) fn pairs(headers: &HeaderMap) -> Vec<(String, Vec<u8>)> {
    let each = headers.iter();
    each.map(|(name, value)| (name.to_string(), value.as_bytes().to_vec()))
        .collect()
}

/// What kind of web page an answer is.
fn page(answer: &Answer) -> Option<String> {
    let kind = answer.header("content-type").unwrap_or_default();
    let begins = answer.body.trim_ascii_start();
    let begins = begins.get(..begins.len().min(14)).unwrap_or_default();
    let begins = begins.to_ascii_lowercase();
    let is_page = kind.starts_with("text/html")
        || begins.starts_with(b"<!doctype html")
        || begins.starts_with(b"<html");
    is_page.then(|| {
        if kind.is_empty() {
            "no content type".to_owned()
        } else {
            kind
        }
    })
}

impl Answer {
    /// The first header of this name, as text.
    pub(super) fn header(&self, name: &str) -> Option<String> {
        let mut all = self.headers.iter();
        let (_, value) = all.find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    pub(super) fn is_stream(&self) -> bool {
        let kind = self.header("content-type").unwrap_or_default();
        kind.trim_start()
            .to_ascii_lowercase()
            .starts_with("text/event-stream")
    }
}

#[cfg(test)]
mod tests;
