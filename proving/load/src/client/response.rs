//! The framing of one HTTP/1.1 response: status, body bytes, end.
//!
//! Invariant: bytes may be cut anywhere; the outcome is the same as for the whole.
//! Body bytes are handed on as they come and never kept; only a head or a chunk size that was cut
//! is carried over, and both have a limit.
//! Not here: requests, sockets, what a body means (`observer`).

use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::sync::LazyLock;

use memchr::memmem::Finder;

#[cfg(test)]
mod tests;

static HEAD_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\r\n\r\n"));
const HEAD_LIMIT: usize = 64 * 1024;
const HEADERS_LIMIT: usize = 64;

/// The bytes are no HTTP/1.1 response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// The head did not parse, or has no usable framing.
    #[error("the response head does not parse")]
    Head,
    /// The head is longer than 64 KiB.
    #[error("the response head is longer than 64 KiB")]
    HeadTooLong,
    /// A chunk has no hexadecimal size or no line end after it.
    #[error("the chunked framing does not parse")]
    Chunk,
}

/// How far the response is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    More,
    /// The response ended; so many bytes of the last input were used.
    Done {
        /// Bytes of the last input that belong to this response.
        used: usize,
    },
}

/// Frames one response; use a new one, or [`Parser::reset`], for the next.
#[derive(Debug)]
pub struct Parser {
    state: State,
    carry: Vec<u8>,
    said: Said,
    keep_alive: bool,
    /// Where whoever asks wants to read them.
    lines: Option<Lines>,
}

/// The words of a head, and the trailers behind its body.
#[derive(Debug, Default)]
pub struct Lines {
    /// The reason phrase; empty where there is none.
    pub reason: Vec<u8>,
    /// Names in small letters and values, trailers last, in the order of arrival.
    pub headers: Vec<(String, Vec<u8>)>,
}

/// What the head of an answer says of its body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Said {
    /// The status; 0 until the head is complete.
    pub status: u16,
    /// The body is a stream of events, by its content type.
    pub is_event_stream: bool,
    /// Seconds after which one may ask again, where it says so as a number.
    pub retry_after_s: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Head,
    Length(u64),
    ChunkSize,
    ChunkData(u64),
    /// The line end after the data; bytes of it still missing.
    ChunkEnd(u8),
    Trailer,
    UntilClose,
    Done,
}

impl Default for Parser {
    fn default() -> Self {
        Self::new()
    }
}

