//! The result file: its schema is stable, its figures are `{median, min, max}` over rounds.
//!
//! Invariant: a figure that was not measured is absent, never 0.
//! Not here: how it looks in a terminal (`table`).

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use experiment::statistics::Spread;
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::bench::{Problem, Told};
use super::cell::Cell;
use super::scenario::{Reference, Scenario};
use super::shape::{Shaped, shapes};
use crate::host::machine::Machine;

#[cfg(test)]
mod tests;

/// Name and version of the schema.
pub(crate) const SCHEMA: &str = "tollgate.race/1";
/// A row in which more than this share of the requests failed is not to be trusted.
const FAILED_SHARE: f64 = 0.01;

/// Figures relative to `direct` in the same round: added name, name of the absolute figure.
const ADDED: [(&str, &str); 8] = [
    ("added_us.p50", "latency_us.p50"),
    ("added_us.p90", "latency_us.p90"),
    ("added_us.p99", "latency_us.p99"),
    ("added_us.p999", "latency_us.p999"),
    ("first_byte_added_us.p50", "first_byte_us.p50"),
    ("first_byte_added_us.p90", "first_byte_us.p90"),
    ("first_byte_added_us.p99", "first_byte_us.p99"),
    ("first_byte_added_us.p999", "first_byte_us.p999"),
];

/// A whole race.
pub(crate) struct RaceResult {
    pub(crate) machine: Machine,
    pub(crate) subjects: Vec<Told>,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) rows: Vec<Row>,
    pub(crate) seconds: f64,
    pub(crate) rounds: u16,
    /// So many processes sent the load.
    pub(crate) load_processes: u16,
    /// What was published of others.
    pub(crate) references: Vec<Reference>,
}

/// One subject in one scenario.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) subject: String,
    pub(crate) scenario: String,
    pub(crate) problem: Option<String>,
    /// The problem was foretold by the subject's manifest, or the subject is not installed.
    known: bool,
    pub(crate) rounds: usize,
    pub(crate) figures: BTreeMap<&'static str, Spread>,
    pub(crate) failures: BTreeMap<String, u64>,
    /// Calls by what became of their count, where the subject counts.
    pub(crate) counts: BTreeMap<String, u64>,
    /// Rounds by who was the limit.
    pub(crate) limits: BTreeMap<&'static str, usize>,
    pub(crate) rig_was_limit: bool,
    exact: bool,
}

/// With whom a subject is compared, in the same rounds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bases<'a> {
    /// No gateway.
    pub(crate) direct: Option<&'a [Cell]>,
    /// The same without its meter.
    pub(crate) unmetered: Option<&'a [Cell]>,
}

impl Row {
    pub(crate) fn new(
        subject: &str,
        scenario: &str,
        cells: &[Cell],
        bases: Bases<'_>,
        problem: Option<Problem>,
    ) -> Self {
        let mut samples: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
        let (mut failures, mut limits) = (BTreeMap::new(), BTreeMap::new());
        let mut counts = BTreeMap::new();
        for cell in cells {
            for (&name, &value) in &cell.figures {
                samples.entry(name).or_default().push(value);
            }
            for (name, value) in added(cell, bases.direct)
                .into_iter()
                .chain(over_unmetered(cell, bases.unmetered))
            {
                samples.entry(name).or_default().push(value);
            }
            for (kind, count) in &cell.failures {
                *failures.entry(kind.clone()).or_default() += count;
            }
            for (result, count) in &cell.counts {
                *counts.entry(result.clone()).or_default() += count;
            }
            *limits.entry(cell.limit.word()).or_default() += 1;
        }
        let figures: BTreeMap<_, _> = samples
            .into_iter()
            .filter_map(|(name, values)| Some((name, Spread::of(values)?)))
            .collect();
        Self {
            subject: subject.to_owned(),
            scenario: scenario.to_owned(),
            known: problem.as_ref().is_some_and(|problem| problem.known),
            problem: problem
                .map(|problem| problem.says)
                .or_else(|| too_many_failed(cells)),
            rounds: cells.len(),
            figures,
            failures,
            counts,
            limits,
            rig_was_limit: cells.iter().any(|cell| cell.limit.is_rig()),
            exact: cells.iter().all(|cell| cell.exact),
        }
    }

    /// The median of a figure.
    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|spread| spread.median)
    }

    fn to_json(&self) -> Value {
        let mut row = Map::new();
        row.insert("subject".into(), json!(self.subject));
        row.insert("scenario".into(), json!(self.scenario));
        let status = if self.problem.is_some() {
            "failed"
        } else {
            "measured"
        };
        row.insert("status".into(), json!(status));
        row.insert("problem".into(), json!(self.problem));
        row.insert("known_problem".into(), json!(self.known));
        row.insert("rounds".into(), json!(self.rounds));
        row.insert("failures".into(), json!(self.failures));
        row.insert("counts".into(), json!(self.counts));
        row.insert("limits".into(), json!(self.limits));
        row.insert(
            "cpu_clock".into(),
            json!(if self.exact { "scheduler" } else { "ticks" }),
        );
        for (name, spread) in &self.figures {
            insert(
                &mut row,
                name,
                json!({ "median": spread.median, "min": spread.min, "max": spread.max }),
            );
        }
        Value::Object(row)
    }
}

