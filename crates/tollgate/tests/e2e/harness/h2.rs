//! HTTP/2 clients: hand-written frames for what no library would send, and hyper for everything else.
//!
//! Not here: assertions.

use std::future::Future;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};

use testing::{Began, PATIENCE};

use super::{Response, patiently};

/// Frame types and error codes (RFC 9113, 6 and 7).
pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;
pub(crate) const END_STREAM: u8 = 1;
pub(crate) const END_HEADERS: u8 = 4;
pub(crate) const ACK: u8 = 1;
pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const INTERNAL_ERROR: u32 = 2;
pub(crate) const CANCEL: u32 = 8;
pub(crate) const ENHANCE_YOUR_CALM: u32 = 11;

/// A connection on which any frame can be sent.
pub(crate) struct Frames<S = TcpStream> {
    stream: S,
    unread: Vec<u8>,
}

/// One received frame.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// How a stream, or the connection before it, ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// With `END_STREAM` after this status.
    Whole(u16),
    /// Reset with this code.
    Reset(u32),
    /// The connection ended with GOAWAY and this code.
    GoAway(u32),
    /// The connection closed without GOAWAY.
    Closed,
}

impl Frames {
    /// Connects and exchanges the preface; `settings` are pairs of identifier and value.
    pub(crate) fn open(address: SocketAddr, settings: &[(u16, u32)]) -> Self {
        let tcp = TcpStream::connect(address).expect("something listens there");
        tcp.set_nodelay(true).expect("a socket option");
        let mut frames = Self::over(tcp, settings);
        frames.timeout(PATIENCE);
        frames
    }

    /// Sets the timeout of further reads and writes.
    pub(crate) fn timeout(&mut self, limit: Duration) {
        let tcp = &self.stream;
        tcp.set_read_timeout(Some(limit)).expect("a socket option");
        tcp.set_write_timeout(Some(limit)).expect("a socket option");
    }
}

impl<S: Read + Write> Frames<S> {
    /// Exchanges the preface on this stream.
    pub(crate) fn over(stream: S, settings: &[(u16, u32)]) -> Self {
        let mut frames = Self {
            stream,
            unread: Vec::new(),
        };
        let mut payload = Vec::new();
        // SETTINGS_HEADER_TABLE_SIZE 0, so that a status needs no table to be read.
        for (id, value) in [&[(1, 0)], settings].concat() {
            payload.extend_from_slice(&id.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        frames.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        frames.send(SETTINGS, 0, 0, &payload);
        frames
    }

    /// Sends one frame; `false` when the peer no longer accepts data.
    pub(crate) fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        self.write(&frame(kind, flags, stream, payload))
    }

    /// Sends these bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// Opens a stream with this header list.
    pub(crate) fn headers(&mut self, stream: u32, list: &[(&str, &str)], end: bool) -> bool {
        let flags = END_HEADERS | if end { END_STREAM } else { 0 };
        self.send(HEADERS, flags, stream, &encoded(list))
    }

    /// Resets a stream.
    pub(crate) fn reset(&mut self, stream: u32, code: u32) -> bool {
        self.send(RST_STREAM, 0, stream, &code.to_be_bytes())
    }

    /// The next frame; `None` when the connection is closed. Settings and pings are answered.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        loop {
            let frame = self.take()?;
            match (frame.kind, frame.flags & ACK) {
                (SETTINGS, 0) => drop(self.send(SETTINGS, ACK, 0, b"")),
                (PING, 0) => drop(self.send(PING, ACK, 0, &frame.payload)),
                (SETTINGS | PING, _) => {}
                _ => return Some(frame),
            }
        }
    }

    /// The server's first settings: identifiers and values.
    pub(crate) fn settings(&mut self) -> Vec<(u16, u32)> {
        let first = self.take().expect("settings come first");
        assert_eq!((first.kind, first.flags), (SETTINGS, 0));
        let pair = |bytes: &[u8]| {
            let [a, b, c, d, e, f] = *bytes else {
                panic!("settings come by six bytes")
            };
            (u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f]))
        };
        first.payload.chunks(6).map(pair).collect()
    }

    /// Reads until this stream or the connection ends.
    pub(crate) fn ended(&mut self, stream: u32) -> Ended {
        let mut status = 0;
        while let Some(frame) = self.next() {
            if frame.kind == GOAWAY && frame.code(4) != NO_ERROR {
                return Ended::GoAway(frame.code(4));
            }
            if frame.stream != stream {
                continue;
            }
            match frame.kind {
                RST_STREAM => return Ended::Reset(frame.code(0)),
                HEADERS if status == 0 => status = frame.status(),
                _ => {}
            }
            if matches!(frame.kind, HEADERS | DATA) && frame.flags & END_STREAM != 0 {
                return Ended::Whole(status);
            }
        }
        Ended::Closed
    }

    fn take(&mut self) -> Option<Frame> {
        self.fill(9)?;
        let head = &self.unread[..9];
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (kind, flags) = (head[3], head[4]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff;
        self.fill(9 + length)?;
        let payload = self.unread[9..9 + length].to_vec();
        self.unread.drain(..9 + length);
        Some(Frame {
            kind,
            flags,
            stream,
            payload,
        })
    }

    fn fill(&mut self, wanted: usize) -> Option<()> {
        let mut buffer = [0; 16384];
        while self.unread.len() < wanted {
            let began = Began::now();
            match testing::read(&mut self.stream, &mut buffer) {
                Ok(0) => return None,
                Err(_) => {
                    assert!(!began.is_over(PATIENCE), "neither a frame nor an end");
                    return None;
                }
                Ok(read) => self.unread.extend_from_slice(&buffer[..read]),
            }
        }
        Some(())
    }
}

