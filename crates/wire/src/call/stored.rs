//! Ids deep inside of a call that name what the provider keeps for its account: files, stores, containers, items of earlier answers.
//!
//! Calls of workloads that share an account are looked at, and no others. Most are told by the bytes of no such name; one that has
//! some is walked once more, to its depth.
//! Invariant: a name is compared as it reads, however it is escaped, and in whatever letters it is written. What a schema, the arguments of a tool or metadata hold is the
//! caller's own text, and names nothing.
//! Not here: members of the body itself (`head`, `named`), whether an account is shared (`policy`), the grammar, which the body has
//! passed (`json`).

use bytes::Bytes;
use memchr::{memchr3_iter, memmem};

use crate::dialect::Operation;

pub mod address;
mod rules;
mod walk;

/// Longer than every hint.
const JOINT_BYTES: usize = 32;
/// How a letter begins that is written in an escape, with its digits after it.
const ESCAPE: &[u8] = b"\\u";
/// Bytes that are put into lower case at a time.
const WINDOW_BYTES: usize = 4 << 10;

/// What is looked for in the body of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored(&'static rules::Rules);

impl Stored {
    /// Items of a conversation that say no more than their ids, and a template that stands in its place.
    pub(super) const ITEMS: Self = Self(&rules::ITEMS);

    /// Of a call to this; `None` where it can name nothing.
    pub(super) fn of(operation: Operation) -> Option<Self> {
        rules::of(operation).map(Self)
    }

    /// The name of the first member of this body that names what the provider keeps.
    pub(super) fn named(self, body: &[Bytes]) -> Option<&'static str> {
        if !has_hint(body, self.0.hints) {
            return None;
        }
        match body {
            [whole] => walk::named(whole, self.0),
            pieces => walk::named(&pieces.concat(), self.0),
        }
    }
}

impl Operation {
    /// Whether its body may name what the upstream keeps, in its members or deep inside of them.
    #[must_use]
    pub fn names_stored(self) -> bool {
        self.keeps_state() || rules::of(self).is_some()
    }
}

/// Whether a name that matters may stand in these pieces of one body.
fn has_hint(body: &[Bytes], hints: &[&str]) -> bool {
    let mut joint: Vec<u8> = Vec::new();
    body.iter().any(|piece| {
        let begins = piece.get(..JOINT_BYTES).unwrap_or(piece);
        let at_joint = !joint.is_empty() && {
            joint.extend_from_slice(begins);
            may_name(&joint, hints)
        };
        if body.len() > 1 {
            if begins.len() < piece.len() {
                joint.clear();
                joint.extend_from_slice(piece);
            } else if joint.is_empty() {
                joint.extend_from_slice(begins);
            }
            let kept = joint.len().saturating_sub(JOINT_BYTES);
            joint.drain(..kept);
        }
        at_joint || may_name(piece, hints)
    })
}

pub(super) fn may_name(text: &[u8], hints: &[&str]) -> bool {
    memmem::find_iter(text, ESCAPE).any(|at| {
        // A letter of ASCII, or one of the few others that fold to one.
        let digits = text.get(at + ESCAPE.len()..at + ESCAPE.len() + 3);
        matches!(
            digits,
            Some([b'0', b'0', b'4'..=b'7'] | [b'0', b'1', b'3' | b'7'] | [b'2', b'1', b'2'])
        )
    }) || has_odd_letter(text)
        || has_in_any_letters(text, hints)
}

/// Whether a letter stands here that is none of ASCII's and folds to one: a name that has it is read to its end.
fn has_odd_letter(text: &[u8]) -> bool {
    memchr3_iter(0xe2, 0xc5, 0xc4, text).any(|at| {
        matches!(
            text.get(at..),
            Some([0xe2, 0x84, 0xaa, ..] | [0xc5, 0xbf, ..] | [0xc4, 0xb0 | 0xb1, ..])
        )
    })
}

/// Whether one of these, in lower case, stands here in whatever letters.
fn has_in_any_letters(text: &[u8], hints: &[&str]) -> bool {
    let mut lower = [0_u8; WINDOW_BYTES];
    let mut from = 0;
    loop {
        let rest = text.get(from..).unwrap_or_default();
        let part = rest.get(..WINDOW_BYTES).unwrap_or(rest);
        let window = lower.get_mut(..part.len()).unwrap_or_default();
        window.copy_from_slice(part);
        window.make_ascii_lowercase();
        let mut hints = hints.iter();
        if hints.any(|hint| memmem::find(window, hint.as_bytes()).is_some()) {
            return true;
        }
        if part.len() == rest.len() {
            return false;
        }
        from += WINDOW_BYTES - JOINT_BYTES;
    }
}

#[cfg(test)]
mod tests;
