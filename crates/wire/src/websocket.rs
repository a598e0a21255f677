//! WebSocket (RFC 6455): frames of a client or of a server into messages, and messages into frames.
//!
//! Invariant: a message is told once, when all of it has come, however its bytes are cut; none is longer than its reader takes, and what
//! is no WebSocket ends the reading for good, by the code that RFC 6455 has for it. No extension is spoken.
//! Not here: the handshake (`policy::plain`, `proxy`), what messages say.

use std::fmt;

/// A frame has no longer head: two bytes, a length, a mask.
const HEAD_BYTES: usize = 2 + 8 + 4;
/// Room that is kept between messages.
const KEPT_BYTES: usize = 64 << 10;
/// A control frame carries no more.
const CONTROL_BYTES: usize = 125;

/// What the other side sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// It wants these bytes back ([`pong`]).
    Ping(Vec<u8>),
    /// What it was asked for.
    Pong,
    /// It ends the connection, by this code where it says one.
    Close(Option<u16>),
}

/// Why what came is no WebSocket, or none that is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A frame that is none.
    Protocol,
    /// A text that is no UTF-8.
    NoText,
    /// A message is longer than is taken.
    TooLong,
}

impl Fault {
    /// The code by which the connection is ended.
    #[must_use]
    pub const fn code(self) -> u16 {
        match self {
            Self::Protocol => 1002,
            Self::NoText => 1007,
            Self::TooLong => 1009,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Protocol => "a frame is not as RFC 6455 has it",
            Self::NoText => "a text is not UTF-8",
            Self::TooLong => "a message is too long",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opcode {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

impl Opcode {
    const fn of(bits: u8) -> Option<Self> {
        Some(match bits {
            0 => Self::Continuation,
            1 => Self::Text,
            2 => Self::Binary,
            8 => Self::Close,
            9 => Self::Ping,
            10 => Self::Pong,
            _ => return None,
        })
    }

    const fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

/// The head of a frame.
#[derive(Debug, Clone, Copy)]
struct Head {
    opcode: Opcode,
    is_last: bool,
    length: usize,
    /// Of a client's frame.
    mask: Option<[u8; 4]>,
    /// Bytes of the head itself.
    bytes: usize,
}

/// Reads what a client sends, or a server.
#[derive(Debug)]
pub struct Reader {
    /// What has come and is not read.
    input: Vec<u8>,
    /// How much of it was read.
    at: usize,
    /// What has come of a message in several frames, and whether it is a text.
    begun: Option<(bool, Vec<u8>)>,
    /// The other side is a client, each frame of which is masked.
    is_masked: bool,
    most: usize,
    fault: Option<Fault>,
}

impl Reader {
    /// One of a client that takes messages of at most so many bytes.
    #[must_use]
    pub const fn new(most: usize) -> Self {
        Self::of(true, most)
    }

    /// The same of a server.
    #[must_use]
    pub const fn of_server(most: usize) -> Self {
        Self::of(false, most)
    }

    const fn of(is_masked: bool, most: usize) -> Self {
        Self {
            input: Vec::new(),
            at: 0,
            begun: None,
            is_masked,
            most,
            fault: None,
        }
    }

    /// Takes what came.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.at > 0 {
            self.input.drain(..self.at);
            self.at = 0;
            // A long message was read: what it needed is not kept for the connection's life.
            if self.input.capacity() > KEPT_BYTES {
                self.input.shrink_to(KEPT_BYTES);
            }
        }
        if self.fault.is_none() {
            self.input.extend_from_slice(bytes);
        }
    }

    /// Bytes that it keeps.
    #[must_use]
    pub fn held(&self) -> usize {
        let begun = self.begun.as_ref().map_or(0, |(_, begun)| begun.len());
        self.input.len() - self.at + begun
    }

    /// The next message, where one has come whole.
    ///
    /// # Errors
    /// What comes is no WebSocket; nothing more is read of it.
    pub fn message(&mut self) -> Result<Option<Message>, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let read = self.read();
        if let Err(fault) = read {
            self.fault = Some(fault);
            (self.input, self.at, self.begun) = (Vec::new(), 0, None);
        }
        read
    }

    fn read(&mut self) -> Result<Option<Message>, Fault> {
        loop {
            let rest = self.input.get(self.at..).unwrap_or_default();
            let Some(head) = head(rest, self.is_masked)? else {
                return Ok(None);
            };
            let before = self.begun.as_ref().map_or(0, |(_, begun)| begun.len());
            if !head.opcode.is_control() && head.length > self.most - before.min(self.most) {
                return Err(Fault::TooLong);
            }
            let Some(masked) = rest.get(head.bytes..head.bytes + head.length) else {
                return Ok(None);
            };
            let mut payload = masked.to_vec();
            if let Some(mask) = head.mask {
                apply(mask, &mut payload);
            }
            self.at += head.bytes + head.length;
            if let Some(message) = self.take(head, payload)? {
                return Ok(Some(message));
            }
        }
    }

    /// Takes a frame; gives the message that it ends.
    fn take(&mut self, head: Head, mut payload: Vec<u8>) -> Result<Option<Message>, Fault> {
        let (is_text, mut whole) = match (head.opcode, self.begun.take()) {
            (Opcode::Ping, begun) => {
                self.begun = begun;
                return Ok(Some(Message::Ping(payload)));
            }
            (Opcode::Pong, begun) => {
                self.begun = begun;
                return Ok(Some(Message::Pong));
            }
            (Opcode::Close, _) => return closed(&payload).map(Some),
            (Opcode::Continuation, Some(begun)) => begun,
            (Opcode::Text, None) => (true, Vec::new()),
            (Opcode::Binary, None) => (false, Vec::new()),
            (Opcode::Continuation, None) | (Opcode::Text | Opcode::Binary, Some(_)) => {
                return Err(Fault::Protocol);
            }
        };
        if whole.is_empty() {
            whole = payload;
        } else {
            whole.append(&mut payload);
        }
        if !head.is_last {
            self.begun = Some((is_text, whole));
            return Ok(None);
        }
        Ok(Some(match is_text {
            true => Message::Text(String::from_utf8(whole).map_err(|_| Fault::NoText)?),
            false => Message::Binary(whole),
        }))
    }
}

/// Masks a payload, or takes the mask off it.
fn apply(mask: [u8; 4], payload: &mut [u8]) {
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

/// Reads the head of a frame; `None` while it is not whole.
fn head(bytes: &[u8], of_client: bool) -> Result<Option<Head>, Fault> {
    let [first, second, ..] = *bytes else {
        return Ok(None);
    };
    let opcode = Opcode::of(first & 0x0f).ok_or(Fault::Protocol)?;
    let is_last = first & 0x80 != 0;
    let (is_masked, short) = (second & 0x80 != 0, second & 0x7f);
    // Bits of extensions, which are not spoken; and every frame of a client's is masked, and none of a server's.
    if first & 0x70 != 0 || is_masked != of_client {
        return Err(Fault::Protocol);
    }
    if opcode.is_control() && (!is_last || usize::from(short) > CONTROL_BYTES) {
        return Err(Fault::Protocol);
    }
    let more = match short {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let masked = if is_masked { 4 } else { 0 };
    let Some(bytes) = bytes.get(2..2 + more + masked) else {
        return Ok(None);
    };
    let (digits, mask) = bytes.split_at_checked(more).unwrap_or_default();
    let said = digits
        .iter()
        .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    let least = match more {
        0 => 0,
        2 => 126,
        _ => 1 << 16,
    };
    // The shortest way to say a length is the only one.
    if more > 0 && (said < least || said >> 63 != 0) {
        return Err(Fault::Protocol);
    }
    let length = if more == 0 { u64::from(short) } else { said };
    Ok(Some(Head {
        opcode,
        is_last,
        length: usize::try_from(length).map_err(|_| Fault::TooLong)?,
        mask: mask.try_into().ok(),
        bytes: 2 + more + masked,
    }))
}

/// What the last frame says.
fn closed(payload: &[u8]) -> Result<Message, Fault> {
    match *payload {
        [] => Ok(Message::Close(None)),
        [high, low, ref reason @ ..] => {
            let code = u16::from_be_bytes([high, low]);
            let is_sent = matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999);
            match (is_sent, std::str::from_utf8(reason)) {
                (true, Ok(_)) => Ok(Message::Close(Some(code))),
                (true, Err(_)) => Err(Fault::NoText),
                (false, _) => Err(Fault::Protocol),
            }
        }
        [_] => Err(Fault::Protocol),
    }
}

/// Puts a text into one frame.
pub fn text(text: &[u8], out: &mut Vec<u8>) {
    frame(0x81, text, out);
}

/// Answers a ping with its bytes.
pub fn pong(payload: &[u8], out: &mut Vec<u8>) {
    frame(0x8a, payload.get(..CONTROL_BYTES).unwrap_or(payload), out);
}

/// Ends the connection, by this code.
pub fn close(code: u16, out: &mut Vec<u8>) {
    frame(0x88, &code.to_be_bytes(), out);
}

/// Puts a text into one frame as a client does, under this mask, which is to be another one each time.
pub fn masked_text(text: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
    masked(0x81, text, mask, out);
}

/// Answers a server's ping.
pub fn masked_pong(payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
    let payload = payload.get(..CONTROL_BYTES).unwrap_or(payload);
    masked(0x8a, payload, mask, out);
}

/// Ends the connection to a server, by this code.
pub fn masked_close(code: u16, mask: [u8; 4], out: &mut Vec<u8>) {
    masked(0x88, &code.to_be_bytes(), mask, out);
}

fn masked(first: u8, payload: &[u8], mask: [u8; 4], out: &mut Vec<u8>) {
    begin(first, 0x80, payload.len(), out);
    out.extend_from_slice(&mask);
    let from = out.len();
    out.extend_from_slice(payload);
    apply(mask, out.get_mut(from..).unwrap_or_default());
}

fn frame(first: u8, payload: &[u8], out: &mut Vec<u8>) {
    begin(first, 0, payload.len(), out);
    out.extend_from_slice(payload);
}

/// Puts down the head of a frame but for its mask, of which `masked` tells.
fn begin(first: u8, masked: u8, length: usize, out: &mut Vec<u8>) {
    out.reserve(length + HEAD_BYTES);
    out.push(first);
    match (u8::try_from(length), u16::try_from(length)) {
        (Ok(short @ ..126), _) => out.push(masked | short),
        (_, Ok(length)) => {
            out.push(masked | 126);
            out.extend_from_slice(&length.to_be_bytes());
        }
        (_, Err(_)) => {
            out.push(masked | 127);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests;
