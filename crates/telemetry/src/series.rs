//! What a worker counts: the series themselves.
//!
//! One cell (`cell`) holds everything about exchanges that share operation, workload, route,
//! backend and model; the metrics are projections of cells.
//! Invariant: at most [`MAX_SERIES`] label sets are kept; what comes past that is counted in the
//! cell `other` of its operation, and the folding itself is counted.
//! Not here: where label texts come from (`view`), how keys are packed (`key`), how a projection
//! is written (`render`).

mod cell;
mod cost;
mod key;

use policy::disconnect::DisconnectOutcome;
use policy::limit::Kind;
use policy::record::{Closed, Outcome, Record, Wait};

pub(crate) use cell::{Cell, SOURCES, Times, Tries};
pub(crate) use cost::{Cost, cost_key, cost_parts};
pub(crate) use key::{
    CellKey, OPERATIONS, RESULTS, endpoint_key, endpoint_parts, limited_key, limited_parts,
    operation_index, operation_label, provider_label, result_index,
};

use crate::histogram::Histogram;
use crate::names::{NameId, Names};
use crate::table::Table;
use cell::{Bumped, bump};
use key::{Ending, Status};

/// Most label sets that a worker keeps beside the `other` cells, of which there is one for each
/// operation. A cell stands for four (its histograms), each ending or code in it for one more.
pub const MAX_SERIES: usize = 10_000;
const CELL_WEIGHT: usize = 4;

/// Everything one worker counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series {
    pub(crate) names: Names,
    pub(crate) cells: Table<Cell>,
    /// Refusals by [`limited_key`].
    pub(crate) limited: Table<u64>,
    /// Attempts by [`endpoint_key`].
    pub(crate) attempts: Table<Tries>,
    /// What exchanges cost, by [`cost_key`].
    pub(crate) costs: Table<Cost>,
    pub(crate) by_operation: [Times; OPERATIONS],
    pub(crate) gauges: [i64; 6],
    /// Answers whose client left, by [`DisconnectOutcome::ALL`].
    pub(crate) abandoned: [u64; DisconnectOutcome::ALL.len()],
    /// Connections refused or closed at a bound, by [`Closed::ALL`].
    pub(crate) closed: [u64; Closed::ALL.len()],
    /// How long exchanges waited for answers, by [`Wait::ALL`].
    pub(crate) waits: [Histogram<19>; Wait::ALL.len()],
    /// Connections to upstreams that were closed as a name has their address no longer.
    pub(crate) moved: u64,
    /// Label sets kept.
    pub(crate) held: usize,
    /// Observations that went to an `other` cell for want of room.
    pub(crate) folded: u64,
}

impl Series {
    /// Counts an exchange that ended.
    pub(crate) fn ended(&mut self, key: CellKey, record: &Record) {
        if let Some(times) = self.by_operation.get_mut(key.operation) {
            times.count(record);
        }
        let at = self.cell(key);
        let full = self.held >= MAX_SERIES - CELL_WEIGHT;
        let is_other = full && self.cells.find(key.other().pack()) == Some(at);
        let room = is_other || self.held < MAX_SERIES;
        let cell = self.cells.at(at);
        cell.count(record);
        let ending = Ending {
            outcome: record.outcome,
            status: Status::of(record.status),
        };
        let code = (record.outcome, record.code);
        let ended = bump(&mut cell.endings, ending, room);
        // A login that went well says so by a code, and is no failure.
        let has_no_error = record.code.is_empty() || record.outcome == Outcome::Completed;
        let coded = has_no_error.then_some(Bumped::Old);
        let coded = coded.unwrap_or_else(|| bump(&mut cell.codes, code, room));
        if !is_other {
            self.held += usize::from(ended == Bumped::New) + usize::from(coded == Bumped::New);
        }
        if ended == Bumped::NoRoom || coded == Bumped::NoRoom {
            self.folded += 1;
            let other = self.cells.place(key.other().pack());
            let cell = self.cells.at(other);
            if ended == Bumped::NoRoom {
                bump(&mut cell.endings, ending, true);
            }
            if coded == Bumped::NoRoom {
                bump(&mut cell.codes, code, true);
            }
        }
    }