impl RaceResult {
    pub(crate) const fn new(
        machine: Machine,
        subjects: Vec<Told>,
        scenarios: Vec<Scenario>,
        rows: Vec<Row>,
        seconds: f64,
        rounds: u16,
    ) -> Self {
        Self {
            machine,
            subjects,
            scenarios,
            rows,
            seconds,
            rounds,
            load_processes: 1,
            references: Vec::new(),
        }
    }

    /// With what was published of scenarios that were measured.
    pub(crate) fn beside(mut self, references: Vec<Reference>) -> Self {
        let is_measured = |of: &Reference| self.scenarios.iter().any(|one| one.name == of.scenario);
        self.references = references.into_iter().filter(is_measured).collect();
        self
    }

    /// With the load sent by so many processes.
    pub(crate) const fn sent_by(mut self, processes: u16) -> Self {
        self.load_processes = processes;
        self
    }

    /// The rows of one scenario, those without figures last.
    pub(crate) fn rows_of(&self, scenario: &str) -> Vec<&Row> {
        let rows = self.rows.iter().filter(|row| row.scenario == scenario);
        let mut rows: Vec<&Row> = rows.collect();
        rows.sort_by_key(|row| row.rounds == 0);
        rows
    }

    /// Whether every row that was asked for is to be trusted.
    pub(crate) fn trusted(&self) -> bool {
        let sound = |row: &Row| row.problem.is_none() || row.known;
        !self.subjects.iter().any(|told| told.failed) && self.rows.iter().all(sound)
    }

    pub(crate) fn to_json(&self) -> String {
        let at = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        let whole = Whole {
            schema: SCHEMA,
            finished_at_unix_seconds: at,
            trusted: self.trusted(),
            seconds: self.seconds,
            rounds: self.rounds,
            load_processes: self.load_processes,
            machine: &self.machine,
            subjects: &self.subjects,
            scenarios: &self.scenarios,
            rows: self.rows.iter().map(Row::to_json).collect(),
            shapes: shapes(self),
            references: &self.references,
        };
        serde_json::to_string_pretty(&whole).expect("maps with text keys and finite numbers")
    }
}

#[derive(Serialize)]
struct Whole<'a> {
    schema: &'a str,
    finished_at_unix_seconds: u64,
    trusted: bool,
    seconds: f64,
    rounds: u16,
    load_processes: u16,
    machine: &'a Machine,
    subjects: &'a [Told],
    scenarios: &'a [Scenario],
    rows: Vec<Value>,
    shapes: Vec<Shaped>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    references: &'a [Reference],
}

/// The cell of another subject in the same round.
fn same_round<'a>(cell: &Cell, base: Option<&'a [Cell]>) -> Option<&'a Cell> {
    let mut cells = base.into_iter().flatten();
    cells.find(|base| base.round == cell.round)
}

/// What the subject added to `direct` in the same round.
fn added(cell: &Cell, direct: Option<&[Cell]>) -> Vec<(&'static str, f64)> {
    let Some(base) = same_round(cell, direct) else {
        return Vec::new();
    };
    let difference = |&(name, of): &(&'static str, &'static str)| {
        Some((name, cell.figures.get(of)? - base.figures.get(of)?))
    };
    ADDED.iter().filter_map(difference).collect()
}

/// CPU for a call against that of the same subject without its meter, in the same round.
fn over_unmetered(cell: &Cell, unmetered: Option<&[Cell]>) -> Option<(&'static str, f64)> {
    let of = |cell: &Cell| cell.figures.get("cpu_us_per_request").copied();
    let base = of(same_round(cell, unmetered)?).filter(|us| *us > 0.0)?;
    Some(("over_unmetered", of(cell)? / base))
}

fn too_many_failed(cells: &[Cell]) -> Option<String> {
    let sum = |name: &str| {
        cells
            .iter()
            .filter_map(|cell| cell.figures.get(name))
            .sum::<f64>()
    };
    let (answered, failed) = (sum("answered"), sum("failed"));
    let share = failed / (answered + failed);
    (share > FAILED_SHARE).then(|| format!("{:.1} % of the requests failed", share * 100.0))
}

/// Inserts at a dotted name: `a.b` is member `b` of member `a`.
fn insert(into: &mut Map<String, Value>, name: &str, value: Value) {
    match name.split_once('.') {
        None => {
            into.insert(name.into(), value);
        }
        Some((outer, inner)) => {
            let member = into
                .entry(outer)
                .or_insert_with(|| Value::Object(Map::new()));
            match member {
                Value::Object(member) => insert(member, inner, value),
                _ => debug_assert!(false, "{outer} is both a figure and a group of figures"),
            }
        }
    }
}
