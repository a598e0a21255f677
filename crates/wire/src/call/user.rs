//! Who is behind a call, as the call itself says: `user` or `safety_identifier`, and `metadata.user_id` of the Messages API.
//!
//! A scan of its own beside the other one, so that calls of which nobody wants to know it pay nothing.
//! Invariant: a name is read exactly as the engine will read it, or the call is refused, as for every member that is
//! read: one that comes twice or in other letters, and one that is no text of at most 256 characters that can be seen.
//! Null and an empty text say nothing. Of two members that say it the dialect's first counts.
//! Not here: whose word counts (`policy::identity`).

use super::fault::{CallFault, CallFaultKind};
use crate::dialect::{Name, Operation, names};
use crate::json::{Found, Interest, Interests, Kind, Member, Repeat, Scanner, Want, split_path};
use crate::unseen::is_unseen;

/// Most characters of it.
const CHARS_MAX: usize = 256;
/// Said of a value that is something else.
const WANTED: &str = "a string of at most 256 characters, each of which can be seen";

/// All members that any dialect has for it.
const MEMBERS: [&str; 3] = names::<3>(Name::User);
const HOLDER: &str = match split_path(MEMBERS[2]) {
    (Some(holder), _) => holder,
    (None, _) => panic!("the last of them stands in an object"),
};

const fn asked(path: &'static str, want: Want) -> Interest {
    Interest::new(path, want, Repeat::Refuse)
}

/// Of the dialects that say it directly in the document.
static DIRECT: Interests = Interests::new(DIRECTLY);
const DIRECTLY: &[Interest] = &[
    asked(MEMBERS[0], Want::Scalar),
    asked(MEMBERS[1], Want::Scalar),
];

/// Of those that say it in an object there.
static HELD: Interests = Interests::new(HELD_IN);
const HELD_IN: &[Interest] = &[asked(HOLDER, Want::Place), asked(MEMBERS[2], Want::Scalar)];

/// A scan for who is behind a call.
#[derive(Debug)]
pub(super) struct UserScanner {
    scanner: Scanner,
    operation: Operation,
}

impl UserScanner {
    /// For a call of this operation; `None` where its body does not say it.
    pub(super) fn of(operation: Operation) -> Option<Self> {
        let first = operation.user_members().next()?;
        let interests = match split_path(first) {
            (None, _) => &DIRECT,
            (Some(_), _) => &HELD,
        };
        Some(Self {
            scanner: Scanner::new(interests),
            operation,
        })
    }

    /// Reads the next bytes.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), CallFault> {
        self.scanner.push(chunk).map_err(CallFault::from)
    }

    /// Ends the body.
    pub(super) fn finish(mut self) -> Result<Option<Box<str>>, CallFault> {
        let found = self.scanner.finish()?;
        let list = match self.operation.user_members().next().map(split_path) {
            Some((Some(_), _)) => HELD_IN,
            _ => DIRECTLY,
        };
        for path in self.operation.user_members() {
            let place = list.iter().position(|asked| asked.path == path);
            let member = place.and_then(|place| found.member(place));
            if let Some(user) = member.map_or(Ok(None), |m| read(path, m, found))? {
                return Ok(Some(user));
            }
        }
        Ok(None)
    }
}

fn read(path: &'static str, member: &Member, found: &Found) -> Result<Option<Box<str>>, CallFault> {
    let text = match member.kind {
        Kind::Null => return Ok(None),
        Kind::String => found.text(member),
        _ => None,
    };
    let is_good =
        |text: &str| text.chars().nth(CHARS_MAX).is_none() && !text.chars().any(is_unseen);
    match text.filter(|text| is_good(text)) {
        Some(text) if text.is_empty() => Ok(None),
        Some(text) => Ok(Some(text.into())),
        None => {
            let kind = CallFaultKind::WrongType {
                member: path,
                wanted: WANTED,
            };
            Err(CallFault::at(path, member.value.start, kind))
        }
    }
}

#[cfg(test)]
mod tests;