impl Frame {
    /// The error code at this place of the payload.
    pub(crate) fn code(&self, at: usize) -> u32 {
        let bytes = self.payload.get(at..at + 4).and_then(|b| b.try_into().ok());
        bytes.map_or(u32::MAX, u32::from_be_bytes)
    }

    /// `:status`, which is the first field: from the static table, or as a literal.
    pub(crate) fn status(&self) -> u16 {
        // A change of the table's size may precede it.
        match self.payload.strip_prefix(b"\x20").unwrap_or(&self.payload) {
            [0x88, ..] => 200,
            [0x8c, ..] => 400,
            [0x8d, ..] => 404,
            [0x8e, ..] => 500,
            [0x48 | 0x08, length, text @ ..] => literal(*length, text),
            _ => 0,
        }
    }
}

/// Three digits, Huffman-coded or plain.
fn literal(length: u8, text: &[u8]) -> u16 {
    let text = &text[..usize::from(length & 0x7f).min(text.len())];
    if length & 0x80 == 0 {
        return std::str::from_utf8(text)
            .ok()
            .and_then(|t| t.parse().ok())
            .unwrap_or(0);
    }
    let bits: Vec<u8> = text
        .iter()
        .flat_map(|b| (0..8).rev().map(move |n| b >> n & 1))
        .collect();
    let value = |bits: &[u8]| {
        bits.iter()
            .fold(0_u16, |all, bit| all << 1 | u16::from(*bit))
    };
    let (mut at, mut status) = (0, 0);
    for _ in 0..3 {
        // 0, 1 and 2 have five bits, the other digits six.
        let short = bits.get(at..at + 5).map_or(0, value);
        let digit = if short <= 2 {
            short
        } else {
            bits.get(at..at + 6).map_or(0, value) - 22
        };
        at += if short <= 2 { 5 } else { 6 };
        status = status * 10 + digit;
    }
    status
}

/// One frame's bytes.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len())
        .expect("a frame is small")
        .to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// A header list as literals without indexing and without Huffman coding.
pub(crate) fn encoded(list: &[(&str, &str)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, value) in list {
        bytes.push(0);
        string(&mut bytes, name.as_bytes());
        string(&mut bytes, value.as_bytes());
    }
    bytes
}

/// A length with a seven-bit prefix, then the bytes.
pub(crate) fn string(to: &mut Vec<u8>, text: &[u8]) {
    let mut length = text.len();
    if length < 0x7f {
        to.push(u8::try_from(length).expect("below 127"));
    } else {
        to.push(0x7f);
        length -= 0x7f;
        while length >= 0x80 {
            to.push(u8::try_from(length & 0x7f | 0x80).expect("a byte"));
            length >>= 7;
        }
        to.push(u8::try_from(length).expect("below 128"));
    }
    to.extend_from_slice(text);
}

/// Runs a test that waits, within the patience of tests.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .expect("a runtime")
        .block_on(patiently("the test ends", test))
}

/// A client over this stream, which speaks HTTP/2 at once.
pub(crate) async fn client<S>(stream: S) -> SendRequest<Full<Bytes>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .handshake(TokioIo::new(stream))
        .await
        .expect("the preface is exchanged");
    tokio::spawn(async move { drop(connection.await) });
    sender
}

/// A client with prior knowledge.
pub(crate) async fn connect(address: SocketAddr) -> SendRequest<Full<Bytes>> {
    let tcp = tokio::net::TcpStream::connect(address)
        .await
        .expect("something listens there");
    tcp.set_nodelay(true).expect("a socket option");
    client(tcp).await
}

/// A POST of workload `w`.
pub(crate) fn post(path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let request = Request::post(format!("http://gate.test{path}"))
        .header("x-workload-app", "w")
        .header("content-type", "application/json");
    request
        .body(Full::new(body.into()))
        .expect("a good request")
}

/// Reads a response to its end; an error when it breaks off.
pub(crate) async fn whole(response: http::Response<Incoming>) -> Result<Response, hyper::Error> {
    let (parts, body) = response.into_parts();
    let text = |v: &http::HeaderValue| String::from_utf8_lossy(v.as_bytes()).into_owned();
    let headers = parts
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), text(value)));
    let headers = headers.collect();
    let body = body.collect().await?.to_bytes().to_vec();
    Ok(Response {
        status: parts.status.as_u16(),
        headers,
        body,
        whole: true,
    })
}
