//! What the gate leaves behind, as events: records from the access log, rows from the ledger, levels from the gate.
//!
//! Invariant: the gate waits for none of it. Records that find no room are counted and not shown.
//! Not here: what is made of them (`view`).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use admin::{Budget, Limit};
use ledger::{Reader, Stored};
use rustix::fs::OFlags;
use serde::Deserialize;
use telemetry::AccessLog;
use tollgate::embedded::EmbeddedGate;

use super::view::{Call, Ending, Event, Level, Settled, Tokens};

/// Batches of records that may wait.
const BATCHES: usize = 64;
/// Rows read at a look. When more came, those before the last so many are not shown.
const ROWS: usize = 1_000;

/// The demo's access log: to a file, if one is named, and to the feed.
struct Sink {
    file: Option<File>,
    to: SyncSender<Vec<u8>>,
    missed: Arc<AtomicU64>,
}

impl Write for Sink {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if self.to.try_send(lines.to_vec()).is_err() {
            let n = lines.iter().filter(|byte| **byte == b'\n').count() as u64;
            self.missed.fetch_add(n, Ordering::Relaxed);
        }
        // The feed has them: to fail would have the log write them once more.
        if let Some(file) = &mut self.file
            && let Err(error) = file.write_all(lines)
        {
            tracing::warn!(%error, "the access log's file cannot be written, and gets no more lines");
            self.file = None;
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The other end.
pub(crate) struct Feed {
    records: Receiver<Vec<u8>>,
    missed: Arc<AtomicU64>,
    notes: Receiver<String>,
    ledger: PathBuf,
    reader: Option<Reader>,
    last: i64,
}

impl Feed {
    /// Starts an access log that feeds it, and appends to this file if one is named.
    pub(crate) fn start(
        file: Option<&Path>,
        ledger: PathBuf,
        notes: Receiver<String>,
    ) -> Result<(AccessLog, Self), String> {
        let file = file.map(|path| {
            let mut open = OpenOptions::new();
            // A pipe that nobody reads is an error, and nothing to wait for.
            let flags = OFlags::NONBLOCK.bits().cast_signed();
            open.append(true).create(true).mode(0o640);
            let open = open.custom_flags(flags).open(path);
            open.map_err(|e| format!("cannot write the access log to {}: {e}", path.display()))
        });
        let (to, records) = sync_channel(BATCHES);
        let missed = Arc::new(AtomicU64::new(0));
        let sink = Sink {
            file: file.transpose()?,
            to,
            missed: Arc::clone(&missed),
        };
        let log = AccessLog::handed(Box::new(sink))
            .map_err(|error| format!("cannot start the access log: {error}"))?;
        let feed = Self {
            records,
            missed,
            notes,
            ledger,
            reader: None,
            last: 0,
        };
        Ok((log, feed))
    }

    /// What happened since the last look, and how things stand; `open` calls. It waits for nothing: who is given up while
    /// it holds events has lost them.
    pub(crate) fn look(&mut self, gate: &EmbeddedGate, open: i64) -> Vec<Event> {
        let mut events = self.rest();
        let limits = gate.limits().into_iter().filter_map(of_limit);
        let budgets = gate.budgets().into_iter().filter_map(of_budget);
        events.push(Event::Levels(limits.chain(budgets).collect()));
        events.push(Event::Open(u64::try_from(open).unwrap_or_default()));
        events
    }

    /// What happened since the last look.
    pub(crate) fn rest(&mut self) -> Vec<Event> {
        let mut events: Vec<Event> = self.notes.try_iter().map(Event::Noted).collect();
        for batch in self.records.try_iter() {
            let lines = batch.split(|byte| *byte == b'\n');
            let records = lines.filter_map(|line| serde_json::from_slice::<Record>(line).ok());
            events.extend(records.map(|record| Event::Ended(record.call())));
        }
        events.push(Event::Missed(self.missed.load(Ordering::Relaxed)));
        events.extend(self.rows().iter().map(|row| Event::Settled(settled(row))));
        events
    }

    /// Rows since the last look. A ledger that cannot be read at the moment has none.
    fn rows(&mut self) -> Vec<Stored> {
        if self.reader.is_none() {
            self.reader = Reader::open(&self.ledger).ok();
        }
        let Some(reader) = &self.reader else {
            return Vec::new();
        };
        let head = reader.head().map_or(self.last, |head| head.seq);
        let after = self.last.max(head.saturating_sub(ROWS as i64));
        let rows = reader.after(after, ROWS).unwrap_or_default();
        self.last = rows.last().map_or(self.last, |row| row.seq);
        rows
    }
}

/// A line of the access log: docs/metrics.md lists its fields.
#[derive(Debug, Deserialize)]
struct Record {
    ts: String,
    request_id: String,
    workload: Option<String>,
    backend: Option<String>,
    model: Option<String>,
    model_sent: Option<String>,
    status: Option<u16>,
    outcome: String,
    code: Option<String>,
    limited: Option<String>,
    #[serde(default)]
    streamed: bool,
    prompt_tokens: Option<u64>,
    prompt_source: Option<String>,
    completion_tokens: Option<u64>,
    duration_us: Option<u64>,
    first_byte_us: Option<u64>,
    own_us: Option<u64>,
}

impl Record {
    fn call(self) -> Call {
        let ending = match (self.outcome.as_str(), self.streamed) {
            ("completed", true) => Ending::Streamed,
            ("completed", false) => Ending::Whole,
            ("refused", _) => Ending::Refused,
            ("aborted", _) => Ending::Left,
            _ => Ending::Failed,
        };
        let is_reported = self.prompt_source.as_deref() == Some("reported");
        let engine = match (self.prompt_tokens, self.completion_tokens) {
            (Some(input), Some(output)) if is_reported => Some(Tokens { input, output }),
            _ => None,
        };
        let mut why = self.code.unwrap_or_default();
        // A call that is larger than a whole limit has another code.
        if let (Some(limited), "rate_limit_exceeded") = (&self.limited, &*why) {
            why = format!("over its limit of {limited}");
        }
        let micros = |us: Option<u64>| us.map(Duration::from_micros);
        Call {
            id: self.request_id,
            at: ended(&self.ts, self.duration_us.unwrap_or_default()),
            who: self.workload.unwrap_or_default(),
            to: self.backend.unwrap_or_default(),
            model: self.model_sent.or(self.model).unwrap_or_default(),
            status: self.status.unwrap_or_default(),
            ending,
            why,
            first_byte: micros(self.first_byte_us),
            took: micros(self.duration_us),
            own: micros(self.own_us),
            engine,
            gate: None,
            cost_pico: None,
        }
    }
}

/// The time of day at which a call ended that began then, and took so long; empty where it cannot be told.
fn ended(began: &str, took_us: u64) -> String {
    let part = |at: usize, digits: usize| began.get(at..at + digits)?.parse::<u64>().ok();
    let parts = (part(11, 2), part(14, 2), part(17, 2), part(20, 3));
    let (Some(hours), Some(minutes), Some(seconds), Some(millis)) = parts else {
        return String::new();
    };
    let began_s = hours * 3_600 + minutes * 60 + seconds;
    let s = began_s.saturating_add(took_us.saturating_add(millis * 1_000) / 1_000_000);
    format!("{:02}:{:02}:{:02}", s / 3_600 % 24, s / 60 % 60, s % 60)
}

fn settled(row: &Stored) -> Settled {
    let number = |column| row.number(column).map(i64::unsigned_abs);
    let both = |input, output| match (number(input), number(output)) {
        (Some(input), Some(output)) => Some(Tokens { input, output }),
        _ => None,
    };
    Settled {
        id: row.text("request_id").unwrap_or_default().to_owned(),
        who: row.text("workload").unwrap_or_default().to_owned(),
        engine: both("prompt_reported", "completion_reported"),
        gate: both("prompt_counted", "completion_counted"),
        cost_pico: row.number("cost_pico"),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a bar has fewer places than a number"
)]
fn of_limit(limit: Limit) -> Option<Level> {
    let full_in = limit.full_in_seconds.unwrap_or_default();
    Some(Level {
        name: limit.workload,
        what: limit.unit.to_owned(),
        left: limit.remaining? as f64,
        of: limit.burst as f64,
        refills: if full_in > 0.0 {
            format!("full in {:.0} s", full_in.ceil())
        } else {
            String::new()
        },
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a bar has fewer places than a number"
)]
fn of_budget(budget: Budget) -> Option<Level> {
    let unit = if budget.currency.is_some() { 1e9 } else { 1.0 };
    Some(Level {
        name: budget.name,
        what: budget.currency.unwrap_or_else(|| budget.unit.to_owned()),
        left: budget.remaining? as f64 / unit,
        of: budget.amount as f64 / unit,
        refills: format!("each {}", budget.period),
    })
}

#[cfg(test)]
mod tests;
