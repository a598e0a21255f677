//! An event that is too long to be kept: its document is read as it passes.
//!
//! A picture in an event is some megabytes, and the usage behind it is the bill's. So is a response that repeats its instructions.
//! Invariant: keeps no more of an event than usage objects may have bytes. What text it brings is the share of its beginning: text of
//! all of it could be told by keeping it alone.
//! Not here: shorter events (`event`), how long that is (`sse`).

use super::event::{ASKED, Event, data_of};
use super::text::text_of_beginning;
use crate::json;
use crate::usage::Report;

/// What has passed of such an event.
#[derive(Debug)]
pub(super) struct LongEvent {
    /// Its data is to be an object.
    has_object: bool,
    state: State,
    document: json::Scanner,
    data_bytes: u64,
    /// Bytes of text in the beginning's bytes of data.
    text: (u64, u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Data,
    /// Behind the line of its data.
    Over,
    /// It has no data where it begins, or what is no document.
    Unreadable,
}

impl LongEvent {
    /// Takes the beginning: all of it that was kept.
    pub(super) fn new(mut beginning: &[u8]) -> Self {
        let mut long = Self {
            has_object: false,
            state: State::Unreadable,
            document: json::Scanner::new(&ASKED),
            data_bytes: 0,
            text: (0, 0),
        };
        // Other fields may stand before.
        loop {
            if let Some(data) = data_of(beginning) {
                long.state = State::Data;
                long.has_object = data.trim_ascii_start().starts_with(b"{");
                long.take(data);
                long.text = (text_of_beginning(data), data.len() as u64);
                return long;
            }
            let Some(end) = beginning
                .iter()
                .position(|byte| matches!(byte, b'\n' | b'\r'))
            else {
                return long;
            };
            beginning = beginning.get(end + 1..).unwrap_or_default();
        }
    }

    /// Takes what comes next.
    pub(super) fn take(&mut self, part: &[u8]) {
        match self.state {
            State::Unreadable => self.data_bytes += part.len() as u64,
            // Where that line was no document, reading it fails.
            State::Over => {}
            State::Data => {
                let end = memchr::memchr2(b'\n', b'\r', part);
                let (data, rest) = part
                    .split_at_checked(end.unwrap_or(part.len()))
                    .unwrap_or((part, b""));
                self.data_bytes += data.len() as u64;
                if self.document.push(data).is_err() {
                    self.state = State::Unreadable;
                } else if end.is_some() {
                    self.state = State::Over;
                    self.take(rest);
                }
            }
        }
    }

    /// The event, whole; and whether it could be read.
    pub(super) fn event(&mut self) -> (Event, bool) {
        let (text, of) = self.text;
        let share = u128::from(text) * u128::from(self.data_bytes) / u128::from(of.max(1));
        let mut event = Event {
            data_bytes: self.data_bytes,
            text_bytes: Some(u64::try_from(share).unwrap_or(u64::MAX)),
            has_data: true,
            ..Event::default()
        };
        let is_read = self.state != State::Unreadable
            && self.document.finish().is_ok_and(|found| {
                event.take(found);
                true
            });
        if !is_read && self.has_object {
            event.usage = Some(Box::new(Report::UNREAD));
        }
        (event, is_read)
    }
}
