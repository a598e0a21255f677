//! One request, its whole response kept, with the time of every piece: for checks, not for load.
//!
//! Invariant: bounded by a timeout and 64 MiB.
//! Not here: many requests (`run`), TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::response::{Malformed, Parser, Progress};
use crate::source::{Head, HeadError};

const BODY_LIMIT: usize = 64 * 1024 * 1024;

/// A head and its body.
#[derive(Debug, Clone)]
pub struct Request {
    /// With a host of its own, or that of the address that it is sent to.
    pub head: Head,
    /// May be empty.
    pub body: Bytes,
}

impl Request {
    /// A GET of `path`.
    ///
    /// # Errors
    /// `path` is none.
    pub fn get(path: &str) -> Result<Self, HeadError> {
        let (head, body) = (Head::get(path)?, Bytes::new());
        Ok(Self { head, body })
    }
}

/// No whole response.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// No connection, or it broke.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Not HTTP/1.1.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The peer closed in the middle.
    #[error("the connection closed before the response was whole")]
    Cut,
    /// More than 64 MiB, or not whole in time.
    #[error("the response was not whole within {0:?} and 64 MiB")]
    Unbounded(Duration),
}

/// A whole response.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The status code.
    pub status: u16,
    /// The body, unchunked.
    pub body: Vec<u8>,
    /// Every read that held body bytes.
    pub pieces: Vec<Chunk>,
}

/// Body bytes that came in one read.
#[derive(Debug, Clone, Copy)]
pub struct Chunk {
    /// Time since the request was written.
    pub after: Duration,
    /// How many.
    pub bytes: usize,
}

/// Sends `request` to `target` on a connection of its own and reads the whole response.
///
/// # Errors
/// There was no whole response.
pub fn fetch(
    target: SocketAddr,
    request: &Request,
    patience: Duration,
) -> Result<Fetched, FetchError> {
    let mut stream = TcpStream::connect_timeout(&target, patience)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(patience))?;
    let mut bytes = Vec::new();
    let (host, length) = (target.to_string(), request.body.len() as u64);
    request.head.write("", host.as_bytes(), length, &mut bytes);
    bytes.extend_from_slice(&request.body);
    stream.write_all(&bytes)?;
    let sent = Instant::now();
    let (mut parser, mut body, mut pieces) = (Parser::new(), Vec::new(), Vec::new());
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let left = patience.saturating_sub(sent.elapsed());
        if left.is_zero() || body.len() > BODY_LIMIT {
            return Err(FetchError::Unbounded(patience));
        }
        stream.set_read_timeout(Some(left))?;
        let count = stream.read(&mut buffer)?;
        if count == 0 && !parser.ends_at_close() {
            return Err(FetchError::Cut);
        }
        let before = body.len();
        let progress = parser.feed(&buffer[..count], &mut |bytes: &[u8]| {
            body.extend_from_slice(bytes)
        })?;
        if body.len() > before {
            pieces.push(Chunk {
                after: sent.elapsed(),
                bytes: body.len() - before,
            });
        }
        if count == 0 || matches!(progress, Progress::Done { .. }) {
            return Ok(Fetched {
                status: parser.status(),
                body,
                pieces,
            });
        }
    }
}
