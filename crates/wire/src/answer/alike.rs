//! Events that differ from an earlier one in their text alone, as most of a stream's do.
//!
//! An engine writes token after token as the same document with another text in one place. What stands around that
//! text is compared with an event that was read whole; where it is the same, the text is all that is left to read.
//! Two members that are read by nobody may differ as well: OpenAI numbers the events of a response and pads each event
//! with letters by chance.
//! Invariant: an event is taken here only where reading it whole says the same. Whatever is in doubt is read whole.
//! Not here: what an event means (`answer`).

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;
use memchr::memmem;

use super::{Lane, Piece};

/// Bytes of the longest event that is kept to be compared with.
const LONGEST: usize = 2048;
/// Places of an event that may differ beside its text.
const MOST_PASSED_OVER: usize = 4;
/// Digits of the longest number that may differ: any of them is one to every reader of JSON.
const MOST_DIGITS: usize = 19;

/// Members whose value may differ: what stands before it, and its kind. No reader knows a member of such a name, and
/// a quotation mark that is not escaped cannot stand within a text.
const PASSED_OVER: [(&[u8], Expected); 2] = [
    (b"\"sequence_number\":", Expected::Digits),
    (b"\"obfuscation\":\"", Expected::Letters),
];

/// An event that was read whole, cut where another may differ.
#[derive(Debug)]
pub(super) struct Alike {
    parts: Vec<Part>,
    choice: u32,
    /// Where the text belongs; `None` until there is an event.
    lane: Option<Lane>,
}

#[derive(Debug)]
struct Part {
    /// These bytes,
    fixed: Box<[u8]>,
    /// and then this.
    then: Expected,
}

/// What may differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The inside of a text, up to its quotation mark.
    Text,
    /// A number without sign or fraction.
    Digits,
    /// The inside of a text of ASCII without an escape.
    Letters,
    /// The event's end.
    End,
}

impl Alike {
    pub(super) const fn new() -> Self {
        Self {
            parts: Vec::new(),
            choice: 0,
            lane: None,
        }
    }

    /// Keeps an event that says nothing but the text that is written there.
    pub(super) fn learn(&mut self, event: &[u8], choice: u32, lane: Lane, there: Range<usize>) {
        if let Some(parts) = parts(event, there) {
            self.parts = parts;
            (self.choice, self.lane) = (choice, Some(lane));
        }
    }

    /// Tells of an event's text, where it has the same members as the one that is kept; `None` where it has to be read
    /// whole.
    pub(super) fn read(&self, event: &[u8], take: &mut impl FnMut(Piece<'_>)) -> Option<()> {
        let lane = self.lane?;
        let mut rest = event;
        let mut text = Cow::Borrowed("");
        for Part { fixed, then } in &self.parts {
            rest = rest.strip_prefix(&**fixed)?;
            let length = then.length(rest)?;
            let (found, after) = rest.split_at_checked(length)?;
            if *then == Expected::Text {
                text = inside(found)?;
            }
            rest = after;
        }
        take(Piece::Text(self.choice, lane, &text));
        Some(())
    }
}

impl Expected {
    /// How much of this it is.
    fn length(self, of: &[u8]) -> Option<usize> {
        match self {
            Self::Text => end_of_text(of),
            Self::Digits => {
                let length = of.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let is_number = match of {
                    [b'0', ..] => length == 1,
                    _ => (1..=MOST_DIGITS).contains(&length),
                };
                let is_all = matches!(of.get(length), Some(b',' | b'}'));
                (is_number && is_all).then_some(length)
            }
            Self::Letters => {
                let is_letter = |byte: &&u8| matches!(byte, b' '..=b'~') && !b"\"\\".contains(byte);
                Some(of.iter().take_while(is_letter).count())
            }
            Self::End => of.is_empty().then_some(0),
        }
    }
}

/// Where the text ends that `of` begins within.
fn end_of_text(of: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr2(b'"', b'\\', of.get(from..)?)?;
        if of.get(at) == Some(&b'"') {
            return Some(at);
        }
        from = at + 2;
    }
}

/// What a text says whose inside is written so; `None` where that is no text.
fn inside(written: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(written).ok()?;
    if memchr::memchr(b'\\', written).is_none() {
        let is_plain = written.iter().all(|byte| *byte >= b' ');
        return is_plain.then_some(Cow::Borrowed(text));
    }
    let quoted = ["\"", text, "\""].concat();
    serde_json::from_str(&quoted).ok().map(Cow::Owned)
}

/// Where in an event this text is written. One with an escape was copied when it was read, and has no place.
pub(super) fn place(event: &[u8], text: &str) -> Option<Range<usize>> {
    let begin = text.as_ptr().addr().checked_sub(event.as_ptr().addr())?;
    let end = begin.checked_add(text.len())?;
    let is_there = event.get(begin..end)? == text.as_bytes();
    is_there.then_some(begin..end)
}

/// The event, cut at the text that is written there and where it may differ besides.
fn parts(event: &[u8], text: Range<usize>) -> Option<Vec<Part>> {
    let (before, after) = (event.get(..text.start)?, event.get(text.end..)?);
    if event.len() > LONGEST || !before.ends_with(b"\"") || !after.starts_with(b"\"") {
        return None;
    }
    let mut parts = Vec::new();
    cut(before, Expected::Text, &mut parts);
    cut(after, Expected::End, &mut parts);
    Some(parts)
}

/// Cuts some of an event, behind which stands `then`.
fn cut(mut some: &[u8], then: Expected, parts: &mut Vec<Part>) {
    for _ in 0..MOST_PASSED_OVER {
        let Some((value, kind)) = first_passed_over(some) else {
            break;
        };
        let Some(length) = some.get(value..).and_then(|value| kind.length(value)) else {
            break;
        };
        let (fixed, rest) = some.split_at(value);
        parts.push(Part {
            fixed: fixed.into(),
            then: kind,
        });
        some = rest.get(length..).unwrap_or_default();
    }
    parts.push(Part {
        fixed: some.into(),
        then,
    });
}

/// Where the first value stands that may differ.
fn first_passed_over(some: &[u8]) -> Option<(usize, Expected)> {
    let places = PASSED_OVER.iter().filter_map(|(name, kind)| {
        let at = memmem::find(some, name)?;
        Some((at + name.len(), *kind))
    });
    places.min_by_key(|(at, _)| *at)
}

#[cfg(test)]
mod tests;
