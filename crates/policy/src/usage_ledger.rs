//! Where usage is written so that it outlives the process: what a host needs of a ledger.
//!
//! Invariant: an exchange that was let in is entered before its first upstream byte and settled
//! exactly once, or withdrawn because it never ran. One that was refused has no entry: a flood of
//! refusals must not fill a disk, and `Sink` counts it.
//! Not here: files and databases (`ledger`), metrics and log lines ([`crate::record::Sink`]).

use crate::record::Record;
use crate::snapshot::Snapshot;

/// What a call may come to, known before it goes upstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Estimate {
    /// Tokens estimated for it, prompt and completion.
    pub reserved: u64,
    /// The most tokens that it can come to; `None` when the call has no cap.
    pub at_most: Option<u64>,
}

/// An entry that waits to be settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The name that the ledger gave it.
    pub id: [u8; 16],
    /// Tokens estimated for it.
    pub reserved: u64,
    /// The tally whose count it is settled with; `None` when nobody counts.
    pub tally: Option<u64>,
}

/// Called once, from any thread: whether an entry is on disk.
pub type OnDurable = Box<dyn FnOnce(bool) + Send>;

/// A worker's way to the usage ledger. Nothing in it waits for a disk.
pub trait UsageLedger {
    /// Enters an exchange that was let in. With `told`, the entry must be on disk before the call
    /// runs, and `told` hears whether it is; an entry that is not never was.
    fn admit(
        &mut self,
        of: &Snapshot,
        record: &Record,
        estimate: Estimate,
        told: Option<OnDurable>,
    ) -> Entry;
    /// Notes how far it has come: tokens that are certain, response bytes forwarded.
    fn progress(&mut self, entry: Entry, tokens: u64, bytes_out: u64);
    /// Settles it.
    fn settle(&mut self, entry: Entry, of: &Snapshot, record: &Record);
    /// Takes it back: the call never ran.
    fn withdraw(&mut self, entry: Entry);
}
