//! The scanner of a stream: forwards chunks, keeps at most one unfinished event, keeps stats of what it saw.
//!
//! Not here: where events end (`boundary`), what one holds (`event`).

use bytes::{Buf, Bytes, BytesMut};

use super::boundary::Boundary;
use super::event::Event;
use super::last::LastEvent;
use super::long::LongEvent;
use super::plain::Plain;
use super::{HOLD_LIMIT_BYTES, INSPECT_LIMIT_BYTES};
use crate::usage::{Reading, Report};

/// A token of text has about so many.
const BYTES_PER_TOKEN: u64 = 4;
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What the scanner may do to the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Look only: every chunk is forwarded at once, as it is.
    Observe,
    /// Leave out an event that only reports usage: the client did not ask for it.
    Withhold,
}

/// What has been seen of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamStats {
    /// The usage reported so far.
    pub usage: Reading,
    /// Its completion was told where the stream began, and not since.
    pub is_begun_only: bool,
    /// Events with data forwarded, without the end mark.
    pub data_events: u64,
    /// Tokens of text in them: one for each, or one for four bytes of its text where that is more.
    pub text_tokens: u64,
    /// Bytes of data in them.
    pub data_bytes: u64,
    /// Events left out because they only report usage.
    pub withheld_events: u64,
    /// Events too long to be inspected. Usage may have been missed.
    pub uninspected_events: u64,
    /// Whether the end mark `[DONE]` was seen.
    pub done: bool,
    /// Whether an event with data followed the end mark.
    pub data_after_done: bool,
    /// Whether an event reported an error.
    pub error: bool,
    /// Whether the stream ended inside an event.
    pub unfinished: bool,
}

/// Reads a stream of server-sent events while it is forwarded.
///
/// ```
/// use bytes::Bytes;
/// use wire::{sse::{Mode, Scanner}, usage::Reading};
/// let mut scanner = Scanner::new(Mode::Withhold);
/// let mut out = Vec::new();
/// scanner.push(Bytes::from_static(b"data: {\"choices\":[{}]}\n\ndata: {\"choices\":[],\"usa"), &mut out);
/// scanner.push(Bytes::from_static(b"ge\":{\"prompt_tokens\":3}}\n\ndata: [DONE]\n\n"), &mut out);
/// scanner.finish(&mut out);
/// assert_eq!(out.concat(), b"data: {\"choices\":[{}]}\n\ndata: [DONE]\n\n");
/// assert!(matches!(scanner.stats().usage, Reading::Valid(usage) if usage.prompt == Some(3)));
/// ```
#[derive(Debug)]
pub struct Scanner {
    mode: Mode,
    boundary: Boundary,
    stats: StreamStats,
    /// All that its events reported, as they said it. To take an event twice is to take it once.
    reported: Option<Box<Report>>,
    /// The present event's bytes from earlier chunks, while it may be inspected.
    held: BytesMut,
    /// The present event, once it is too long to be kept.
    long: Option<Box<LongEvent>>,
    /// How many bytes of the present event came in earlier chunks.
    event_len: usize,
    /// The present event's bytes from earlier chunks have been forwarded.
    sent: bool,
    /// The last event was left out.
    last_withheld: bool,
    /// No event has ended yet: the present one may start with a byte order mark.
    opening: bool,
    /// The last event with data, as far as it is kept.
    last: LastEvent,
    /// An event with no more bytes of data has about one token: the frame of the latest that was measured, and a token's text.
    plain_bytes: u64,
    /// Events that were measured before one had text.
    measured: u32,
}

/// Bytes of text that one token may have.
const TOKEN_BYTES_MAX: u64 = 32;
/// Where so many events had no text the frame stays unknown, and those alone are measured that have more bytes than nearly all of one
/// token.
const MEASURED_MAX: u32 = 8;
const PLAIN_BYTES: u64 = 512;
/// No frame is longer: an event that has more beside its text, as a picture, tells nothing of those that follow.
const FRAME_BYTES_MAX: u64 = 8 << 10;

impl Scanner {
    /// A scanner for one stream.
    pub fn new(mode: Mode) -> Self {
        Self {
            mode,
            boundary: Boundary::new(),
            stats: StreamStats::default(),
            reported: None,
            held: BytesMut::new(),
            long: None,
            event_len: 0,
            sent: mode == Mode::Observe,
            last_withheld: false,
            opening: true,
            last: LastEvent::default(),
            plain_bytes: 0,
            measured: 0,
        }
    }

    /// Whether the stream told where its answer ends; what cannot be known counts as told.
    pub fn told_end(&self) -> bool {
        self.stats.done || self.stats.error || self.last.tells_end()
    }

    /// What has been seen so far.
    pub fn stats(&self) -> &StreamStats {
        &self.stats
    }

