//! A client of the gate, over either version of HTTP, with or without TLS: one connection, one attempt after the other.
//!
//! Not here: what is sent (`attempt`).

use std::io::{Read, Write};
use std::net::Ipv4Addr;

use super::attempt::{Attempt, Framing, Version};
use super::scene::{Peer, Scene};
use crate::harness::h2::{self, Frames};
use crate::harness::tls_client::{H1, H2, TlsClient};
use crate::harness::{Connection, chat, connect_from};

/// A stream of bytes, encrypted or not.
pub(super) trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// One connection.
pub(super) enum Client {
    H1(Connection<Box<dyn Stream>>),
    /// And the id of its next stream.
    H2(Frames<Box<dyn Stream>>, u32),
}

/// What came of an attempt.
pub(super) struct Answer {
    /// 0: the stream was reset, or the connection was closed.
    pub(super) status: u16,
    pub(super) says: String,
    /// Whether the connection takes another attempt.
    pub(super) is_open: bool,
}

impl Client {
    pub(super) fn open(scene: &Scene<'_>, version: Version, peer: Peer, from: Ipv4Addr) -> Self {
        let tcp = connect_from(from, scene.gate.data);
        let stream: Box<dyn Stream> = if scene.is_tls {
            let client = TlsClient::new(&scene.world.public, scene.world.leaf(peer));
            let protocol = if version == Version::H2 { H2 } else { H1 };
            Box::new(client.over(tcp, protocol))
        } else {
            Box::new(tcp)
        };
        match version {
            Version::H1 => Self::H1(Connection::over(stream)),
            Version::H2 => Self::H2(Frames::over(stream, &[]), 1),
        }
    }

    pub(super) fn call(&mut self, attempt: &Attempt<'_>) -> Answer {
        match self {
            Self::H1(connection) => {
                let response = connection.call(&request(attempt));
                Answer {
                    status: response.status,
                    says: response.text(),
                    is_open: response.status == 200,
                }
            }
            Self::H2(frames, id) => {
                let stream = *id;
                *id += 2;
                send(frames, stream, attempt);
                answered(frames, stream)
            }
        }
    }
}

/// Trailers that would let somebody in, were they read.
const TRAILERS: [(&str, &str); 2] = [
    ("authorization", "Bearer opaque-1"),
    ("x-workload-app", "chat"),
];
const CRUMBS: [(&str, &str); 2] = [("cookie", "a=1"), ("cookie", "x-workload-app=chat")];

/// The bytes of a request over HTTP/1.1.
fn request(attempt: &Attempt<'_>) -> Vec<u8> {
    let path = &attempt.path;
    let mut text =
        format!("POST {path} HTTP/1.1\r\nhost: gate.test\r\ncontent-type: application/json\r\n");
    let mut is_first = true;
    for (name, value) in &attempt.fields {
        let is_blank = attempt.framing == Framing::BlankBeforeColon && is_first;
        let blank = if is_blank { " " } else { "" };
        text += &format!("{name}{blank}: {value}\r\n");
        is_first = false;
    }
    match attempt.framing {
        Framing::BlankBeforeColon if is_first => text += "x-workload-app : chat\r\n",
        Framing::Folded => text += "x-a: b\r\n Bearer c\r\n",
        Framing::CookieCrumbs => {
            for (name, value) in CRUMBS {
                text += &format!("{name}: {value}\r\n");
            }
        }
        _ => {}
    }
    let body = chat("m", false);
    let length = body.len();
    if attempt.framing == Framing::Trailers {
        text += &format!("transfer-encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n");
        for (name, value) in TRAILERS {
            text += &format!("{name}: {value}\r\n");
        }
        text += "\r\n";
    } else {
        text += &format!("content-length: {length}\r\n\r\n{body}");
    }
    text.into_bytes()
}

/// The frames of a request over HTTP/2.
fn send(frames: &mut Frames<Box<dyn Stream>>, stream: u32, attempt: &Attempt<'_>) {
    let list = list(attempt);
    if attempt.framing == Framing::Continuation {
        let block = h2::encoded(&list);
        let (first, rest) = block.split_at(block.len() / 2);
        frames.send(h2::HEADERS, 0, stream, first);
        frames.send(h2::CONTINUATION, h2::END_HEADERS, stream, rest);
    } else {
        frames.headers(stream, &list, false);
    }
    let body = chat("m", false);
    if attempt.framing == Framing::Trailers {
        frames.send(h2::DATA, 0, stream, body.as_bytes());
        frames.headers(stream, &TRAILERS, true);
    } else {
        frames.send(h2::DATA, h2::END_STREAM, stream, body.as_bytes());
    }
}

fn list<'a>(attempt: &'a Attempt<'_>) -> Vec<(&'a str, &'a str)> {
    let path = (":path", attempt.path.as_str());
    let mut list = vec![(":method", "POST"), (":scheme", "http")];
    if attempt.framing != Framing::PseudoLast {
        list.push(path);
    }
    if attempt.framing != Framing::HostAlone {
        list.push((":authority", "gate.test"));
    }
    match attempt.framing {
        Framing::HostAlone | Framing::HostBeside => list.push(("host", "gate.test")),
        Framing::OtherHost => list.push(("host", "other.test")),
        Framing::PathTwice => list.insert(0, path),
        Framing::UnknownPseudo => list.push((":authorization", "Bearer opaque-1")),
        Framing::CookieCrumbs => list.extend(CRUMBS),
        _ => {}
    }
    list.push(("content-type", "application/json"));
    let fields = attempt.fields.iter();
    list.extend(fields.map(|(name, value)| (name.as_str(), value.as_str())));
    if attempt.framing == Framing::PseudoLast {
        list.push(path);
    }
    list
}

/// Reads until the stream or the connection ends.
fn answered(frames: &mut Frames<Box<dyn Stream>>, stream: u32) -> Answer {
    let (mut status, mut body) = (0, Vec::new());
    let ended = |status, says: String, is_open| Answer {
        status,
        says,
        is_open,
    };
    while let Some(frame) = frames.next() {
        if frame.kind == h2::GOAWAY {
            return ended(0, format!("GOAWAY {}", frame.code(4)), false);
        }
        if frame.stream != stream {
            continue;
        }
        match frame.kind {
            h2::RST_STREAM => return ended(0, format!("reset {}", frame.code(0)), true),
            h2::HEADERS if status == 0 => status = frame.status(),
            h2::DATA => body.extend_from_slice(&frame.payload),
            _ => {}
        }
        if matches!(frame.kind, h2::HEADERS | h2::DATA) && frame.flags & h2::END_STREAM != 0 {
            let says = String::from_utf8_lossy(&body).into_owned();
            return ended(status, says, true);
        }
    }
    ended(0, "closed".to_owned(), false)
}
