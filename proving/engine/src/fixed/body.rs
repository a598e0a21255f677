//! Passing over a request body where it lies, looking for the two members that change the answer.
//!
//! Invariant: however the body is cut into segments, the same members are found; nothing but the last few bytes
//! is remembered. Not here: reading from the socket.

use memchr::memmem::Finder;

use super::head::Malformed;

/// Longest member that is found: the name, white space, and `true`.
const WINDOW: usize = 64;

/// What is left of a body.
#[derive(Debug)]
pub(super) enum Body {
    Sized(u64),
    Chunked { at: At, left: u64 },
    Done,
}

/// Where in chunked framing we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    Size,
    Extension,
    Data,
    DataEnd,
    /// In the trailers; whether the present line has any byte.
    Trailer(bool),
}

impl Body {
    pub(super) fn chunked() -> Self {
        Self::Chunked {
            at: At::Size,
            left: 0,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self, Self::Done | Self::Sized(0))
    }

    /// Passes over what of `bytes` belongs to the body. Returns how many bytes that is.
    pub(super) fn feed(&mut self, bytes: &[u8], scan: &mut Scan<'_>) -> Result<usize, Malformed> {
        match self {
            Self::Done => Ok(0),
            Self::Sized(left) => {
                let take = bytes
                    .len()
                    .min(usize::try_from(*left).unwrap_or(usize::MAX));
                scan.feed(&bytes[..take]);
                *left -= take as u64;
                Ok(take)
            }
            Self::Chunked { .. } => self.feed_chunked(bytes, scan),
        }
    }

    fn feed_chunked(&mut self, bytes: &[u8], scan: &mut Scan<'_>) -> Result<usize, Malformed> {
        let Self::Chunked { at, left } = self else {
            return Ok(0);
        };
        let mut used = 0;
        while let Some(&byte) = bytes.get(used) {
            if *at == At::Data {
                let take = (bytes.len() - used).min(usize::try_from(*left).unwrap_or(usize::MAX));
                scan.feed(&bytes[used..used + take]);
                *left -= take as u64;
                used += take;
                if *left == 0 {
                    *at = At::DataEnd;
                }
                continue;
            }
            used += 1;
            *at = match (*at, byte) {
                (At::Size | At::Extension, b'\n') if *left > 0 => At::Data,
                (At::Size | At::Extension, b'\n') => At::Trailer(false),
                (At::Size, b'\r' | b';') | (At::Extension, _) => At::Extension,
                (At::Size, digit) => {
                    let digit = char::from(digit).to_digit(16).ok_or(Malformed)?;
                    *left = left
                        .checked_mul(16)
                        .and_then(|l| l.checked_add(u64::from(digit)))
                        .ok_or(Malformed)?;
                    At::Size
                }
                (At::DataEnd, b'\r') => At::DataEnd,
                (At::DataEnd, b'\n') => At::Size,
                (At::Trailer(false), b'\n') => {
                    *self = Self::Done;
                    return Ok(used);
                }
                (At::Trailer(true), b'\n') => At::Trailer(false),
                (At::Trailer(any), b'\r') => At::Trailer(any),
                (At::Trailer(_), _) => At::Trailer(true),
                (At::DataEnd | At::Data, _) => return Err(Malformed),
            };
        }
        Ok(used)
    }
}

/// The two searched names, prepared once.
pub(super) struct Needles {
    stream: Finder<'static>,
    include_usage: Finder<'static>,
}

impl Needles {
    pub(super) fn new() -> Self {
        Self {
            stream: Finder::new("\"stream\""),
            include_usage: Finder::new("\"include_usage\""),
        }
    }
}

/// A search that goes on from segment to segment.
pub(super) struct Scan<'n> {
    needles: &'n Needles,
    tail: [u8; WINDOW],
    tail_len: usize,
    pub(super) bytes: u64,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
}

impl<'n> Scan<'n> {
    pub(super) fn new(needles: &'n Needles) -> Self {
        Self {
            needles,
            tail: [0; WINDOW],
            tail_len: 0,
            bytes: 0,
            stream: false,
            include_usage: false,
        }
    }

    fn feed(&mut self, segment: &[u8]) {
        self.bytes += segment.len() as u64;
        if self.stream && self.include_usage {
            return;
        }
        if self.tail_len > 0 {
            let mut seam = [0; 2 * WINDOW];
            let more = segment.len().min(WINDOW);
            seam[..self.tail_len].copy_from_slice(&self.tail[..self.tail_len]);
            seam[self.tail_len..self.tail_len + more].copy_from_slice(&segment[..more]);
            self.search(&seam[..self.tail_len + more]);
        }
        self.search(segment);
        self.remember(segment);
    }

    fn search(&mut self, bytes: &[u8]) {
        self.stream = self.stream || is_true(bytes, &self.needles.stream);
        self.include_usage = self.include_usage || is_true(bytes, &self.needles.include_usage);
    }

    fn remember(&mut self, segment: &[u8]) {
        let fresh = segment.len().min(WINDOW);
        let kept = self.tail_len.min(WINDOW - fresh);
        self.tail
            .copy_within(self.tail_len - kept..self.tail_len, 0);
        self.tail[kept..kept + fresh].copy_from_slice(&segment[segment.len() - fresh..]);
        self.tail_len = kept + fresh;
    }
}

/// Whether `name` is followed by a colon and `true`. Escaped quotes within a text do not match.
fn is_true(bytes: &[u8], name: &Finder<'_>) -> bool {
    name.find_iter(bytes).any(|at| {
        let rest = bytes[at + name.needle().len()..].trim_ascii_start();
        rest.strip_prefix(b":")
            .is_some_and(|value| value.trim_ascii_start().starts_with(b"true"))
    })
}

#[cfg(test)]
mod tests;