    /// Takes the next chunk and appends to `out` what shall be forwarded now.
    pub fn push(&mut self, mut chunk: Bytes, out: &mut Vec<Bytes>) {
        if self.mode == Mode::Observe {
            self.observe(&chunk);
            push_some(out, chunk);
            return;
        }
        if self.event_len == 0 && self.boundary.take_tail(&chunk) {
            let tail = chunk.split_to(1);
            if !self.last_withheld {
                out.push(tail);
            }
        }
        // `from`: the first byte of the chunk not yet dealt with. `start`: where the present event starts.
        let (mut from, mut start) = (0, 0);
        while let Some(cut) = self.boundary.next(&chunk, start) {
            let withheld = self.end_event(
                chunk.get(start..cut.end).unwrap_or_default(),
                cut.only_line_end.and_then(|end| chunk.get(start..end)),
            );
            if withheld {
                push_some(out, chunk.slice(from..start));
                from = cut.tail_end;
            } else if !self.sent {
                push_some(out, self.held.split().freeze());
            }
            self.start_event(withheld);
            start = cut.tail_end;
        }
        let open = chunk.len() - start;
        if self.sent || self.event_len + open > HOLD_LIMIT_BYTES {
            if !self.sent {
                push_some(out, Bytes::copy_from_slice(&self.held));
                self.sent = true;
            }
            push_some(out, chunk.slice(from..));
        } else {
            push_some(out, chunk.slice(from..start));
        }
        chunk.advance(start);
        self.hold(&chunk);
    }

    /// Takes the next chunk if it holds whole events and all of them pass: it is then forwarded as it is.
    /// Otherwise nothing is taken and `push` does the rest. Most chunks pass, and none is copied here.
    pub fn pass(&mut self, chunk: &[u8]) -> bool {
        if self.event_len > 0 || self.boundary.is_after_return() {
            return false;
        }
        if self.pass_plain(chunk) {
            return true;
        }
        let before = (self.boundary, self.stats, self.last_withheld, self.opening);
        let learned = (self.plain_bytes, self.measured);
        let mut start = 0;
        let mut withheld = false;
        while let (false, Some(cut)) = (withheld, self.boundary.next(chunk, start)) {
            withheld = self.end_event(
                chunk.get(start..cut.end).unwrap_or_default(),
                cut.only_line_end.and_then(|end| chunk.get(start..end)),
            );
            self.start_event(withheld);
            start = cut.tail_end;
        }
        let passes = !withheld && start == chunk.len();
        if !passes {
            (self.boundary, self.stats, self.last_withheld, self.opening) = before;
            (self.plain_bytes, self.measured) = learned;
        }
        passes
    }

    /// Takes the next chunk, which begins with an event, if it holds plain events alone.
    #[inline]
    fn pass_plain(&mut self, chunk: &[u8]) -> bool {
        // Before the first event nothing is known of a mark and of the frame.
        if self.opening || self.plain_bytes == 0 {
            return false;
        }
        let Some(plain) = Plain::read(chunk, self.plain_bytes) else {
            return false;
        };
        if plain.events > 0 {
            let stats = &mut self.stats;
            stats.data_after_done |= stats.done;
            stats.data_events += plain.events;
            stats.text_tokens += plain.events;
            stats.data_bytes += plain.data_bytes;
            self.last.keep(plain.last);
            self.last_withheld = false;
        }
        true
    }

    /// Takes the next chunk of a stream that is only observed, however it is forwarded.
    pub fn observe(&mut self, chunk: &[u8]) {
        if self.event_len == 0 && !self.boundary.is_after_return() && self.pass_plain(chunk) {
            return;
        }
        let mut start = usize::from(self.event_len == 0 && self.boundary.take_tail(chunk));
        while let Some(cut) = self.boundary.next(chunk, start) {
            let withheld = self.end_event(
                chunk.get(start..cut.end).unwrap_or_default(),
                cut.only_line_end.and_then(|end| chunk.get(start..end)),
            );
            self.start_event(withheld);
            start = cut.tail_end;
        }
        self.hold(chunk.get(start..).unwrap_or_default());
    }

    /// Ends the stream and appends to `out` what was held back.
    pub fn finish(&mut self, out: &mut Vec<Bytes>) {
        if self.event_len == 0 {
            return;
        }
        self.stats.unfinished = true;
        let withheld = self.end_event(b"", None);
        if !withheld && !self.sent {
            push_some(out, self.held.split().freeze());
        }
        self.start_event(withheld);
    }

