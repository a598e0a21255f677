//! Ids deep inside of a call that name what the provider keeps for its account: files, stores, containers, items of earlier answers.
//!
//! Calls of workloads that share an account are looked at, and no others. Most are told by the bytes of no such name; one that has
//! some is walked once more, to its depth.
//! Invariant: a name is compared as it reads, however it is escaped. What a schema, the arguments of a tool or metadata hold is the
//! caller's own text, and names nothing.
//! Not here: members of the body itself (`head`, `named`), whether an account is shared (`policy`), the grammar, which the body has
//! passed (`json`).

use bytes::Bytes;
use memchr::memmem;

use super::head::CallHead;
use crate::dialect::Operation;

mod rules;
mod walk;

/// Longer than every hint.
const JOINT_BYTES: usize = 32;
/// How a name begins that is written in escapes, with the first digit of each letter after it.
const ESCAPE: &[u8] = b"\\u00";

impl CallHead {
    /// Looks for ids deep inside of the whole body that this call was read from, and keeps the name of the first in
    /// [`keeps`](Self::keeps), where none stands there of the call's own dialect.
    #[cold]
    pub fn look_inside(&mut self, operation: Operation, body: &[Bytes]) {
        if !operation.keeps_state() {
            self.keeps = None;
        }
        if let (None, Some(rules)) = (self.keeps, rules::of(operation))
            && !self.is_form
            && has_hint(body, rules.hints)
        {
            self.keeps = match body {
                [whole] => walk::named(whole, rules),
                pieces => walk::named(&pieces.concat(), rules),
            };
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

fn may_name(text: &[u8], hints: &[&str]) -> bool {
    let is_letter = |at: usize| matches!(text.get(at + ESCAPE.len()), Some(b'4'..=b'7'));
    let mut hints = hints.iter();
    hints.any(|hint| memmem::find(text, hint.as_bytes()).is_some())
        || memmem::find_iter(text, ESCAPE).any(is_letter)
}

#[cfg(test)]
mod tests;
