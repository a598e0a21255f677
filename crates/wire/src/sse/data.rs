//! The data of events, out of chunks that are cut anywhere.
//!
//! Invariant: an event's data is told once, when its blank line has come, however the stream is cut; no more than
//! the present event is kept.
//! Not here: where events end (`boundary`), what the data says.

use std::borrow::Cow;

use super::boundary::Boundary;
use super::event::DataLines;
use super::plain;
use super::scan::BYTE_ORDER_MARK;

/// Reads a stream and tells of each event's data: its `data` lines, joined by a line end.
///
/// ```
/// let mut reader = wire::sse::DataReader::new();
/// let mut seen = Vec::new();
/// reader.push(b"data: {\"a\"", |data| seen.push(data.to_vec()));
/// reader.push(b":1}\n\n: ping\n\ndata: [DO", |data| seen.push(data.to_vec()));
/// assert_eq!(seen, [b"{\"a\":1}"]);
/// assert_eq!(reader.unfinished().as_deref(), Some(&b"[DO"[..]));
/// ```
#[derive(Debug)]
pub struct DataReader {
    boundary: Boundary,
    /// The present event's bytes from earlier chunks.
    held: Vec<u8>,
    /// No event has ended yet: the present one may start with a byte order mark.
    opening: bool,
}

impl Default for DataReader {
    fn default() -> Self {
        Self::new()
    }
}

impl DataReader {
    /// A reader for one stream.
    pub const fn new() -> Self {
        Self {
            boundary: Boundary::new(),
            held: Vec::new(),
            opening: true,
        }
    }

    /// Takes the next chunk and tells of the data of each event that ends in it. Events without data are passed over.
    pub fn push(&mut self, chunk: &[u8], mut tell: impl FnMut(&[u8])) {
        let mut rest = chunk;
        let begins_event = self.held.is_empty() && !self.boundary.is_after_return();
        if begins_event && !self.opening {
            while let Some((data, after)) = plain::data(rest) {
                tell(data);
                rest = after;
            }
        }
        self.events(rest, |event, opening| {
            if let Some(data) = data(event, opening) {
                tell(&data);
            }
        });
    }

    /// Takes the next chunk and tells of each event that ends in it, be it without data.
    pub fn push_whole(&mut self, chunk: &[u8], mut tell: impl FnMut(Whole<'_>)) {
        self.events(chunk, |event, opening| tell(Whole::read(event, opening)));
    }

    #[inline]
    fn events(&mut self, chunk: &[u8], mut tell: impl FnMut(&[u8], bool)) {
        let mut start = usize::from(self.held.is_empty() && self.boundary.take_tail(chunk));
        while let Some(cut) = self.boundary.next(chunk, start) {
            let last_part = chunk.get(start..cut.end).unwrap_or_default();
            let event = if self.held.is_empty() {
                last_part
            } else {
                self.held.extend_from_slice(last_part);
                &self.held
            };
            tell(event, self.opening);
            self.held.clear();
            self.opening = false;
            start = cut.tail_end;
        }
        self.held
            .extend_from_slice(chunk.get(start..).unwrap_or_default());
    }

    /// Bytes of the event that has not ended.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// The data of the event that the stream's end cut off.
    pub fn unfinished(&self) -> Option<Cow<'_, [u8]>> {
        data(&self.held, self.opening)
    }
}

/// An event with the fields by which a stream is taken up again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Whole<'a> {
    /// Its data, where it has any line of that.
    pub data: Option<Cow<'a, [u8]>>,
    /// Its id, where it says one.
    pub id: Option<&'a [u8]>,
    /// Milliseconds after which a reader should connect again.
    pub retry_ms: Option<u32>,
}

impl<'a> Whole<'a> {
    fn read(event: &'a [u8], opening: bool) -> Self {
        let bare = event.strip_prefix(BYTE_ORDER_MARK).filter(|_| opening);
        let mut whole = Self {
            data: data(event, opening),
            ..Self::default()
        };
        for line in bare.unwrap_or(event).split(|b| matches!(b, b'\n' | b'\r')) {
            let (name, value) = match line.iter().position(|b| *b == b':') {
                Some(colon) => line.split_at(colon),
                None => continue,
            };
            let value = value.get(1..).unwrap_or_default();
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match name {
                b"id" if !value.contains(&0) => whole.id = Some(value),
                b"retry" if value.iter().all(u8::is_ascii_digit) => {
                    let digits = std::str::from_utf8(value).ok();
                    whole.retry_ms = digits.and_then(|digits| digits.parse().ok());
                }
                _ => {}
            }
        }
        whole
    }
}

/// The data of an event; copied only where it has several lines.
fn data(event: &[u8], opening: bool) -> Option<Cow<'_, [u8]>> {
    let bare = event.strip_prefix(BYTE_ORDER_MARK).filter(|_| opening);
    let mut lines = DataLines(bare.unwrap_or(event));
    let mut data = Cow::Borrowed(lines.next()?);
    for line in lines {
        let joined = data.to_mut();
        joined.push(b'\n');
        joined.extend_from_slice(line);
    }
    Some(data)
}
