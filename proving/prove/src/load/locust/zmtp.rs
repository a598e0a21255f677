//! ZeroMQ's wire protocol (ZMTP 3.0, mechanism NULL), as far as two sockets that exchange messages of one frame need it.
//!
//! The crate `zeromq` was weighed and left: its DEALER does not reconnect, it reserves whatever length a peer announces,
//! and it keeps its own queue of 100,000 messages, of which nobody could say which were written.
//! Invariant: whatever bytes a peer sends, the answer is a message or a [`ZmtpError`]; what is kept is at most one frame.
//! Source: <https://rfc.zeromq.org/spec/23/>. Not here: what a message means (`message`), sockets (`worker`).

use bytes::{Buf, BytesMut};

/// Longest frame that is read.
pub(super) const MOST_FRAME_BYTES: usize = 1 << 20;

const GREETING_BYTES: usize = 64;
const MECHANISM: &[u8] = b"NULL";
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// Why a peer's bytes cannot be read any further.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(super) enum ZmtpError {
    #[error("the peer does not speak ZeroMQ 3: its first bytes are no greeting")]
    Greeting,
    #[error("the peer wants the mechanism {0:?}; only NULL is spoken here")]
    Mechanism(String),
    #[error("a frame of {0} bytes; at most {MOST_FRAME_BYTES} are read")]
    Frame(u64),
    #[error("a frame with the flags {0:#04x}, which have no meaning here")]
    Flags(u8),
    #[error("the peer refuses the connection: {0}")]
    Refused(String),
    #[error("no readable handshake")]
    Handshake,
    #[error("the peer is a {0} socket, not a {1}")]
    Socket(String, &'static str),
}

/// What a peer said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PeerEvent {
    /// The handshake is over; the peer's identity, which may be empty.
    Ready { identity: Vec<u8> },
    /// A message of one frame.
    Message(Vec<u8>),
}

/// Reads a peer's bytes, however they are cut.
pub(super) struct Decoder {
    bytes: BytesMut,
    stage: Stage,
    /// What the peer's socket must be.
    peer: &'static str,
}

#[derive(Clone, Copy)]
enum Stage {
    Greeting,
    Handshake,
    Messages,
}

