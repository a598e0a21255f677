//! The short way for an object that comes in one piece, as most do: no state is kept between bytes.
//!
//! Invariant: what it finds is what the scanner would find byte by byte; where it is not sure it finds
//! nothing, and the scanner starts over.
//! Not here: faults (`scan`).

use super::capture::{Found, Kind};
use super::interest::{Interests, Want};
use super::reader::Reader;
use super::token::plain_key_end;
use super::{NUMBER_LIMIT_BYTES, STRING_LIMIT_BYTES};

/// Whether a text may be one whole object.
pub(super) fn may_be_whole(text: &[u8]) -> bool {
    let last = text.iter().rev().find(|byte| !byte.is_ascii_whitespace());
    last == Some(&b'}')
}

/// Reads a whole document into notes that are empty so far.
pub(super) fn read_whole(
    text: &[u8],
    interests: &'static Interests,
    found: &mut Found,
) -> Option<()> {
    let mut whole = Whole {
        reader: Reader::new(text),
        interests,
        found,
    };
    let more = whole.reader.open()?;
    let open = text.iter().position(|&byte| byte == b'{')?;
    whole.found.open = Some(open + 1);
    whole.found.empty = !more;
    whole.members(None, more)?;
    whole.found.length = text.len();
    whole.reader.is_at_end().then_some(())
}

struct Whole<'a> {
    reader: Reader<'a>,
    interests: &'static Interests,
    found: &'a mut Found,
}

impl Whole<'_> {
    /// Reads the members of the document, or of the object that is interest `parent`, and no deeper.
    fn members(&mut self, parent: Option<u8>, mut more: bool) -> Option<()> {
        while more {
            self.reader.peek()?;
            let key = self.reader.place();
            let name = self.reader.name()?;
            match self.interests.find(parent, &name) {
                None => {
                    self.reader.value()?;
                }
                Some(interest) => self.member(interest, key)?,
            }
            more = self.reader.more()?;
        }
        Some(())
    }

    fn member(&mut self, interest: u8, key: usize) -> Option<()> {
        if self.found.has(interest) {
            return None;
        }
        let asked = self.interests.list.get(usize::from(interest))?;
        let kind = self.reader.kind()?;
        let start = self.reader.place();
        let empty = if kind == Kind::Object && self.interests.inside(interest) != 0 {
            let more = self.reader.open()?;
            self.found.enter(self.interests, interest, key);
            self.members(Some(interest), more)?;
            !more
        } else {
            let (_, raw) = self.reader.value()?;
            self.found.enter(self.interests, interest, key);
            self.found.keep_from_here(interest);
            match (asked.want, kind) {
                (Want::Scalar, Kind::String) => {
                    let plain = plain_key_end(raw, 1) == Some(raw.len());
                    if !plain || raw.len() > STRING_LIMIT_BYTES + 2 {
                        return None;
                    }
                    self.found.keep(interest, raw, raw.len());
                }
                (Want::Scalar, Kind::Number) if raw.len() > NUMBER_LIMIT_BYTES => return None,
                (Want::Scalar, Kind::Number) => self.found.keep(interest, raw, raw.len()),
                (Want::Raw(bound), _) => self.found.keep(interest, raw, bound),
                (Want::Scalar | Want::Place, _) => {}
            }
            is_empty(raw)
        };
        let value = start..self.reader.place();
        let member = self.found.slot(interest)?;
        member.kind = kind;
        member.value = value;
        member.empty = empty;
        Some(())
    }
}

/// Whether a value is no container, or one that holds nothing.
fn is_empty(raw: &[u8]) -> bool {
    match raw {
        [b'{' | b'[', content @ ..] => {
            let first = content.iter().find(|byte| !byte.is_ascii_whitespace());
            matches!(first, Some(b'}' | b']'))
        }
        _ => true,
    }
}