    /// The place of a cell, or of its operation's `other` cell when there is no room.
    fn cell(&mut self, key: CellKey) -> usize {
        let packed = key.pack();
        if let Some(at) = self.cells.find(packed) {
            return at;
        }
        if self.held + CELL_WEIGHT > MAX_SERIES {
            self.folded += 1;
            return self.cells.place(key.other().pack());
        }
        self.held += CELL_WEIGHT;
        self.cells.place(packed)
    }

    /// The place of a limit's refusals, which exists from then on, at 0.
    pub(crate) fn limit(&mut self, workload: NameId, route: NameId, kind: Kind) -> usize {
        let key = limited_key(workload, route, kind);
        if let Some(at) = self.limited.find(key) {
            return at;
        }
        if self.held >= MAX_SERIES {
            self.folded += 1;
            let other = limited_key(NameId::OTHER, NameId::OTHER, kind);
            return self.limited.place(other);
        }
        self.held += 1;
        self.limited.place(key)
    }

    /// The place of an endpoint's attempts.
    pub(crate) fn endpoint(&mut self, backend: NameId, endpoint: NameId) -> usize {
        let key = endpoint_key(backend, endpoint);
        if let Some(at) = self.attempts.find(key) {
            return at;
        }
        if self.held >= MAX_SERIES {
            self.folded += 1;
            let other = endpoint_key(NameId::OTHER, NameId::OTHER);
            return self.attempts.place(other);
        }
        self.held += 1;
        self.attempts.place(key)
    }

    /// Takes in what another worker counted.
    pub(crate) fn absorb(&mut self, other: &Self) {
        let Self {
            names,
            cells,
            limited,
            attempts,
            costs,
            by_operation,
            gauges,
            abandoned,
            closed,
            waits,
            moved,
            held,
            folded,
        } = other;
        let names = self.names.adopt(names);
        for (key, cell) in cells.rows() {
            let key = CellKey::unpack(key);
            let key = CellKey {
                operation: key.operation,
                workload: names.here(key.workload),
                route: names.here(key.route),
                backend: names.here(key.backend),
                model: names.here(key.model),
            };
            let at = self.cells.place(key.pack());
            self.cells.at(at).absorb(cell);
        }
        for (key, count) in limited.rows() {
            let (workload, route, kind) = limited_parts(key);
            let key = limited_key(names.here(workload), names.here(route), kind);
            let at = self.limited.place(key);
            *self.limited.at(at) += count;
        }
        for (key, tries) in attempts.rows() {
            let (backend, endpoint) = endpoint_parts(key);
            let key = endpoint_key(names.here(backend), names.here(endpoint));
            let at = self.attempts.place(key);
            self.attempts.at(at).absorb(tries);
        }
        for (key, cost) in costs.rows() {
            let key = cost_key(cost_parts(key).map(|name| names.here(name)));
            let at = self.costs.place(key);
            self.costs.at(at).absorb(*cost);
        }
        for (mine, theirs) in self.by_operation.iter_mut().zip(by_operation) {
            mine.absorb(theirs);
        }
        for (mine, theirs) in self.gauges.iter_mut().zip(gauges) {
            *mine += theirs;
        }
        for (mine, theirs) in self.abandoned.iter_mut().zip(abandoned) {
            *mine += theirs;
        }
        for (mine, theirs) in self.closed.iter_mut().zip(closed) {
            *mine += theirs;
        }
        for (mine, theirs) in self.waits.iter_mut().zip(waits) {
            mine.absorb(theirs);
        }
        self.moved += moved;
        self.held = self.held.max(*held);
        self.folded += folded;
    }
}

#[cfg(test)]
mod tests;
