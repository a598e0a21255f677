//! What a worker counts: the series themselves.
//!
//! One cell holds everything about exchanges that share operation, workload, route, backend and
//! model; the metrics are projections of cells.
//! Invariant: at most [`MAX_SERIES`] label sets are kept; what comes past that is counted in the
//! cell `other` of its operation, and the folding itself is counted.
//! Not here: where label texts come from (`view`), how a projection is written (`render`).

use policy::attempt::Failure;
use policy::limit::Kind;
use policy::operation::Operation;
use policy::record::{Count, Outcome, Record};

use crate::histogram::{FIRST_TOKEN, Histogram, OWN, PER_TOKEN, REQUEST, TOKENS, WAIT};
use crate::names::{NameId, Names};
use crate::table::Table;

/// Most label sets that a worker keeps beside the `other` cells, of which there is one for each
/// operation. A cell stands for four (its histograms), each ending or code in it for one more.
pub const MAX_SERIES: usize = 10_000;
const CELL_WEIGHT: usize = 4;
/// Operations, and one more for "not known".
pub(crate) const OPERATIONS: usize = Operation::ALL.len() + 1;

/// Everything one worker counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series {
    pub(crate) names: Names,
    pub(crate) cells: Table<Cell>,
    /// Refusals by [`limited_key`].
    pub(crate) limited: Table<u64>,
    /// Attempts by [`endpoint_key`].
    pub(crate) attempts: Table<Tries>,
    pub(crate) by_operation: [Times; OPERATIONS],
    pub(crate) gauges: [i64; 4],
    /// Label sets kept.
    pub(crate) held: usize,
    /// Observations that went to an `other` cell for want of room.
    pub(crate) folded: u64,
}

/// Durations of the gate's own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    pub(crate) own: Histogram<27>,
    pub(crate) first_byte: Histogram<17>,
    pub(crate) upstream: Histogram<17>,
}

/// Exchanges that share labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pub(crate) endings: Vec<(Ending, u64)>,
    pub(crate) codes: Vec<((Outcome, &'static str), u64)>,
    /// Prompt and completion by witness, in the order of [`SOURCES`].
    pub(crate) tokens: [[u64; 3]; 2],
    pub(crate) cached: u64,
    pub(crate) reasoning: u64,
    pub(crate) invalid: u64,
    pub(crate) usage: [Histogram<14>; 2],
    pub(crate) duration: Histogram<14>,
    pub(crate) first_token: Histogram<16>,
    pub(crate) per_token: Histogram<13>,
}

/// Witnesses of a count.
pub(crate) const SOURCES: [&str; 3] = ["reported", "counted", "estimated"];

/// How an exchange ended, as labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    pub(crate) status: Status,
}

/// A status as a label: one of a fixed set, whatever an upstream may invent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Status(u16);

impl Status {
    pub(crate) fn of(status: u16) -> Self {
        match status {
            0
            | 200..=206
            | 301..=304
            | 307
            | 308
            | 400..=417
            | 421..=426
            | 429
            | 431
            | 451
            | 499..=504
            | 507
            | 529 => Self(status),
            100..=599 => Self(status / 100),
            _ => Self(9),
        }
    }

    pub(crate) fn label(self) -> String {
        match self.0 {
            0 => String::new(),
            9 => "other".to_owned(),
            class @ 1..=5 => format!("{class}xx"),
            known => known.to_string(),
        }
    }
}

/// What a cell is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CellKey {
    /// Index into [`Operation::ALL`], or one past it for "not known".
    pub(crate) operation: usize,
    pub(crate) workload: NameId,
    pub(crate) route: NameId,
    pub(crate) backend: NameId,
    pub(crate) model: NameId,
}

impl CellKey {
    fn pack(self) -> u64 {
        let names = [self.workload, self.route, self.backend, self.model];
        names
            .iter()
            .fold(self.operation as u64, |key, name| key << 15 | name.bits())
    }

    pub(crate) fn unpack(key: u64) -> Self {
        let name = |shift: u32| NameId::from_bits(key >> shift);
        Self {
            operation: usize::try_from(key >> 60).unwrap_or(OPERATIONS - 1),
            workload: name(45),
            route: name(30),
            backend: name(15),
            model: name(0),
        }
    }