impl Parser {
    /// Ready for the first byte of a response.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: State::Head,
            carry: Vec::new(),
            said: Said {
                status: 0,
                is_event_stream: false,
                retry_after_s: None,
            },
            keep_alive: true,
            lines: None,
        }
    }

    /// As [`Parser::new`], and keeps the head's lines.
    #[must_use]
    pub fn with_lines() -> Self {
        Self {
            lines: Some(Lines::default()),
            ..Self::new()
        }
    }

    /// What was kept of the head's lines.
    #[must_use]
    pub fn into_lines(self) -> Lines {
        self.lines.unwrap_or_default()
    }

    /// Ready for the next response on the same connection.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.carry.clear();
        self.said = Said::default();
        self.keep_alive = true;
    }

    /// The status code; 0 until the head is complete.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.said.status
    }

    /// What the head said, once it is complete.
    #[must_use]
    pub const fn said(&self) -> Said {
        self.said
    }

    /// Whether the connection may carry another exchange.
    #[must_use]
    pub const fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// Takes bytes; hands body bytes to `body`.
    ///
    /// # Errors
    /// The bytes are no HTTP/1.1 response; the connection is then of no further use.
    pub fn feed(
        &mut self,
        input: &[u8],
        body: &mut impl FnMut(&[u8]),
    ) -> Result<Progress, Malformed> {
        self.read(input, &mut |_, bytes: &[u8]| body(bytes))
    }

    /// As [`Parser::feed`], with what the head said.
    pub(super) fn read(
        &mut self,
        input: &[u8],
        body: &mut impl FnMut(Said, &[u8]),
    ) -> Result<Progress, Malformed> {
        let mut rest = input;
        loop {
            match self.state {
                State::Done => {
                    return Ok(Progress::Done {
                        used: input.len() - rest.len(),
                    });
                }
                _ if rest.is_empty() => return Ok(Progress::More),
                State::Head => rest = self.head(rest)?,
                State::Length(left) => {
                    let (now, later) = split(rest, left);
                    body(self.said, now);
                    rest = later;
                    let left = left - now.len() as u64;
                    self.state = if left == 0 {
                        State::Done
                    } else {
                        State::Length(left)
                    };
                }
                State::UntilClose => {
                    body(self.said, rest);
                    rest = &[];
                }
                State::ChunkData(left) => {
                    let (now, later) = split(rest, left);
                    body(self.said, now);
                    rest = later;
                    let left = left - now.len() as u64;
                    self.state = if left == 0 {
                        State::ChunkEnd(2)
                    } else {
                        State::ChunkData(left)
                    };
                }
                State::ChunkEnd(missing) => {
                    let expected = if missing == 2 { b'\r' } else { b'\n' };
                    if rest[0] != expected {
                        return Err(Malformed::Chunk);
                    }
                    rest = &rest[1..];
                    self.state = if missing == 2 {
                        State::ChunkEnd(1)
                    } else {
                        State::ChunkSize
                    };
                }
                State::ChunkSize => {
                    let Some((line, later)) = self.line(rest)? else {
                        return Ok(Progress::More);
                    };
                    rest = later;
                    let size = chunk_size(&line)?;
                    self.state = if size == 0 {
                        State::Trailer
                    } else {
                        State::ChunkData(size)
                    };
                }
                State::Trailer => {
                    let Some((line, later)) = self.line(rest)? else {
                        return Ok(Progress::More);
                    };
                    rest = later;
                    if line.is_empty() {
                        self.state = State::Done;
                    } else if let Some(lines) = &mut self.lines
                        && let Some(at) = memchr::memchr(b':', &line)
                    {
                        lines.add(&line[..at], line[at + 1..].trim_ascii());
                    }
                }
            }
        }
    }

    /// The peer closed: whether that is the proper end of the body.
    #[must_use]
    pub const fn ends_at_close(&self) -> bool {
        matches!(self.state, State::UntilClose | State::Done)
    }

    /// Whether any byte of this response was seen.
    #[must_use]
    pub const fn begun(&self) -> bool {
        !(matches!(self.state, State::Head) && self.carry.is_empty())
    }

    fn head<'a>(&mut self, input: &'a [u8]) -> Result<&'a [u8], Malformed> {
        if self.carry.is_empty()
            && let Some(end) = HEAD_END.find(input)
        {
            self.read_head(&input[..end + 4])?;
            return Ok(&input[end + 4..]);
        }
        let known = self.carry.len();
        self.carry.extend_from_slice(input);
        let from = known.saturating_sub(3);
        let Some(at) = HEAD_END.find(&self.carry[from..]) else {
            return if self.carry.len() > HEAD_LIMIT {
                Err(Malformed::HeadTooLong)
            } else {
                Ok(&[])
            };
        };
        let end = from + at + 4;
        let mut carry = std::mem::take(&mut self.carry);
        self.read_head(&carry[..end])?;
        carry.clear();
        self.carry = carry;
        Ok(&input[end - known..])
    }

    fn read_head(&mut self, head: &[u8]) -> Result<(), Malformed> {
        // Clearing room for so many headers would cost more than reading those that there are.
        let mut headers = [const { MaybeUninit::uninit() }; HEADERS_LIMIT];
        let mut response = httparse::Response::new(&mut []);
        let config = httparse::ParserConfig::default();
        match config.parse_response_with_uninit_headers(&mut response, head, &mut headers) {
            Ok(httparse::Status::Complete(_)) => {}
            _ => return Err(Malformed::Head),
        }
        self.said.status = response.code.ok_or(Malformed::Head)?;
        self.keep_alive = response.version == Some(1);
        if (100..200).contains(&self.said.status) {
            self.state = State::Head;
            return Ok(());
        }
        if let Some(lines) = &mut self.lines {
            lines.reason = response.reason.unwrap_or_default().into();
            for header in response.headers.iter() {
                lines.add(header.name.as_bytes(), header.value);
            }
        }
        let (mut length, mut chunked) = (None, false);
        for header in response.headers.iter() {
            // Most headers are of no interest: their length tells.
            let is = |name: &str| header.name.eq_ignore_ascii_case(name);
            match header.name.len() {
                10 if is("connection") => {
                    self.keep_alive &= !header.value.eq_ignore_ascii_case(b"close");
                }
                11 if is("retry-after") => {
                    self.said.retry_after_s = retry_after(header.value);
                }
                12 if is("content-type") => {
                    self.said.is_event_stream = is_event_stream(header.value);
                }
                14 if is("content-length") => {
                    length = Some(decimal(header.value).ok_or(Malformed::Head)?);
                }
                17 if is("transfer-encoding") => {
                    chunked = header.value.eq_ignore_ascii_case(b"chunked");
                }
                _ => {}
            }
        }
        self.state = match (chunked, length) {
            _ if matches!(self.said.status, 204 | 304) => State::Done,
            (true, _) => State::ChunkSize,
            (false, Some(0)) => State::Done,
            (false, Some(length)) => State::Length(length),
            (false, None) => {
                self.keep_alive = false;
                State::UntilClose
            }
        };
        Ok(())
    }

    /// One line without its end, joined with what was carried; `None` when it is not complete yet.
    fn line<'a>(&mut self, input: &'a [u8]) -> Result<Option<(Line<'a>, &'a [u8])>, Malformed> {
        let Some(end) = memchr::memchr(b'\n', input) else {
            self.carry.extend_from_slice(input);
            return if self.carry.len() > HEAD_LIMIT {
                Err(Malformed::Chunk)
            } else {
                Ok(None)
            };
        };
        let rest = &input[end + 1..];
        if self.carry.is_empty() {
            return Ok(Some((Cow::Borrowed(without_cr(&input[..end])), rest)));
        }
        let mut line = std::mem::take(&mut self.carry);
        line.extend_from_slice(&input[..end]);
        line.truncate(without_cr(&line).len());
        Ok(Some((Cow::Owned(line), rest)))
    }
}

impl Lines {
    fn add(&mut self, name: &[u8], value: &[u8]) {
        let name = String::from_utf8_lossy(name).to_ascii_lowercase();
        self.headers.push((name, value.into()));
    }
}

/// Whether a content type is that of server-sent events.
pub(super) fn is_event_stream(content_type: &[u8]) -> bool {
    let name = b"text/event-stream";
    let start = content_type.get(..name.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(name))
}

/// Seconds; a date is none.
pub(super) fn retry_after(value: &[u8]) -> Option<u32> {
    std::str::from_utf8(value).ok()?.trim().parse().ok()
}

type Line<'a> = Cow<'a, [u8]>;

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn split(bytes: &[u8], at_most: u64) -> (&[u8], &[u8]) {
    bytes.split_at(usize::try_from(at_most).map_or(bytes.len(), |most| most.min(bytes.len())))
}

fn decimal(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok()
}

fn chunk_size(line: &[u8]) -> Result<u64, Malformed> {
    let digits = line.split(|&b| b == b';').next().unwrap_or(line);
    let text = std::str::from_utf8(digits).map_err(|_| Malformed::Chunk)?;
    u64::from_str_radix(text.trim(), 16).map_err(|_| Malformed::Chunk)
}
