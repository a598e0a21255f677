//! The ledger of a running gate: the open file, the copy that goes to the fleet's Postgres, and a handle for each
//! worker, which enters, notes and settles its exchanges.
//!
//! Invariant: no two rows of two starts have one name; what a worker enters has its snapshot's names, and no worker
//! waits for the disk; closing waits for every row, within its patience.
//! Not here: the queue (`intake`), when a call is entered, settled and counted, and what the log says (the host).

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use policy::book::{Book, Entry, Held, Told};
use policy::record::Record;
use policy::snapshot::Snapshot;

use crate::id::{Ids, RecordId};
use crate::intake::{Intake, Ledger};
use crate::open::{OpenError, Recovered};
use crate::postgres::{ShipError, Shipper, Shipping};
use crate::row::{Admission, PendingRow, Progress, Settlement};
use crate::shared::Options;

/// How long the disk may take for the last rows.
const CLOSE_WITHIN: Duration = Duration::from_secs(30);

/// An open ledger and its copy's way to Postgres.
#[derive(Debug)]
pub struct LedgerService {
    ledger: Ledger,
    shipper: Option<Shipper>,
    /// Differs from start to start, so that no two rows have one name.
    process: u64,
}

impl LedgerService {
    /// Opens the ledger, and gives what the last process left.
    ///
    /// # Errors
    /// As [`Ledger::open`].
    pub fn open(options: Options) -> Result<(Self, Recovered), OpenError> {
        let (ledger, recovered) = Ledger::open(options)?;
        let service = Self {
            ledger,
            shipper: None,
            // The system's chance is in it.
            process: RandomState::new().hash_one(std::process::id()),
        };
        Ok((service, recovered))
    }

    /// Copies rows to this server from now on.
    ///
    /// # Errors
    /// As [`Shipper::start`].
    pub fn ship_to(&mut self, server: &str) -> Result<(), ShipError> {
        self.shipper = Some(Shipper::start(&self.ledger, server)?);
        Ok(())
    }

    /// The ledger itself.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// How the copying goes, where rows are copied.
    #[must_use]
    pub fn shipping(&self) -> Option<Shipping> {
        self.shipper.as_ref().map(Shipper::shipping)
    }

    /// Keeps what a snapshot's models cost, and the calls that are not read, beside the rows that will
    /// name it.
    pub fn keep_prices(&self, snapshot: &Snapshot) {
        let of_models = snapshot.prices.iter().map(|(_, _, price)| price);
        let listed = snapshot.routes.iter().flat_map(|route| &route.unread);
        let of_calls = listed.filter_map(|call| call.price.as_ref());
        self.ledger.intake().prices(of_models.chain(of_calls));
    }

    /// A worker's handle. With `defer`, rows that are counted wait for their counts there.
    #[must_use]
    pub fn handle(&self, worker: usize, defer: Option<Defer>) -> Box<dyn Book + Send> {
        let ids = Ids::new(self.process, u16::try_from(worker).unwrap_or(u16::MAX));
        let intake = self.ledger.intake();
        Box::new(LedgerHandle { intake, ids, defer })
    }

    /// Writes what is left; every worker has to have ended. `false` when the disk did not take it all.
    pub fn close(&self) -> bool {
        self.ledger.close(CLOSE_WITHIN)
    }

    /// Ends the copying, once the ledger is closed.
    pub fn stop_shipping(self) {
        if let Some(shipper) = self.shipper {
            shipper.stop();
        }
    }
}

/// Where a row waits for the gate's own count of the exchange with this tally; the row comes back where nobody
/// counts any more.
pub type Defer = Box<dyn Fn(u64, Box<PendingRow>) -> Result<(), Box<PendingRow>> + Send>;

/// Enters one worker's exchanges.
struct LedgerHandle {
    intake: Intake,
    ids: Ids,
    defer: Option<Defer>,
}

impl Book for LedgerHandle {
    fn admit(&mut self, of: &Snapshot, record: &Record, held: Held, told: Option<Told>) -> Entry {
        let id = self.ids.next(record.started_unix_ms);
        let workload = record.workload.and_then(|id| of.workload(id));
        let route = record.route.and_then(|id| of.route(id));
        let admission = Admission {
            id,
            started_unix_ms: record.started_unix_ms,
            request_id: record.id.clone(),
            trace_id: record.trace.map(|trace| trace.id_text()),
            workload: name(workload.map(|workload| &workload.name)),
            budget_group: name(record.workload.and_then(|id| of.budgets.group(id))),
            route: name(route.map(|route| &route.name)),
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
        let (Some(defer), Some(tally)) = (&self.defer, entry.tally) else {
            return self.intake.settle(row);
        };
        let price = policy::record::charge(of, record).map(|charge| Arc::clone(charge.price));
        if let Err(pending) = defer(tally, Box::new(PendingRow { row, price })) {
            self.intake.settle(pending.row);
        }
    }

    fn withdraw(&mut self, entry: Entry) {
        self.intake.withdraw(RecordId(entry.id));
    }
}

fn name(name: Option<&Arc<str>>) -> Option<Box<str>> {
    name.map(|name| (**name).into())
}
