//! One request, its whole response kept, with the time of every piece: for checks, not for load.
//!
//! Invariant: a response is bounded in bytes, and [`fetch`] in time; what is heard of one that breaks off is told as far as it
//! came.
//! Not here: many requests (`run`), TLS.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::response::{Lines, Malformed, Parser, Progress};
use crate::source::{Head, HeadError};

const BODY_LIMIT: usize = 64 * 1024 * 1024;
const BUFFER_BYTES: usize = 64 * 1024;
/// Heads and framing of a response beyond its body.
const FRAMING_LIMIT: usize = 64 * 1024 * 1024;

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
    /// More bytes than were asked for.
    #[error("the response has more than {0} bytes")]
    TooLong(usize),
    /// Not whole in time.
    #[error("the response was not whole within {0:?}")]
    Late(Duration),
}

/// A response.
#[derive(Debug)]
pub struct Fetched {
    /// The status code.
    pub status: u16,
    /// What its head said, and the trailers.
    pub lines: Lines,
    /// The body, unchunked.
    pub body: Vec<u8>,
    /// Every byte that came, interim answers, framing and what stood behind the end among them.
    pub raw: Vec<u8>,
    /// Every read that held body bytes.
    pub pieces: Vec<Chunk>,
    /// When the request began to be written.
    pub sent: Instant,
}

/// Body bytes that came in one read.
#[derive(Debug, Clone, Copy)]
pub struct Chunk {
    /// Time since the request was sent.
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
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut bytes = Vec::new();
    let (host, length) = (target.to_string(), request.body.len() as u64);
    request.head.write("", host.as_bytes(), length, &mut bytes);
    bytes.extend_from_slice(&request.body);
    let asked = async {
        let stream = TcpStream::connect(target).await?;
        stream.set_nodelay(true)?;
        let (fetched, end) = ask(stream, &bytes, BODY_LIMIT).await?;
        end.map(|()| fetched)
    };
    let heard = runtime.block_on(async { tokio::time::timeout(patience, asked).await });
    heard.unwrap_or(Err(FetchError::Late(patience)))
}

/// Writes the bytes of one request and hears its response, with a body of at most `most` bytes, and how that ended.
///
/// # Errors
/// There was no head, or the body is longer.
pub async fn ask(
    stream: TcpStream,
    request: &[u8],
    most: usize,
) -> Result<(Fetched, Result<(), FetchError>), FetchError> {
    ask_and_linger(stream, request, most, Duration::ZERO).await
}

/// As [`ask`]; once the response is whole, what comes behind it for so long is in [`Fetched::raw`], too.
///
/// # Errors
/// As of [`ask`].
pub async fn ask_and_linger(
    mut stream: TcpStream,
    request: &[u8],
    most: usize,
    linger: Duration,
) -> Result<(Fetched, Result<(), FetchError>), FetchError> {
    let (mut from, mut to) = stream.split();
    let sent = Instant::now();
    let written = async {
        // Whoever does not take all of a request may answer it all the same: so that reading tells what became of it.
        let _broken = to.write_all(request).await;
        std::future::pending::<()>().await;
    };
    let has_body = !request.starts_with(b"HEAD ");
    let mut fetched = Fetched {
        status: 0,
        lines: Lines::default(),
        body: Vec::new(),
        raw: Vec::new(),
        pieces: Vec::new(),
        sent,
    };
    let mut parser = Parser::with_lines();
    let read = async {
        let end = read(&mut from, has_body, most, &mut parser, &mut fetched).await;
        if end.is_ok() && !linger.is_zero() {
            let behind = behind(&mut from, most, &mut fetched.raw);
            // Whoever says nothing more is waited for until then.
            let _late = tokio::time::timeout(linger, behind).await;
        }
        end
    };
    let end = tokio::select! {
        end = read => end,
        () = written => Err(FetchError::Cut),
    };
    // An interim one has none yet.
    fetched.status = Some(parser.status())
        .filter(|status| *status >= 200)
        .unwrap_or(0);
    fetched.lines = parser.into_lines();
    match end {
        Err(error @ FetchError::TooLong(_)) => Err(error),
        Err(error) if fetched.status == 0 => Err(error),
        end => Ok((fetched, end)),
    }
}

/// What comes behind a whole response.
async fn behind(from: &mut tokio::net::tcp::ReadHalf<'_>, most: usize, raw: &mut Vec<u8>) {
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        raw.extend_from_slice(&buffer[..count]);
        if raw.len() > most.saturating_add(FRAMING_LIMIT) {
            return;
        }
    }
}

async fn read(
    from: &mut tokio::net::tcp::ReadHalf<'_>,
    has_body: bool,
    most: usize,
    parser: &mut Parser,
    fetched: &mut Fetched,
) -> Result<(), FetchError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let count = from.read(&mut buffer).await?;
        if count == 0 {
            return if parser.ends_at_close() {
                Ok(())
            } else {
                Err(FetchError::Cut)
            };
        }
        fetched.raw.extend_from_slice(&buffer[..count]);
        let (before, body) = (fetched.body.len(), &mut fetched.body);
        let progress = parser.feed(&buffer[..count], &mut |bytes: &[u8]| {
            body.extend_from_slice(bytes);
        });
        if body.len() > before {
            fetched.pieces.push(Chunk {
                after: fetched.sent.elapsed(),
                bytes: body.len() - before,
            });
        }
        if body.len() > most || fetched.raw.len() > most.saturating_add(FRAMING_LIMIT) {
            return Err(FetchError::TooLong(most));
        }
        let is_whole = matches!(progress?, Progress::Done { .. });
        if is_whole || !has_body && parser.status() >= 200 {
            return Ok(());
        }
    }
}
