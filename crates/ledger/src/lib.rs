//! The ledger: usage records on disk, exactly one for each exchange.
//!
//! A crate of its own for its weight (SQLite, a Postgres client) and because it waits for disks.
//! Invariant: a row that was acknowledged survives `kill -9` and power loss; a record settled twice
//! is one row; what was open when the process died becomes *indeterminate* with bounds. A worker
//! never waits for the ledger: it is told, later, that a row is on disk.
//! A ledger that is not as it was written is not opened: nothing that was spent is ever forgotten
//! because a file was damaged, set back, or taken away.
//! Not here: what an exchange is and what it cost (`policy`), metrics and access log (`telemetry`),
//! the command that shows it all (`tollgate`).
//!
//! Amounts are whole numbers: tokens, and money in pico-units (1e-12) of its currency. What is not
//! known is NULL, never zero.

mod backup;
mod batches;
mod budgets;
mod chain;
mod check;
mod clock;
mod columns;
mod damage;
pub mod date;
mod encoded;
mod entry;
mod head_file;
mod hex;
mod id;
mod identity;
mod intake;
mod lock;
mod lost;
mod only;
mod open;
mod opens;
mod owner;
mod place;
pub mod plain_file;
mod postgres;
mod prices;
mod read;
mod repeated;
pub mod report;
mod retention;
mod row;
mod row_of;
mod salvage;
mod schema;
mod service;
mod shared;
mod spent;
mod spill;
mod stats;
mod store;
mod verify;
mod wal;
mod writer;

pub use backup::BackupError;
pub use batches::{
    Batches, BatchesError, give_up as give_up_batch, uncounted as uncounted_batches,
};
pub use budgets::Doubt;
pub use chain::{Hash, Head};
pub use clock::ClockStep;
pub use columns::{COLUMNS, Kind, Value};
pub use id::{Ids, RecordId};
pub use intake::{Intake, Ledger};
pub use lost::{Lost, LostAt};
pub use only::Only;
pub use open::{OpenError, Recovered};
pub use owner::Owner;
pub use place::FILES;
pub use policy::batch_store::Thing;
pub use postgres::{ShipError, Shipper, Shipping};
pub use prices::{KnownPrice, Prices};
pub use read::{Period, ReadError, Reader, Stored};
pub use row::{Admission, Named, Price, Progress, Settlement, State, Witnesses};
pub use salvage::{SalvageError, SalvageOutcome, Salvaged, salvage, under_new_name};
pub use service::{Defer, LedgerService};
pub use shared::{OnDurable, Options, Unavailable};
pub use spent::{Known, Spent, Subject, Unsure};
pub use stats::Stats;
pub use verify::{Expected, Finding, Verified};
pub use wal::Tail;
