//! What must hold of a run, told from outside.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use policy::record::{Gauge, Outcome, Record};

use super::Run;

/// The longest that the gate takes to notice that a client has left: it looks once a second.
const NOTICED: Duration = Duration::from_millis(1_200);

/// What happened in runs, so that a run in which nothing happens is noticed.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) records: usize,
    completed: usize,
    refused: usize,
    failed: usize,
    aborted: usize,
    retried: usize,
    abandoned: usize,
    stopped: usize,
    lost_rows: usize,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.completed += other.completed;
        self.refused += other.refused;
        self.failed += other.failed;
        self.aborted += other.aborted;
        self.retried += other.retried;
        self.abandoned += other.abandoned;
        self.stopped += other.stopped;
        self.lost_rows += other.lost_rows;
    }

    pub(super) fn is_worth_checking(&self) {
        let all = [
            self.completed,
            self.refused,
            self.failed,
            self.aborted,
            self.retried,
            self.abandoned,
            self.stopped,
            self.lost_rows,
        ];
        assert!(all.iter().all(|count| *count > 3), "{self:?}");
        assert!(self.completed > 500, "{self:?}");
    }
}

/// The first thing that does not hold.
pub(super) fn check(run: &Run) -> Result<Counts, String> {
    if let Some(wrong) = run.log.wrong.first() {
        return Err(wrong.clone());
    }
    let records = one_record_each(run)?;
    rows_are_closed_once(run, &records)?;
    for (tag, record) in &records {
        exchange(run, tag, record).map_err(|says| format!("{tag}: {says}: {record:?}"))?;
    }
    let charged: u64 = records.values().map(|record| record.tokens.sum()).sum();
    if charged != run.held {
        return Err(format!(
            "the budget holds {}, the records say {charged}",
            run.held
        ));
    }
    for gauge in [Gauge::Exchanges, Gauge::ReadsToEnd, Gauge::Streams] {
        let stands = run.facts.gauges.get(&gauge).copied().unwrap_or(0);
        if stands != 0 {
            return Err(format!("the gauge {gauge:?} stands at {stands}"));
        }
    }
    if run.exchanges + run.reading_on > 0 {
        return Err(format!(
            "{} run, {} are read on",
            run.exchanges, run.reading_on
        ));
    }
    Ok(counts(run, &records))
}

/// Every request that was sent has one record, whatever became of it.
fn one_record_each(run: &Run) -> Result<HashMap<&str, &Record>, String> {
    let mut records = HashMap::new();
    for record in &run.facts.records {
        if records.insert(&*record.id, record).is_some() {
            return Err(format!("two records of {}", record.id));
        }
    }
    for (tag, seen) in &run.log.seen {
        // A request behind the last one of a connection that closes is not read, and may be sent again.
        let is_answered = seen.status > 0;
        if is_answered && !records.contains_key(tag.as_str()) {
            return Err(format!("no record of {tag}: {seen:?}"));
        }
    }
    for tag in run.log.arrived.keys() {
        if !records.contains_key(tag.as_str()) {
            return Err(format!("no record of {tag}, which an upstream has seen"));
        }
    }
    Ok(records)
}

/// Every entry is settled or withdrawn, once; what ran has one.
fn rows_are_closed_once(run: &Run, records: &HashMap<&str, &Record>) -> Result<(), String> {
    let mut entered = HashSet::new();
    for row in run.facts.rows.values() {
        entered.insert(row.record.as_str());
        let is_closed = row.settled + row.withdrawn == 1 || row.is_lost && row.settled == 0;
        if !is_closed {
            return Err(format!("{row:?}"));
        }
        let record = records.get(row.record.as_str());
        let has_run = record.is_some_and(|record| record.attempts > 0);
        if has_run && row.is_lost {
            return Err(format!("{row:?} ran"));
        }
    }
    for (tag, record) in records {
        if record.attempts > 0 && !entered.contains(tag) {
            return Err(format!("{tag} ran without an entry"));
        }
    }
    Ok(())
}

fn exchange(run: &Run, tag: &str, record: &Record) -> Result<(), String> {
    let arrived = run.log.arrived.get(tag).map_or(&[][..], Vec::as_slice);
    let made = usize::try_from(record.attempts).unwrap_or(usize::MAX);
    // A request whose kept connection broke is seen again by the same upstream.
    if made > 4 || arrived.len() > 2 * made.max(1) {
        return Err(format!("{} requests arrived", arrived.len()));
    }
    let Some(seen) = run.log.seen.get(tag) else {
        return Ok(()); // Its client was cut with the run.
    };
    if let Some(first_byte) = seen.first_byte
        && let Some(late) = arrived.iter().find(|arrived| arrived.at > first_byte)
    {
        return Err(format!("tried again at {} after the first byte", late.host));
    }
    if let Some(left_at) = seen.left_at
        && let Some(late) = arrived
            .iter()
            .find(|arrived| arrived.at > left_at + NOTICED)
    {
        return Err(format!("tried at {} after its client left", late.host));
    }
    match record.outcome {
        Outcome::Completed if record.status == 0 => {
            return Err("completed without status".to_owned());
        }
        Outcome::Completed if seen.is_sent && seen.left_at.is_none() && !seen.is_whole => {
            return Err("completed, and its client did not get it whole".to_owned());
        }
        Outcome::Refused | Outcome::Failed if record.code.is_empty() => {
            return Err("no code".to_owned());
        }
        _ => {}
    }
    let is_own =
        !record.code.is_empty() && record.code != "upstream_cut" && record.code != "gate_stopped";
    if seen.status == 0 {
        return Ok(());
    }
    if seen.status != record.status {
        return Err(format!("its client saw status {}", seen.status));
    }
    if is_own {
        // An answer of the gate's own stands alone: nothing of an upstream's is before it.
        let is_error = seen.body.starts_with(b"{\"error\":") || !seen.is_whole;
        return if is_error {
            Ok(())
        } else {
            Err(format!("its client got no error: {seen:?}"))
        };
    }
    let Some(last) = arrived.last() else {
        return Err("an answer of nobody".to_owned());
    };
    let expected = if seen.stream && !seen.asked_usage {
        &last.visible
    } else {
        &last.body
    };
    let got = seen.body.as_slice();
    if seen.is_whole && (got != expected.as_slice() || !last.is_whole) {
        return Err(format!("{} bytes of {}", got.len(), expected.len()));
    }
    if !expected.starts_with(got) {
        return Err(format!(
            "its client got other bytes than were sent: {seen:?}"
        ));
    }
    Ok(())
}

fn counts(run: &Run, records: &HashMap<&str, &Record>) -> Counts {
    let of = |outcome| records.values().filter(|r| r.outcome == outcome).count();
    let stopped = records
        .values()
        .filter(|r| r.code == "gate_stopped")
        .count();
    assert!(run.has_stopped || stopped == 0, "stopped without a stop");
    Counts {
        records: records.len(),
        completed: of(Outcome::Completed),
        refused: of(Outcome::Refused),
        failed: of(Outcome::Failed),
        aborted: of(Outcome::Aborted),
        retried: records.values().filter(|r| r.attempts > 1).count(),
        abandoned: run.facts.abandoned,
        stopped,
        lost_rows: run.facts.rows.values().filter(|row| row.is_lost).count(),
    }
}