    /// Reads the event that ends with these bytes, of which that is the only line, where it is known.
    /// Gives whether it is left out.
    fn end_event(&mut self, last_part: &[u8], only_line: Option<&[u8]>) -> bool {
        let length = self.event_len + last_part.len();
        if length > INSPECT_LIMIT_BYTES {
            self.end_long_event(last_part);
            return false;
        }
        let mut event = if self.event_len == 0 {
            let only_line = only_line.filter(|_| !self.opening);
            let event = Event::read(self.without_mark(last_part), only_line, self.plain_bytes);
            self.last.take(&event, last_part);
            event
        } else {
            let before = self.held.len();
            self.held.extend_from_slice(last_part);
            let event = Event::read(self.without_mark(&self.held), None, self.plain_bytes);
            self.last.take(&event, &self.held);
            // The last part is forwarded as part of its chunk.
            self.held.truncate(before);
            event
        };
        let withheld =
            self.mode == Mode::Withhold && event.only_usage && length <= HOLD_LIMIT_BYTES;
        self.count(&mut event, withheld);
        withheld
    }

    /// Reads what there is to be read of an event that was not kept.
    #[cold]
    fn end_long_event(&mut self, last_part: &[u8]) {
        self.pass_long(last_part);
        let Some(mut long) = self.long.take() else {
            return;
        };
        let (mut event, is_read) = long.event();
        self.stats.uninspected_events += u64::from(!is_read);
        self.last.forget();
        self.count(&mut event, false);
    }

    /// Takes a part of an event that is too long to be kept.
    #[cold]
    fn pass_long(&mut self, part: &[u8]) {
        if let Some(long) = &mut self.long {
            return long.take(part);
        }
        // As much of its beginning, however it is cut.
        let room = INSPECT_LIMIT_BYTES.saturating_sub(self.held.len());
        let (first, rest) = part.split_at_checked(room).unwrap_or((part, b""));
        let mut held = std::mem::take(&mut self.held);
        held.extend_from_slice(first);
        let mut long = Box::new(LongEvent::new(self.without_mark(&held)));
        long.take(rest);
        self.long = Some(long);
    }

    fn without_mark<'a>(&self, event: &'a [u8]) -> &'a [u8] {
        event
            .strip_prefix(BYTE_ORDER_MARK)
            .filter(|_| self.opening)
            .unwrap_or(event)
    }

    #[inline]
    fn count(&mut self, event: &mut Event, withheld: bool) {
        let stats = &mut self.stats;
        stats.data_after_done |= stats.done && event.has_data;
        if let Some(usage) = event.usage.take() {
            self.take_report(usage, event.is_beginning);
        }
        let stats = &mut self.stats;
        stats.done |= event.is_done;
        stats.error |= event.is_error;
        if withheld {
            stats.withheld_events += 1;
        } else {
            stats.data_events += u64::from(event.has_data);
            stats.data_bytes += event.data_bytes;
            match event.text_bytes {
                None => stats.text_tokens += u64::from(event.has_data),
                Some(text) => self.measured(event.data_bytes, text),
            }
        }
    }

    /// An event of so many bytes has this much text.
    #[cold]
    fn measured(&mut self, data_bytes: u64, text_bytes: u64) {
        self.stats.text_tokens += (text_bytes / BYTES_PER_TOKEN).max(1);
        let frame = data_bytes.saturating_sub(text_bytes);
        if text_bytes > 0 && frame <= FRAME_BYTES_MAX {
            self.plain_bytes = frame + TOKEN_BYTES_MAX;
        } else if self.plain_bytes == 0 {
            self.measured += 1;
            if self.measured >= MEASURED_MAX {
                self.plain_bytes = PLAIN_BYTES;
            }
        }
    }

    /// Most events have none.
    #[cold]
    fn take_report(&mut self, usage: Box<Report>, is_beginning: bool) {
        if self.stats.done {
            return;
        }
        if usage.tells_completion() {
            self.stats.is_begun_only = is_beginning;
        }
        let reported = match self.reported.take() {
            Some(mut earlier) => {
                earlier.take_later(&usage);
                earlier
            }
            None => usage,
        };
        reported.judge(&mut self.stats.usage);
        self.reported = Some(reported);
    }

    fn start_event(&mut self, last_withheld: bool) {
        if self.held.capacity() > HOLD_LIMIT_BYTES {
            self.held = BytesMut::new();
        }
        self.held.clear();
        self.long = None;
        self.event_len = 0;
        self.sent = self.mode == Mode::Observe;
        self.last_withheld = last_withheld;
        self.opening = false;
    }

    /// Keeps the start of an unfinished event, as long as it may still be inspected.
    fn hold(&mut self, part: &[u8]) {
        self.event_len += part.len();
        if self.event_len <= INSPECT_LIMIT_BYTES {
            self.held.extend_from_slice(part);
        } else {
            self.pass_long(part);
        }
    }
}

fn push_some(out: &mut Vec<Bytes>, bytes: Bytes) {
    if !bytes.is_empty() {
        out.push(bytes);
    }
}
