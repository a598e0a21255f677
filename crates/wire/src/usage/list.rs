//! Usage in a list of JSON documents, as Google's API streams its answers to who does not ask for events.
//!
//! Invariant: memory is that of one document. Of several usages the last counts, as in a stream: each is of all before it.
//! Not here: one document (`unary`).

use super::Reading;
use super::unary::{document, of_found};
use crate::json::{JsonFaultKind, Scanner, after_blanks};

/// Reads the usage out of a list as it passes.
#[derive(Debug)]
pub(super) struct ListUsage {
    at: At,
    /// The last that was told.
    told: Reading,
}

#[derive(Debug)]
enum At {
    /// Before a document, or what stands between two.
    Between,
    /// In one, of which so many bytes came in earlier chunks.
    Inside {
        scanner: Box<Scanner>,
        before: usize,
    },
    /// Behind the list.
    Behind,
    /// Something else stands here.
    Unreadable,
}

impl ListUsage {
    /// A reader of what follows the list's opening bracket.
    pub(super) const fn new() -> Self {
        Self {
            at: At::Between,
            told: Reading::Absent,
        }
    }

    /// Looks at the next bytes.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let mut from = 0;
        while let Some(rest) = chunk.get(from..).filter(|rest| !rest.is_empty()) {
            from += match &mut self.at {
                At::Inside { scanner, before } => match scanner.push(rest) {
                    Ok(()) => {
                        *before += rest.len();
                        return;
                    }
                    Err(fault) if fault.kind == JsonFaultKind::Trailing => {
                        let taken = fault.offset - *before;
                        match of_found(scanner.found_before_trailing()) {
                            Reading::Absent => {}
                            told => self.told = told,
                        }
                        self.at = At::Between;
                        taken
                    }
                    Err(_) => {
                        self.at = At::Unreadable;
                        return;
                    }
                },
                At::Between => {
                    let blanks = after_blanks(rest, 0);
                    match rest.get(blanks) {
                        None => return,
                        Some(b',') => blanks + 1,
                        Some(b']') => {
                            self.at = At::Behind;
                            blanks + 1
                        }
                        Some(b'{') => {
                            let scanner = Box::new(document());
                            self.at = At::Inside { scanner, before: 0 };
                            blanks
                        }
                        Some(_) => {
                            self.at = At::Unreadable;
                            return;
                        }
                    }
                }
                At::Behind => {
                    if after_blanks(rest, 0) < rest.len() {
                        self.at = At::Unreadable;
                    }
                    return;
                }
                At::Unreadable => return,
            };
        }
    }

    /// What was told until here: also of a list that breaks off.
    pub(super) const fn reading(&self) -> &Reading {
        match self.at {
            At::Unreadable => &Reading::UNREAD,
            _ => &self.told,
        }
    }
}
