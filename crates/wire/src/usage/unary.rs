//! Usage in a response that is one JSON document, or a list of them (`list`).
//!
//! Invariant: memory is bounded; a body that is no JSON gives `Absent`, and an object that cannot be read
//! [`Reading::UNREAD`]; neither is an error.

use super::list::ListUsage;
use super::read::{read, read_at};
use super::{Beginning, Reading, USAGE_LIMIT_BYTES};
use crate::dialect::{Name, names};
use crate::json::{
    Found, Interest, Interests, Kind, Reader, Repeat, Scanner, Want, after_blanks, may_be_whole,
};

/// Where usage stands in a document.
const USAGE: [&str; 3] = names(Name::Usage);

const fn usage(path: &'static str) -> Interest {
    Interest::new(path, Want::Raw(USAGE_LIMIT_BYTES), Repeat::LastWins)
}

static ASKED: Interests = Interests::new(&[usage(USAGE[0]), usage(USAGE[1]), usage(USAGE[2])]);

/// Reads the usage out of a response body as it passes.
///
/// ```
/// let mut usage = wire::usage::UnaryUsage::new();
/// usage.push(br#"{"choices":[],"usage":{"prompt_tok"#);
/// usage.push(br#"ens":3,"completion_tokens":0}}"#);
/// let wire::usage::Reading::Valid(usage) = usage.finish() else { panic!() };
/// assert_eq!((usage.prompt, usage.completion), (Some(3), Some(0)));
/// ```
#[derive(Debug, Default)]
pub struct UnaryUsage(Progress);

#[derive(Debug, Default)]
enum Progress {
    #[default]
    Start,
    /// The first piece was a whole document.
    Whole(Reading),
    Parts(Box<(Scanner, Beginning)>),
    List(Box<ListUsage>),
    /// An object that breaks its grammar, or has more levels than are read.
    Unreadable,
    NoJson,
}

impl UnaryUsage {
    /// A reader for one response body.
    pub fn new() -> Self {
        Self::default()
    }

    /// Looks at the next bytes.
    pub fn push(&mut self, chunk: &[u8]) {
        match &mut self.0 {
            Progress::Start if after_blanks(chunk, 0) == chunk.len() => {}
            Progress::Start => {
                // Read in place, because a reading is large.
                self.0 = Progress::Whole(Reading::Absent);
                if let Progress::Whole(reading) = &mut self.0
                    && !(may_be_whole(chunk) && read_whole(chunk, reading).is_some())
                {
                    self.0 = in_parts(chunk);
                }
                if let Progress::Whole(reading @ Reading::Absent) = &mut self.0
                    && Beginning::of(chunk)
                {
                    *reading = Reading::NoAnswer;
                }
            }
            Progress::Parts(parts) => {
                let (scanner, beginning) = &mut **parts;
                beginning.push(chunk);
                if scanner.push(chunk).is_err() {
                    self.0 = Progress::Unreadable;
                }
            }
            Progress::List(list) => list.push(chunk),
            Progress::Unreadable => {}
            Progress::Whole(_) if after_blanks(chunk, 0) == chunk.len() => {}
            // It was an object, and is none.
            Progress::Whole(_) => self.0 = Progress::Unreadable,
            Progress::NoJson => {}
        }
    }

    /// Whether nothing has come.
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self.0, Progress::Start)
    }

    /// Ends the body.
    pub fn finish(&mut self) -> &Reading {
        if let Progress::List(list) = &mut self.0 {
            self.0 = Progress::Whole(list.finish());
        }
        if let Progress::Parts(parts) = &mut self.0 {
            let (scanner, beginning) = &mut **parts;
            let reading = match scanner.finish().map_or(Reading::Absent, of_found) {
                Reading::Absent if beginning.is_error() => Reading::NoAnswer,
                reading => reading,
            };
            self.0 = Progress::Whole(reading);
        }
        match &self.0 {
            Progress::Whole(reading) => reading,
            Progress::Unreadable => &Reading::UNREAD,
            Progress::Start | Progress::Parts(_) | Progress::List(_) | Progress::NoJson => {
                &Reading::Absent
            }
        }
    }
}

fn in_parts(chunk: &[u8]) -> Progress {
    let start = after_blanks(chunk, 0);
    if let Some((b'[', listed)) = chunk.get(start..).and_then(<[u8]>::split_first) {
        let mut list = Box::new(ListUsage::new());
        list.push(listed);
        return Progress::List(list);
    }
    let mut scanner = document();
    match scanner.push(chunk) {
        Ok(()) => {
            let mut beginning = Beginning::default();
            beginning.push(chunk);
            Progress::Parts(Box::new((scanner, beginning)))
        }
        Err(_) if chunk.get(start) == Some(&b'{') => Progress::Unreadable,
        Err(_) => Progress::NoJson,
    }
}

/// A reader of one document.
pub(super) const fn document() -> Scanner {
    Scanner::new(&ASKED)
}

/// What a document says.
pub(super) fn of_found(found: &Found) -> Reading {
    let said = |at| found.member(at).filter(|member| member.kind != Kind::Null);
    match said(0).or_else(|| said(1)).or_else(|| said(2)) {
        None => Reading::Absent,
        Some(member) if member.cut => Reading::UNREAD,
        Some(member) => read(found.raw(member)),
    }
}

/// Reads a whole response; the last member counts, as with the scanner. `None` where this is no object, or one
/// that is better read in parts.
fn read_whole(body: &[u8], reading: &mut Reading) -> Option<()> {
    let mut reader = Reader::new(body);
    let mut more = reader.open()?;
    let mut known = None;
    while more {
        let name = reader.name()?;
        let usage = USAGE.iter().position(|usage| *name == *usage.as_bytes());
        if usage.is_some() {
            if known.replace(usage).is_some_and(|known| known != usage) {
                // Two dialects at once.
                return None;
            }
            reader.kind()?;
            let start = reader.place();
            read_at(&mut reader, reading)?;
            if reader.place() - start > USAGE_LIMIT_BYTES {
                *reading = Reading::UNREAD;
            }
        } else {
            reader.pass()?;
        }
        more = reader.more()?;
    }
    reader.is_at_end().then_some(())
}
