//! Usage in a list of JSON documents, as Google's API streams its answers to who does not ask for events.
//!
//! Invariant: memory is that of one document. Of several usages the last counts, as in a stream: each is of all before it.
//! Not here: one document (`unary`).

use super::unary::{document, of_found};
use super::{Beginning, Reading};
use crate::json::{Found, JsonFaultKind, Scanner, after_blanks};

/// Reads the usage out of a list as it passes.
#[derive(Debug)]
pub(super) struct ListUsage {
    at: At,
    /// The last that was told.
    told: Reading,
    /// Of the first document.
    beginning: Beginning,
    /// Documents that have ended.
    documents: usize,
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
    /// Behind the list, or in one of something else: nothing more is read.
    Behind,
    /// A document breaks its grammar.
    Unreadable,
}

impl ListUsage {
    /// A reader of what follows the list's opening bracket.
    pub(super) fn new() -> Self {
        Self {
            at: At::Between,
            told: Reading::Absent,
            beginning: Beginning::default(),
            documents: 0,
        }
    }

    /// Looks at the next bytes.
    pub(super) fn push(&mut self, chunk: &[u8]) {
        let mut from = 0;
        while let Some(rest) = chunk.get(from..).filter(|rest| !rest.is_empty()) {
            from += match &mut self.at {
                At::Inside { scanner, before } => {
                    if self.documents == 0 {
                        self.beginning.push(rest);
                    }
                    match scanner.push(rest) {
                        Ok(()) => {
                            *before += rest.len();
                            return;
                        }
                        Err(fault) if fault.kind == JsonFaultKind::Trailing => {
                            let taken = fault.offset - *before;
                            take(&mut self.told, scanner.found_before_trailing());
                            self.documents += 1;
                            self.at = At::Between;
                            taken
                        }
                        Err(_) => {
                            self.at = At::Unreadable;
                            return;
                        }
                    }
                }
                At::Between => {
                    let blanks = after_blanks(rest, 0);
                    match rest.get(blanks) {
                        None => return,
                        Some(b',') => blanks + 1,
                        Some(b'{') => {
                            let scanner = Box::new(document());
                            self.at = At::Inside { scanner, before: 0 };
                            blanks
                        }
                        Some(byte) => {
                            // Lists of other values tell no usage.
                            self.documents += usize::from(*byte != b']');
                            self.at = At::Behind;
                            return;
                        }
                    }
                }
                At::Behind | At::Unreadable => return,
            };
        }
    }

    /// What was told until here: also of a list that breaks off.
    pub(super) fn finish(&mut self) -> Reading {
        if let At::Inside { scanner, .. } = &mut self.at
            && let Ok(found) = scanner.finish()
        {
            take(&mut self.told, found);
            self.documents += 1;
            self.at = At::Between;
        }
        match self.at {
            At::Unreadable => Reading::UNREAD,
            At::Behind if self.told == Reading::Absent && self.is_no_answer() => Reading::NoAnswer,
            At::Between | At::Inside { .. } | At::Behind => self.told,
        }
    }

    /// Whether it holds nothing, or an error alone.
    fn is_no_answer(&self) -> bool {
        self.documents == 0 || self.documents == 1 && self.beginning.is_error()
    }
}

fn take(told: &mut Reading, found: &Found) {
    match of_found(found) {
        Reading::Absent => {}
        read => *told = read,
    }
}
