//! The engine's account and the ledger's, held against each other by request id.
//!
//! Invariant: every call is on one of the lists: what the engine counted, what a row says, what a client heard.
//! Not here: reading them (`rows`, `engine::ground_truth`), what is allowed on which route (`kills`, `disk`).

use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

use engine::ground_truth::Entry;

use super::calls::{Heard, Status};
use super::rows::Row;
use super::verdict::{Found, Verdict};

#[cfg(test)]
mod tests;

/// All calls of an audit.
#[derive(Debug, Default)]
pub(super) struct Account {
    calls: HashMap<Box<str>, Call>,
    sums: Sums,
    settled: u64,
    indeterminate: u64,
    /// Rows of calls that went to the engine, or were about to, and ended without its counts.
    unreported: u64,
    doubled: Found,
    differing: Found,
    out_of_bounds: Found,
    open: Found,
    twice_upstream: Found,
}

/// What is known of one call.
#[derive(Debug, Default)]
struct Call {
    /// The engine's prompt and completion tokens, and when it answered.
    engine: Option<(u64, u64, Instant)>,
    rows: u32,
    completed: bool,
    heard: Status,
    /// The connection that it was sent on, and its place there.
    place: Option<(u64, u64)>,
}

/// Tokens of settled rows that say what the engine said: theirs, and the engine's own.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    rows: [u64; 2],
    engine: [u64; 2],
}

/// What is missing where it should be.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// Calls that the engine answered and that have no row.
    pub(super) lost: Found,
    /// When the engine had answered them.
    pub(super) lost_at: Vec<Instant>,
    /// When the engine had answered those that have one.
    pub(super) kept_at: Vec<Instant>,
    /// Calls with a row, sent on a connection after the answer of a call that has none: whatever was lost there was not the
    /// last.
    pub(super) outlived: Found,
    /// Calls whose client has a whole answer, and no row or not one of a completed call.
    pub(super) unsettled: Found,
    /// Whole answers of which the engine knows nothing.
    pub(super) invented: Found,
}

impl Account {
    /// What the engine counted.
    pub(super) fn engine(&mut self, entries: Vec<Entry>) {
        for entry in entries {
            let call = self.calls.entry(entry.id.clone()).or_default();
            if call.engine.is_some() {
                self.twice_upstream.add(|| entry.id.to_string());
            }
            call.engine = Some((entry.prompt_tokens, entry.completion_tokens, entry.ended));
        }
    }

    /// What clients heard.
    pub(super) fn heard(&mut self, heard: Vec<Heard>) {
        for one in heard {
            let call = self.calls.entry(one.id).or_default();
            call.heard = one.status;
            call.place = Some((one.connection, one.number));
        }
    }

    /// One row; after the engine's and the clients' lists.
    pub(super) fn row(&mut self, row: &Row) {
        let call = self
            .calls
            .entry(row.request_id.as_str().into())
            .or_default();
        call.rows += 1;
        if call.rows > 1 {
            self.doubled.add(|| row.request_id.clone());
        }
        let engine = call
            .engine
            .map(|(prompt, completion, _)| (prompt, completion));
        match row.state.as_str() {
            "settled" => {
                self.settled += 1;
                call.completed = row.outcome.as_deref() == Some("completed");
                match row.reported() {
                    Some(said) => {
                        let counted = engine.unwrap_or_default();
                        self.sums.add(said, counted);
                        if engine != Some(said) {
                            self.differing
                                .add(|| format!("{row:?}, the engine {engine:?}"));
                        }
                    }
                    None if call.completed => {
                        self.differing
                            .add(|| format!("{row:?} is complete without counts"));
                    }
                    None => self.unreported += 1,
                }
            }
            "indeterminate" => {
                self.indeterminate += 1;
                let tokens = engine.map_or(0, |(prompt, completion)| prompt + completion);
                let least = row.at_least_tokens.unwrap_or(0);
                if least > tokens || row.at_most_tokens.is_none_or(|most| most < tokens) {
                    self.out_of_bounds
                        .add(|| format!("{row:?}, the engine {tokens}"));
                }
            }
            _ => self.open.add(|| format!("{row:?}")),
        }
    }

    /// What is missing now that every row was given, of the calls whose ids begin so.
    pub(super) fn missing(&self, prefix: &str) -> Missing {
        let mut missing = Missing::default();
        let mut by_place = BTreeMap::new();
        for (id, call) in self.calls.iter().filter(|(id, _)| id.starts_with(prefix)) {
            match (call.engine, call.rows) {
                (Some((_, _, at)), 0) => {
                    missing.lost.add(|| id.to_string());
                    missing.lost_at.push(at);
                }
                (Some((_, _, at)), _) => missing.kept_at.push(at),
                (None, _) => {}
            }
            if call.heard == 200 && call.engine.is_none() {
                missing.invented.add(|| id.to_string());
            }
            if call.heard == 200 && call.rows > 0 && !call.completed {
                missing.unsettled.add(|| id.to_string());
            }
            by_place.extend(call.place.map(|place| (place, (id, call))));
        }
        let mut lost = None;
        for ((connection, _), (id, call)) in by_place {
            lost = lost.filter(|(of, _)| *of == connection);
            match lost {
                None if call.rows == 0 && call.heard == 200 => lost = Some((connection, id)),
                Some((_, first)) if call.rows > 0 => {
                    missing.outlived.add(|| format!("{id}, and not {first}"));
                }
                _ => {}
            }
        }
        missing
    }

    /// Calls that heard a refusal and yet went to the engine.
    pub(super) fn refused_and_run(&self) -> Found {
        let mut found = Found::default();
        for (id, call) in &self.calls {
            if call.heard == 503 && call.engine.is_some() {
                found.add(|| id.to_string());
            }
        }
        found
    }

    /// Everything that holds on any route.
    pub(super) fn tell(&self, verdict: &mut Verdict) {
        let by_engine = self.calls.values().filter(|call| call.engine.is_some());
        verdict.tell("calls sent", self.calls.len());
        verdict.tell("calls that the engine answered", by_engine.count());
        verdict.tell("rows settled", self.settled);
        verdict.tell("rows settled without the engine's counts", self.unreported);
        verdict.tell("rows indeterminate", self.indeterminate);
        verdict.none("rows doubled", &self.doubled);
        verdict.none("rows still open", &self.open);
        verdict.none(
            "indeterminate rows out of their bounds",
            &self.out_of_bounds,
        );
        verdict.none("settled rows that differ from the engine", &self.differing);
        verdict.none("calls that the engine was sent twice", &self.twice_upstream);
        let Sums { rows, engine } = &self.sums;
        for (what, at) in [("prompt", 0), ("completion", 1)] {
            verdict.tell(&format!("{what} tokens of settled rows, ledger"), rows[at]);
            let holds = rows[at] == engine[at];
            verdict.hold(
                &format!("{what} tokens of settled rows, engine"),
                engine[at],
                holds,
            );
        }
    }
}

impl Sums {
    fn add(&mut self, row: (u64, u64), engine: (u64, u64)) {
        self.rows[0] += row.0;
        self.rows[1] += row.1;
        self.engine[0] += engine.0;
        self.engine[1] += engine.1;
    }
}
