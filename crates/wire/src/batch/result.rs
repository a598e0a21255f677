//! What the result of a batch tells, line by line as it comes.
//!
//! Invariant: the answer is the same for every way to cut the bytes; one line is kept at a time, up to a bound.
//! Not here: what it costs (`policy`).

use std::borrow::Cow;

use memchr::memchr;

use super::elided::Elided;
use super::{Api, plain_text};
use crate::json::{Elements, Kind, Reader};
use crate::usage::{self, Reading};

/// A longer line is kept without what no bill needs: an answer may hold pictures.
const SHORT_BYTES: usize = 64 << 10;
/// Most bytes of a line that are kept.
const LINE_BYTES_MAX: usize = 1 << 20;

/// What a line of a result tells of its call.
#[derive(Clone, Debug, PartialEq)]
pub enum Told {
    /// It was answered.
    Served(Box<Served>),
    /// It was not: it failed, or was never made.
    Unserved,
    /// Nothing: the line is cut off, or says it in a way that is not read.
    Unreadable,
}

/// What one call of a batch came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Served {
    /// The model that answered, as its provider calls it.
    pub model: Option<Box<str>>,
    /// What it used.
    pub usage: Reading,
    /// What its list `data` holds: images, where it was asked for these.
    pub pieces: Option<u32>,
}

/// What a line of a result tells, read once from end to end. `counts_pieces` where its calls are billed by them.
#[must_use]
pub fn told(api: Api, counts_pieces: bool, line: &[u8]) -> Told {
    let read = |line: &[u8]| {
        let reader = Reader::new(line);
        let mut line = Line {
            reader,
            counts_pieces,
        };
        line.told(api)
    };
    // An answer may repeat what its caller asked for, deeper than is read.
    let told = read(line).or_else(|| read(&Elided::of(line)));
    told.unwrap_or(Told::Unreadable)
}

struct Line<'l> {
    reader: Reader<'l>,
    counts_pieces: bool,
}

/// An answer, with what stands beside it.
#[derive(Default)]
struct Said {
    /// `status_code` or `type`.
    state: Option<State>,
    answer: Option<Served>,
}

/// How the call of a line ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Good,
    Bad,
}

impl Line<'_> {
    /// `None` where it is no whole object.
    fn told(&mut self, api: Api) -> Option<Told> {
        let (place, state, answer) = match api {
            Api::OpenAi => ("response", "status_code", "body"),
            Api::Anthropic => ("result", "type", "message"),
        };
        let (mut said, mut is_error) = (None, false);
        let mut more = self.reader.open()?;
        while more {
            let name = self.reader.name()?;
            if *name == *place.as_bytes() {
                said = self.said(api, state, answer)?;
            } else if *name == *b"error" {
                is_error = self.reader.kind()? == Kind::Object;
                self.reader.pass()?;
            } else {
                self.reader.pass()?;
            }
            more = self.reader.more()?;
        }
        if !self.reader.is_at_end() {
            return None;
        }
        Some(match said {
            Some(Said {
                state: Some(State::Good),
                answer,
            }) => answer.map_or(Told::Unreadable, |served| Told::Served(Box::new(served))),
            Some(Said {
                state: Some(State::Bad),
                ..
            }) => Told::Unserved,
            // A line of a call that was never made has nothing but its error.
            None if is_error && api == Api::OpenAi => Told::Unserved,
            Some(_) | None => Told::Unreadable,
        })
    }

    fn said(&mut self, api: Api, state: &str, answer: &str) -> Option<Option<Said>> {
        if self.reader.kind()? != Kind::Object {
            self.reader.pass()?;
            return Some(None);
        }
        let mut said = Said::default();
        let mut more = self.reader.open()?;
        while more {
            let name = self.reader.name()?;
            if *name == *state.as_bytes() {
                said.state = state_of(api, self.reader.value()?);
            } else if *name == *answer.as_bytes() {
                said.answer = Some(self.answer()?);
            } else {
                self.reader.pass()?;
            }
            more = self.reader.more()?;
        }
        Some(Some(said))
    }

    fn answer(&mut self) -> Option<Served> {
        let mut served = Served::default();
        if self.reader.kind()? != Kind::Object {
            self.reader.pass()?;
            return Some(served);
        }
        let mut more = self.reader.open()?;
        while more {
            let name = self.reader.name()?;
            if *name == *b"model" {
                served.model = plain_text(self.reader.value()?).map(Box::from);
            } else if *name == *b"usage" {
                served.usage = usage::read(self.reader.value()?.1);
            } else if self.counts_pieces && *name == *b"data" {
                let (kind, list) = self.reader.value()?;
                let count = || u32::try_from(Elements::of(list).others).unwrap_or(u32::MAX);
                served.pieces = (kind == Kind::Array).then(count);
            } else {
                self.reader.pass()?;
            }
            more = self.reader.more()?;
        }
        Some(served)
    }
}

fn state_of(api: Api, value: (Kind, &[u8])) -> Option<State> {
    match api {
        Api::OpenAi => match value {
            (Kind::Number, status) if status.starts_with(b"2") => Some(State::Good),
            (Kind::Number, _) => Some(State::Bad),
            _ => None,
        },
        Api::Anthropic => match plain_text(value)? {
            "succeeded" => Some(State::Good),
            "errored" | "canceled" | "expired" => Some(State::Bad),
            _ => None,
        },
    }
}

/// Cuts what comes into lines.
#[derive(Debug, Default)]
pub struct ResultLines {
    held: Vec<u8>,
    /// The line that comes is a long one: what is held of it has lost what no bill needs.
    long: Option<Elided>,
    /// What stays of the line that comes is too long, too.
    is_over_long: bool,
    /// Lines that were.
    pub skipped: u64,
}

impl ResultLines {
    /// Takes the next bytes, and gives each line that is whole: to keep, where it came in several pieces.
    pub fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(Cow<'_, [u8]>)) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (last, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            let is_new = self.held.is_empty() && self.long.is_none() && !self.is_over_long;
            if is_new && last.len() <= SHORT_BYTES {
                if !last.trim_ascii().is_empty() {
                    line(Cow::Borrowed(last));
                }
                continue;
            }
            self.hold(last);
            self.end(&mut line);
        }
        self.hold(bytes);
    }

    /// No more comes: the last line may have no end.
    pub fn finish(&mut self, mut line: impl FnMut(Cow<'_, [u8]>)) {
        self.end(&mut line);
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.is_over_long {
            return;
        }
        if self.long.is_none() && self.held.len() + bytes.len() <= SHORT_BYTES {
            self.held.extend_from_slice(bytes);
            return;
        }
        let begun = match self.long {
            Some(_) => Vec::new(),
            None => std::mem::take(&mut self.held),
        };
        let long = self.long.get_or_insert_default();
        long.push(&begun, &mut self.held);
        long.push(bytes, &mut self.held);
        if self.held.len() > LINE_BYTES_MAX {
            self.is_over_long = true;
            self.held = Vec::new();
        }
    }

    fn end(&mut self, line: &mut impl FnMut(Cow<'_, [u8]>)) {
        self.long = None;
        if std::mem::take(&mut self.is_over_long) {
            self.skipped += 1;
        } else if !self.held.trim_ascii().is_empty() {
            line(Cow::Owned(std::mem::take(&mut self.held)));
        }
        self.held.clear();
    }
}
