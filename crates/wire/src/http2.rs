//! Where HTTP/2 frames begin, read as their bytes pass (RFC 9113, 4.1).
//!
//! Invariant: the heads are the same for every way to cut the bytes; a payload is passed over and never looked at.
//! Not here: the protocol, which is hyper's and h2's; what frames are held against a client (`policy::glitch`).

/// Bytes of a frame's head.
const HEAD_BYTES: usize = 9;
/// What a client sends before its first frame.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The kinds of frames that carry requests and answers.
pub const DATA: u8 = 0;
/// The head of a request or an answer begins.
pub const HEADERS: u8 = 1;
/// The flag of those two that ends their side of the stream.
pub const END_STREAM: u8 = 1;

/// The head of one frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// Bytes of its payload.
    pub length: u32,
    /// What it is.
    pub kind: u8,
    /// Its flags.
    pub flags: u8,
}

/// The frames of one direction of a connection.
///
/// ```
/// let mut frames = wire::http2::Frames::of_server();
/// let mut rest = &[0, 0, 1, 0, 1, 0, 0, 0, 5, b'x', 0, 0][..];
/// let data = frames.next(&mut rest).ok_or("a frame")?;
/// assert_eq!((data.length, data.kind, data.flags), (1, wire::http2::DATA, 1));
/// assert_eq!(frames.next(&mut rest), None);
/// assert!(rest.is_empty() && !frames.is_between());
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug, Clone)]
pub struct Frames {
    /// Bytes to pass over before the next head.
    skip: usize,
    head: [u8; HEAD_BYTES],
    /// How much of that is there.
    filled: usize,
}

impl Frames {
    /// What a client sends: its preface first.
    #[must_use]
    pub const fn of_client() -> Self {
        Self {
            skip: PREFACE.len(),
            head: [0; HEAD_BYTES],
            filled: 0,
        }
    }

    /// What a server sends.
    #[must_use]
    pub const fn of_server() -> Self {
        Self {
            skip: 0,
            head: [0; HEAD_BYTES],
            filled: 0,
        }
    }

    /// The next head that ends in `bytes`, which are used up to its end; all of them where there is none.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Option<FrameHead> {
        let (passed, rest) = bytes.split_at(self.skip.min(bytes.len()));
        self.skip -= passed.len();
        let (part, rest) = rest.split_at((HEAD_BYTES - self.filled).min(rest.len()));
        *bytes = rest;
        let end = self.filled + part.len();
        if let Some(place) = self.head.get_mut(self.filled..end) {
            place.copy_from_slice(part);
        }
        self.filled = end;
        if end < HEAD_BYTES {
            return None;
        }
        self.filled = 0;
        let [a, b, c, kind, flags, ..] = self.head;
        let length = u32::from_be_bytes([0, a, b, c]);
        self.skip = usize::try_from(length).unwrap_or(usize::MAX);
        Some(FrameHead {
            length,
            kind,
            flags,
        })
    }

    /// Whether the bytes so far end with a whole frame.
    #[must_use]
    pub const fn is_between(&self) -> bool {
        self.skip == 0 && self.filled == 0
    }
}

#[cfg(test)]
mod tests;