impl Decoder {
    /// For a peer of the type `peer`, as `ROUTER`.
    pub(super) fn new(peer: &'static str) -> Self {
        Self {
            bytes: BytesMut::new(),
            stage: Stage::Greeting,
            peer,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next thing that is there whole. To be called until there is none.
    pub(super) fn next(&mut self) -> Result<Option<PeerEvent>, ZmtpError> {
        if matches!(self.stage, Stage::Greeting) {
            if !self.greeting()? {
                return Ok(None);
            }
            self.stage = Stage::Handshake;
        }
        while let Some((flags, body)) = self.frame()? {
            let is_command = flags & COMMAND != 0;
            match (self.stage, is_command) {
                (Stage::Messages, false) => return Ok(Some(PeerEvent::Message(body.to_vec()))),
                (Stage::Messages, true) => {}
                (_, true) => {
                    let identity = handshake(&body, self.peer)?;
                    self.stage = Stage::Messages;
                    return Ok(Some(PeerEvent::Ready { identity }));
                }
                (_, false) => return Err(ZmtpError::Handshake),
            }
        }
        Ok(None)
    }

    /// Whether the greeting was there. A wrong first byte is told at once: the rest may never come.
    fn greeting(&mut self) -> Result<bool, ZmtpError> {
        if self.bytes.first().is_some_and(|first| *first != 0xff) {
            return Err(ZmtpError::Greeting);
        }
        if self.bytes.len() < GREETING_BYTES {
            return Ok(false);
        }
        let greeting = self.bytes.split_to(GREETING_BYTES);
        if greeting[9] != 0x7f || greeting[10] < 3 {
            return Err(ZmtpError::Greeting);
        }
        let mechanism = greeting[12..32].split(|byte| *byte == 0).next();
        match mechanism.unwrap_or_default() {
            MECHANISM => Ok(true),
            other => Err(ZmtpError::Mechanism(lossy(other))),
        }
    }

    fn frame(&mut self) -> Result<Option<(u8, BytesMut)>, ZmtpError> {
        let Some(&flags) = self.bytes.first() else {
            return Ok(None);
        };
        if flags & !(LONG | COMMAND) != 0 {
            return Err(ZmtpError::Flags(flags));
        }
        let header = if flags & LONG == 0 { 2 } else { 9 };
        let Some(size) = self.bytes.get(1..header) else {
            return Ok(None);
        };
        let announced = size
            .iter()
            .fold(0, |length: u64, byte| length << 8 | u64::from(*byte));
        let length = usize::try_from(announced).ok();
        let length = length.filter(|length| *length <= MOST_FRAME_BYTES);
        let length = length.ok_or(ZmtpError::Frame(announced))?;
        if self.bytes.len() < header + length {
            return Ok(None);
        }
        self.bytes.advance(header);
        Ok(Some((flags, self.bytes.split_to(length))))
    }
}

/// The peer's identity, from its READY.
fn handshake(body: &[u8], peer: &'static str) -> Result<Vec<u8>, ZmtpError> {
    let (name, mut rest) = short(body).ok_or(ZmtpError::Handshake)?;
    if name == b"ERROR" {
        let (reason, _) = short(rest).ok_or(ZmtpError::Handshake)?;
        return Err(ZmtpError::Refused(lossy(reason)));
    }
    if name != b"READY" {
        return Err(ZmtpError::Handshake);
    }
    let (mut socket, mut identity) = (Vec::new(), Vec::new());
    while !rest.is_empty() {
        let (name, after) = short(rest).ok_or(ZmtpError::Handshake)?;
        let (size, after) = after.split_first_chunk().ok_or(ZmtpError::Handshake)?;
        let size = u32::from_be_bytes(*size) as usize;
        let (value, after) = after.split_at_checked(size).ok_or(ZmtpError::Handshake)?;
        if name.eq_ignore_ascii_case(b"Socket-Type") {
            value.clone_into(&mut socket);
        } else if name.eq_ignore_ascii_case(b"Identity") {
            value.clone_into(&mut identity);
        }
        rest = after;
    }
    if socket == peer.as_bytes() {
        Ok(identity)
    } else {
        Err(ZmtpError::Socket(lossy(&socket), peer))
    }
}

/// A text with its length in one byte before it, and what follows.
fn short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (size, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*size))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(64)]).into_owned()
}

/// What a socket says first: its greeting and its handshake in one piece.
pub(super) fn opening(socket: &str, identity: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; GREETING_BYTES];
    bytes[0] = 0xff;
    bytes[8] = 1;
    bytes[9] = 0x7f;
    bytes[10] = 3;
    bytes[12..12 + MECHANISM.len()].copy_from_slice(MECHANISM);
    let mut ready = b"\x05READY".to_vec();
    for (name, value) in [("Socket-Type", socket.as_bytes()), ("Identity", identity)] {
        ready.push(u8::try_from(name.len()).expect("names of two words"));
        ready.extend_from_slice(name.as_bytes());
        let size = u32::try_from(value.len()).expect("an identity of at most 255 bytes");
        ready.extend_from_slice(&size.to_be_bytes());
        ready.extend_from_slice(value);
    }
    put_frame(COMMAND, &ready, &mut bytes);
    bytes
}

/// Appends a message of one frame.
pub(super) fn put_message(body: &[u8], to: &mut Vec<u8>) {
    put_frame(0, body, to);
}

fn put_frame(flags: u8, body: &[u8], to: &mut Vec<u8>) {
    match u8::try_from(body.len()) {
        Ok(length) => to.extend_from_slice(&[flags, length]),
        Err(_) => {
            to.push(flags | LONG);
            to.extend_from_slice(&(body.len() as u64).to_be_bytes());
        }
    }
    to.extend_from_slice(body);
}

#[cfg(test)]
mod tests;