    fn other(self) -> Self {
        let other = NameId::OTHER;
        Self {
            operation: self.operation,
            workload: other,
            route: other,
            backend: other,
            model: other,
        }
    }
}

/// Position of an operation in tables.
pub(crate) fn operation_index(operation: Option<Operation>) -> usize {
    match operation {
        Some(Operation::Chat) => 0,
        Some(Operation::Completions) => 1,
        Some(Operation::Responses) => 2,
        Some(Operation::Embeddings) => 3,
        Some(Operation::Models) => 4,
        Some(Operation::PassThrough) => 5,
        None => OPERATIONS - 1,
    }
}

/// The label of an operation's position.
pub(crate) fn operation_label(index: usize) -> &'static str {
    Operation::ALL.get(index).map_or("", |o| o.as_str())
}

/// Key of a limit's refusals.
pub(crate) fn limited_key(workload: NameId, route: NameId, kind: Kind) -> u64 {
    let kind = match kind {
        Kind::Requests => 0,
        Kind::Tokens => 1,
    };
    kind << 30 | workload.bits() << 15 | route.bits()
}

/// Workload, route and kind of a key.
pub(crate) fn limited_parts(key: u64) -> (NameId, NameId, Kind) {
    let kind = if key >> 30 == 0 {
        Kind::Requests
    } else {
        Kind::Tokens
    };
    (NameId::from_bits(key >> 15), NameId::from_bits(key), kind)
}

/// Key of an endpoint's attempts.
pub(crate) fn endpoint_key(backend: NameId, endpoint: NameId) -> u64 {
    backend.bits() << 15 | endpoint.bits()
}

/// Backend and endpoint of a key.
pub(crate) fn endpoint_parts(key: u64) -> (NameId, NameId) {
    (NameId::from_bits(key >> 15), NameId::from_bits(key))
}

/// Attempts at one endpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tries {
    /// By result, in the order of [`RESULTS`].
    pub(crate) by_result: [u64; RESULTS.len()],
    pub(crate) retried: u64,
}

/// Results of an attempt as labels.
pub(crate) const RESULTS: [&str; 14] = [
    "1xx",
    "2xx",
    "3xx",
    "4xx",
    "5xx",
    "other",
    "upstream_unresolved",
    "upstream_unreachable",
    "upstream_connect_timeout",
    "upstream_tls_error",
    "upstream_timeout",
    "upstream_reset",
    "upstream_malformed",
    "upstream_unavailable",
];

/// Position of a result in [`RESULTS`].
pub(crate) fn result_index(result: Result<u16, Failure>) -> usize {
    match result {
        Ok(status) | Err(Failure::Status(status)) => match status / 100 {
            class @ 1..=5 => usize::from(class) - 1,
            _ => 5,
        },
        Err(Failure::Resolve) => 6,
        Err(Failure::Connect) => 7,
        Err(Failure::ConnectTimeout) => 8,
        Err(Failure::Tls) => 9,
        Err(Failure::FirstByteTimeout) => 10,
        Err(Failure::Reset) => 11,
        Err(Failure::Malformed) => 12,
        Err(Failure::Exhausted) => 13,
    }
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
        let coded = record.code.is_empty().then_some(Bumped::Old);
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
        let names = self.names.adopt(&other.names);
        for (key, cell) in other.cells.rows() {
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
        for (key, count) in other.limited.rows() {
            let (workload, route, kind) = limited_parts(key);
            let key = limited_key(names.here(workload), names.here(route), kind);
            let at = self.limited.place(key);
            *self.limited.at(at) += count;
        }
        for (key, tries) in other.attempts.rows() {
            let (backend, endpoint) = endpoint_parts(key);
            let key = endpoint_key(names.here(backend), names.here(endpoint));
            let at = self.attempts.place(key);
            self.attempts.at(at).absorb(tries);
        }
        for (mine, theirs) in self.by_operation.iter_mut().zip(&other.by_operation) {
            mine.absorb(theirs);
        }
        for (mine, theirs) in self.gauges.iter_mut().zip(other.gauges) {
            *mine += theirs;
        }
        self.held = self.held.max(other.held);
        self.folded += other.folded;
    }
}

