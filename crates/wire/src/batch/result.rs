//! What the result of a batch tells, line by line as it comes.
//!
//! Invariant: the answer is the same for every way to cut the bytes; one line is kept at a time, up to a bound.
//! Not here: what it costs (`policy`).

use memchr::memchr;

use super::{Api, member, plain_text};
use crate::json::{Interests, Kind, Scanner};
use crate::usage::{self, Reading};

/// Longest line that is read: an answer may hold pictures.
const LINE_BYTES_MAX: usize = 16 << 20;

/// What one call of a batch came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Served<'l> {
    /// The model that answered, as its provider calls it.
    pub model: Option<&'l str>,
    /// What it used.
    pub usage: Reading,
}

/// What a line of a result tells; `None` where its call was not answered, or nothing can be read of it.
#[must_use]
pub fn served(api: Api, line: &[u8]) -> Option<Served<'_>> {
    let answer = match api {
        Api::OpenAi => {
            let (Kind::Object, response) = member(line, "response")? else {
                return None;
            };
            let (_, status) = member(response, "status_code")?;
            if !status.starts_with(b"2") {
                return None;
            }
            member(response, "body")?.1
        }
        Api::Anthropic => {
            let (Kind::Object, result) = member(line, "result")? else {
                return None;
            };
            if plain_text(member(result, "type")?) != Some("succeeded") {
                return None;
            }
            member(result, "message")?.1
        }
    };
    let usage = member(answer, "usage").map_or(Reading::Absent, |(_, raw)| usage::read(raw));
    Some(Served {
        model: member(answer, "model").and_then(plain_text),
        usage,
    })
}

/// Whether a line says what became of a call, whatever that is: one that was cut off is none, and neither is one that says it in a way
/// that is not read.
#[must_use]
pub fn is_line(api: Api, line: &[u8]) -> bool {
    let mut scanner = Scanner::new(&NOTHING);
    if scanner.push(line).is_err() || !scanner.finish().is_ok_and(|found| found.open.is_some()) {
        return false;
    }
    match api {
        Api::OpenAi => match member(line, "response") {
            Some((Kind::Object, response)) => {
                matches!(member(response, "status_code"), Some((Kind::Number, _)))
            }
            _ => matches!(member(line, "error"), Some((Kind::Object, _))),
        },
        Api::Anthropic => {
            let result = member(line, "result").filter(|(kind, _)| *kind == Kind::Object);
            let said = result.and_then(|(_, result)| plain_text(member(result, "type")?));
            matches!(said, Some("succeeded" | "errored" | "canceled" | "expired"))
        }
    }
}

static NOTHING: Interests = Interests::new(&[]);

/// Cuts what comes into lines.
#[derive(Debug, Default)]
pub struct ResultLines {
    held: Vec<u8>,
    /// The line that comes is too long.
    is_over_long: bool,
    /// Lines that were.
    pub skipped: u64,
}

impl ResultLines {
    /// Takes the next bytes, and gives each line that is whole.
    pub fn push(&mut self, mut bytes: &[u8], mut line: impl FnMut(&[u8])) {
        while let Some(end) = memchr(b'\n', bytes) {
            let (last, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            if self.held.is_empty() && !self.is_over_long && last.len() <= LINE_BYTES_MAX {
                if !last.trim_ascii().is_empty() {
                    line(last);
                }
                continue;
            }
            self.hold(last);
            self.end(&mut line);
        }
        self.hold(bytes);
    }

    /// No more comes: the last line may have no end.
    pub fn finish(&mut self, mut line: impl FnMut(&[u8])) {
        self.end(&mut line);
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.is_over_long || self.held.len() + bytes.len() > LINE_BYTES_MAX {
            self.is_over_long = true;
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }

    fn end(&mut self, line: &mut impl FnMut(&[u8])) {
        if std::mem::take(&mut self.is_over_long) {
            self.skipped += 1;
        } else if !self.held.trim_ascii().is_empty() {
            line(&self.held);
        }
        self.held.clear();
    }
}
