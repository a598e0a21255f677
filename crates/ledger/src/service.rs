//! The ledger of a running gate: the open file, the copy that goes to the fleet's Postgres, and a handle for each
//! worker, which enters, notes and settles its exchanges.
//!
//! Invariant: no two rows of two starts have one name; what a worker enters has its snapshot's names, and no worker
//! waits for the disk; closing waits for every row, within its patience.
//! Not here: the queue (`intake`), when a call is entered, settled and counted, and what the log says (the host).

use std::hash::{BuildHasher, RandomState};

use policy::record::Record;
use policy::snapshot::Snapshot;
use policy::usage_ledger::{Entry, Estimate, OnDurable, UsageLedger};

use crate::entry::Opening;
use crate::id::{Ids, RecordId};
use crate::intake::{CLOSE_WITHIN, Intake, Ledger};
use crate::open::{OpenError, Recovered};
use crate::postgres::{ShipError, Shipper, Shipping};
use crate::row::{Progress, Settlement};
use crate::shared::Options;

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
        self.ledger.intake().prices(snapshot.prices.all().iter());
    }

    /// A worker's handle. With `defer`, rows that are counted wait for their counts there.
    #[must_use]
    pub fn handle(&self, worker: usize, defer: Option<Defer>) -> Box<dyn UsageLedger + Send> {
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
pub type Defer = Box<dyn Fn(u64, Box<Settlement>) -> Result<(), Box<Settlement>> + Send>;

/// Enters one worker's exchanges.
struct LedgerHandle {
    intake: Intake,
    ids: Ids,
    defer: Option<Defer>,
}

impl UsageLedger for LedgerHandle {
    fn admit(
        &mut self,
        of: &Snapshot,
        record: &Record,
        estimate: Estimate,
        told: Option<OnDurable>,
    ) -> Entry {
        let id = self.ids.next(record.started_unix_ms);
        let opening = Opening::of_record(id, record, estimate, of);
        match told {
            None => self.intake.open(opening),
            Some(told) => self
                .intake
                .open_durable(opening, Box::new(move |done| told(done.is_ok()))),
        }
        Entry {
            id: id.0,
            reserved: estimate.reserved,
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
        if let Err(row) = defer(tally, Box::new(row)) {
            self.intake.settle(*row);
        }
    }

    fn withdraw(&mut self, entry: Entry) {
        self.intake.withdraw(RecordId(entry.id));
    }
}