impl Times {
    fn count(&mut self, record: &Record) {
        if let Some(own) = record.own {
            self.own.time(&OWN, own);
        }
        if let Some(first_byte) = record.first_byte {
            self.first_byte.time(&WAIT, first_byte);
        }
        if let Some(upstream) = record.upstream {
            self.upstream.time(&WAIT, upstream);
        }
    }

    pub(crate) fn absorb(&mut self, other: &Self) {
        self.own.absorb(&other.own);
        self.first_byte.absorb(&other.first_byte);
        self.upstream.absorb(&other.upstream);
    }
}

impl Cell {
    /// Everything but endings and codes. A refused call used nothing: its estimate is no usage.
    fn count(&mut self, record: &Record) {
        if record.outcome == Outcome::Refused {
            return;
        }
        let tokens = &record.tokens;
        for (i, count) in [tokens.prompt, tokens.completion].into_iter().enumerate() {
            let (source, n) = match count {
                Count::Unknown => continue,
                Count::Reported(n) => (0, n),
                Count::Counted(n) => (1, n),
                Count::Estimated(n) => (2, n),
            };
            let total = &mut self.tokens[i][source];
            *total = total.saturating_add(n);
            self.usage[i].observe(&TOKENS, n);
        }
        self.cached = self.cached.saturating_add(tokens.cached.unwrap_or(0));
        self.reasoning = self.reasoning.saturating_add(tokens.reasoning.unwrap_or(0));
        self.invalid += u64::from(tokens.invalid);
        if record.backend.is_none() {
            return;
        }
        self.duration.time(&REQUEST, record.duration);
        let Some(first) = record.first_byte.filter(|_| record.streamed) else {
            return;
        };
        self.first_token.time(&FIRST_TOKEN, first);
        let after_first = tokens.completion.tokens().unwrap_or(0).saturating_sub(1);
        if let (Ok(n @ 1..), Outcome::Completed) = (u32::try_from(after_first), record.outcome) {
            let rest = record.duration.saturating_sub(first);
            self.per_token.time(&PER_TOKEN, rest / n);
        }
    }

    pub(crate) fn absorb(&mut self, other: &Self) {
        for (ending, n) in &other.endings {
            add(&mut self.endings, *ending, *n);
        }
        for (code, n) in &other.codes {
            add(&mut self.codes, *code, *n);
        }
        for (mine, theirs) in self.tokens.iter_mut().zip(&other.tokens) {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine = mine.saturating_add(*theirs);
            }
        }
        self.cached = self.cached.saturating_add(other.cached);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
        self.invalid += other.invalid;
        for (mine, theirs) in self.usage.iter_mut().zip(&other.usage) {
            mine.absorb(theirs);
        }
        self.duration.absorb(&other.duration);
        self.first_token.absorb(&other.first_token);
        self.per_token.absorb(&other.per_token);
    }
}

impl Tries {
    pub(crate) fn absorb(&mut self, other: &Self) {
        for (mine, theirs) in self.by_result.iter_mut().zip(&other.by_result) {
            *mine += theirs;
        }
        self.retried += other.retried;
    }
}

#[derive(PartialEq, Eq)]
enum Bumped {
    Old,
    New,
    NoRoom,
}

fn bump<K: PartialEq>(counts: &mut Vec<(K, u64)>, key: K, room: bool) -> Bumped {
    if let Some((_, n)) = counts.iter_mut().find(|(k, _)| *k == key) {
        *n += 1;
        return Bumped::Old;
    }
    if !room {
        return Bumped::NoRoom;
    }
    counts.push((key, 1));
    Bumped::New
}

fn add<K: PartialEq>(counts: &mut Vec<(K, u64)>, key: K, n: u64) {
    match counts.iter_mut().find(|(k, _)| *k == key) {
        Some((_, mine)) => *mine += n,
        None => counts.push((key, n)),
    }
}

#[cfg(test)]
mod tests;
