//! What the ledger has done and what it could not do: numbers for whoever scrapes.
//!
//! Invariant: every entry that did not reach the disk is in one of these counters.
//! Not here: metric names (`telemetry`).

use std::sync::atomic::{AtomicU64, Ordering};

/// The ledger's numbers at one moment; all but the last eight only rise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Rows settled by this process.
    pub settled: u64,
    /// Admissions written by this process.
    pub admitted: u64,
    /// Settlements that were there before: settled twice, kept once.
    pub duplicates: u64,
    /// Commits that reached the disk.
    pub commits: u64,
    /// Commits that failed, each with everything in it kept for later.
    pub failures: u64,
    /// Settlements that no queue had room for. **They are lost**, and what was admitted of them
    /// becomes indeterminate.
    pub lost_settlements: u64,
    /// Admissions and checkpoints that no queue had room for; their settlements may still come.
    pub lost_notes: u64,
    /// Entries that the database refused as malformed: a bug.
    pub refused: u64,
    /// Rows pruned by age or size.
    pub pruned: u64,
    /// Rows pruned for lack of room before they were shipped.
    pub pruned_unshipped: u64,
    /// Entries that wait in memory for a disk to come back.
    pub spilled: u64,
    /// Number of the last row.
    pub head: u64,
    /// How long the last commit took, microseconds.
    pub last_commit_us: u64,
    /// Bytes of the database file in use.
    pub bytes: u64,
    /// Bytes of the log beside it.
    pub log_bytes: u64,
    /// Rows that salvages of this ledger have lost, ever.
    pub salvaged_lost: u64,
    /// Times that the head beside the ledger could not be written; its rows were all the same.
    pub head_failures: u64,
    /// Whether part of the file has not been checked since the start.
    pub unchecked: bool,
    /// Whether a strict route may be served.
    pub available: bool,
}

/// The same numbers, shared between threads.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) settled: AtomicU64,
    pub(crate) admitted: AtomicU64,
    pub(crate) duplicates: AtomicU64,
    pub(crate) commits: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) lost_settlements: AtomicU64,
    pub(crate) lost_notes: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) pruned: AtomicU64,
    /// When the newest pruned row ended; 0 when none was pruned.
    pub(crate) pruned_until: AtomicU64,
    pub(crate) pruned_unshipped: AtomicU64,
    pub(crate) spilled: AtomicU64,
    pub(crate) head: AtomicU64,
    pub(crate) last_commit_us: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) log_bytes: AtomicU64,
    pub(crate) salvaged_lost: AtomicU64,
    pub(crate) head_failures: AtomicU64,
    pub(crate) unchecked: AtomicU64,
}

impl Counters {
    pub(crate) fn read(&self, available: bool) -> Stats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            settled: get(&self.settled),
            admitted: get(&self.admitted),
            duplicates: get(&self.duplicates),
            commits: get(&self.commits),
            failures: get(&self.failures),
            lost_settlements: get(&self.lost_settlements),
            lost_notes: get(&self.lost_notes),
            refused: get(&self.refused),
            pruned: get(&self.pruned),
            pruned_unshipped: get(&self.pruned_unshipped),
            spilled: get(&self.spilled),
            head: get(&self.head),
            last_commit_us: get(&self.last_commit_us),
            bytes: get(&self.bytes),
            log_bytes: get(&self.log_bytes),
            salvaged_lost: get(&self.salvaged_lost),
            head_failures: get(&self.head_failures),
            unchecked: get(&self.unchecked) > 0,
            available,
        }
    }
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, n: u64) {
    counter.fetch_add(n, Ordering::Relaxed);
}

/// Sets a gauge.
pub(crate) fn set(gauge: &AtomicU64, n: u64) {
    gauge.store(n, Ordering::Relaxed);
}
