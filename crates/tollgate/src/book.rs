//! The ledger as the gate keeps it: opened with what the configuration says, a clerk for each
//! worker, closed when all of them have ended.
//!
//! Invariant: what a worker enters has its snapshot's names; closing waits for every row.
//! Not here: when to enter and settle (`proxy`), files and rows (`ledger`), metrics (`admin`).

pub(crate) mod telling;

use std::hash::{BuildHasher, RandomState};
use std::sync::mpsc::{SendError, Sender};
use std::time::Duration;

use ledger::{Admission, Ids, Intake, Ledger, Options, Progress, RecordId, Settlement, Shipper};
use policy::book::{Book, Entry, Held, Told};
use policy::record::Record;
use policy::snapshot::Snapshot;

use crate::counting::{Note, Waiting};

/// How long the disk may take for the last rows.
const CLOSE_WITHIN: Duration = Duration::from_secs(30);

/// The open ledger and its copy's way to the fleet's Postgres.
pub(crate) struct Books {
    pub(crate) ledger: Ledger,
    pub(crate) shipper: Option<Shipper>,
    /// Differs from start to start, so that no two rows have one name.
    process: u64,
}

impl Books {
    /// Opens it, and tells of what the last process left.
    pub(crate) fn open(settings: &config::Ledger) -> Result<Self, String> {
        let options = Options {
            node: settings.node.clone(),
            keep: settings.retention,
            bytes_max: settings.bytes_max,
            ..Options::at(&settings.path)
        };
        let (ledger, recovered) =
            Ledger::open(options).map_err(|error| format!("the ledger: {error}"))?;
        let path = settings.path.display().to_string();
        telling::opened(&recovered, &path, ledger.head());
        let server = settings.postgres.as_ref().map(|secret| {
            // The parser's own words could repeat a password.
            let not_one = "ledger.postgres: the connection string is not understood; write it as \
                           postgres://user@host/database";
            let server = std::str::from_utf8(secret.expose()).map_err(|_| not_one)?;
            Shipper::start(&ledger, server).map_err(|error| match error {
                ledger::ShipError::Config(_) => not_one.to_owned(),
                ledger::ShipError::Trust(says) => format!("ledger.postgres: {says}"),
                _ => "cannot start the thread that copies the ledger to Postgres".to_owned(),
            })
        });
        Ok(Self {
            shipper: server.transpose()?,
            // The system's chance is in it.
            process: RandomState::new().hash_one(std::process::id()),
            ledger,
        })
    }

    /// Keeps what a snapshot's models cost, and the calls that are not read, beside the rows that will
    /// name it.
    pub(crate) fn keep_prices(&self, snapshot: &Snapshot) {
        let of_models = snapshot.prices.iter().map(|(_, _, price)| price);
        let listed = snapshot.routes.iter().flat_map(|route| &route.unread);
        let of_calls = listed.filter_map(|call| call.price.as_ref());
        self.ledger.intake().prices(of_models.chain(of_calls));
    }

    /// A worker's book. Rows that are counted go by way of the desk.
    pub(crate) fn clerk(&self, worker: usize, desk: Option<Sender<Note>>) -> Box<dyn Book + Send> {
        Box::new(Clerk {
            desk,
            intake: self.ledger.intake(),
            ids: Ids::new(self.process, u16::try_from(worker).unwrap_or(u16::MAX)),
        })
    }

    /// Writes what is left. Every worker has to have ended.
    pub(crate) fn close(self) {
        let path = self.ledger.path().display().to_string();
        if !self.ledger.close(CLOSE_WITHIN) {
            let why = self.ledger.intake().unavailable();
            tracing::error!(
                why = why.map(|u| u.why).unwrap_or_default(),
                "the disk did not take the ledger's last rows: they are lost, and what was admitted of them becomes indeterminate"
            );
        }
        telling::head(&path, self.ledger.head());
        if let Some(shipper) = self.shipper {
            shipper.stop();
        }
    }
}

/// Enters one worker's exchanges.
struct Clerk {
    intake: Intake,
    desk: Option<Sender<Note>>,
    ids: Ids,
}

impl Book for Clerk {
    fn admit(&mut self, of: &Snapshot, record: &Record, held: Held, told: Option<Told>) -> Entry {
        let id = self.ids.next(record.started_unix_ms);
        let admission = Admission {
            id,
            started_unix_ms: record.started_unix_ms,
            request_id: record.id.clone(),
            trace_id: record.trace.map(|trace| trace.id_text()),
            workload: name(
                record
                    .workload
                    .and_then(|id| of.workload(id))
                    .map(|w| &w.name),
            ),
            budget_group: name(record.workload.and_then(|id| of.budgets.group(id))),
            route: name(record.route.and_then(|id| of.route(id)).map(|r| &r.name)),
            backend: None,
            model_asked: record.model_asked.clone(),
            model_sent: record.model_sent.as_deref().map(Into::into),
            reserved: held.reserved,
            at_most: held.at_most,
        };
        match told {
            None => self.intake.admit(admission),
            Some(told) => self
                .intake
                .admit_durable(admission, move |done| told(done.is_ok())),
        }
        Entry {
            id: id.0,
            reserved: held.reserved,
            tally: None,
        }
    }

    fn progress(&mut self, entry: Entry, tokens: u64, bytes_out: u64) {
        self.intake.progress(Progress {
            id: RecordId(entry.id),
            tokens,
            bytes_out,
        });
    }

    fn settle(&mut self, entry: Entry, of: &Snapshot, record: &Record) {
        let mut row = Settlement::of(RecordId(entry.id), record, of);
        row.reserved = Some(entry.reserved);
        let (Some(desk), Some(tally)) = (&self.desk, entry.tally) else {
            return self.intake.settle(row);
        };
        let price =
            policy::price::charge(of, record).map(|charge| std::sync::Arc::clone(charge.price));
        let held = Note::Held(tally, Box::new(Waiting { row, price }));
        if let Err(SendError(Note::Held(_, held))) = desk.send(held) {
            self.intake.settle(held.row);
        }
    }

    fn withdraw(&mut self, entry: Entry) {
        self.intake.withdraw(RecordId(entry.id));
    }
}

fn name(name: Option<&std::sync::Arc<str>>) -> Option<Box<str>> {
    name.map(|name| (**name).into())
}

#[cfg(test)]
mod tests;
