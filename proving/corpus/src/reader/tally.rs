//! What reading found, in numbers.
//!
//! Invariant: every table has a bound, and what is past it is counted without its name.
//! Not here: what repair changed (`repair`).

use std::collections::BTreeMap;

use crate::conversation::Conversation;
use crate::json::{Json, Oddities};

use super::{Fault, FaultKind, Position};

/// Names of unknown members that are kept.
const MAX_NAMES: usize = 1_000;
/// A longer name is cut.
const MAX_NAME_BYTES: usize = 100;
/// Faults that are listed; all are counted.
const MAX_FAULTS: usize = 1_000;

/// Counts of one reading. Those of threads are added up by [`Tally::absorb`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Sessions that were handed on.
    pub sessions: u64,
    /// Decisions in them.
    pub decisions: u64,
    /// Records that hold nothing to replay, by reason.
    pub skipped: BTreeMap<&'static str, u64>,
    /// Records that are broken, by reason.
    pub broken: BTreeMap<&'static str, u64>,
    /// The first 1,000 of both, with their positions.
    pub faults: Vec<(Position, Fault)>,
    /// What else is worth knowing, by what it is: no record is lost by these.
    pub notes: BTreeMap<&'static str, u64>,
    /// Members that the format does not have.
    pub unknown: Names,
    /// What was odd about the text.
    pub oddities: Oddities,
}

impl Tally {
    pub(super) fn read(&mut self, session: &Conversation) {
        self.sessions += 1;
        self.decisions += session.decisions.len() as u64;
    }

    pub(super) fn fault(&mut self, position: &Position, fault: &Fault) {
        let table = match fault.kind {
            FaultKind::Skipped => &mut self.skipped,
            FaultKind::Broken => &mut self.broken,
        };
        *table.entry(fault.reason).or_default() += 1;
        if self.faults.len() < MAX_FAULTS {
            self.faults.push((position.clone(), fault.clone()));
        }
    }

    /// Counts something that is worth knowing.
    pub fn note(&mut self, what: &'static str) {
        *self.notes.entry(what).or_default() += 1;
    }

    /// Counts the members of an object that are not among `known`, under `of` and a dot.
    pub fn unknown_members(&mut self, of: &str, value: &Json, known: &[&str]) {
        for (name, _) in value.as_object().unwrap_or_default() {
            if !known.contains(&name.as_str()) {
                self.unknown.count(&format!("{of}.{name}"), 1);
            }
        }
    }

    /// Adds the counts of another reading.
    pub fn absorb(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.decisions += other.decisions;
        for (mine, theirs) in [
            (&mut self.skipped, other.skipped),
            (&mut self.broken, other.broken),
            (&mut self.notes, other.notes),
        ] {
            for (name, count) in theirs {
                *mine.entry(name).or_default() += count;
            }
        }
        let room = MAX_FAULTS.saturating_sub(self.faults.len());
        self.faults.extend(other.faults.into_iter().take(room));
        for (name, count) in &other.unknown.counts {
            self.unknown.count(name, *count);
        }
        self.unknown.past += other.unknown.past;
        self.oddities.absorb(other.oddities);
    }
}

/// Names and how often each occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// The first 1,000 names, each cut to 100 bytes.
    pub counts: BTreeMap<String, u64>,
    /// How often a name occurred for which there was no room.
    pub past: u64,
}

impl Names {
    fn count(&mut self, name: &str, times: u64) {
        let mut end = name.len().min(MAX_NAME_BYTES);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let name = &name[..end];
        if let Some(count) = self.counts.get_mut(name) {
            *count += times;
        } else if self.counts.len() < MAX_NAMES {
            self.counts.insert(name.to_owned(), times);
        } else {
            self.past += times;
        }
    }
}

#[cfg(test)]
mod tests;
