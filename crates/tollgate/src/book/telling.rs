//! What the log says of the ledger: what a start found, each change for the worse and back, and from
//! time to time where the chain ends.
//!
//! Invariant: one line for each change of state, with a count of what it costs; the chain's head is
//! in the log at each start, each end, and once an hour in which rows came.
//! Not here: the numbers for a scrape (`admin`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use ledger::{Head, Recovered, Shipping, Stats};

use super::Books;
use crate::running::Running;

/// How often the ledger is looked at.
const EVERY: Duration = Duration::from_secs(1);
/// How often its head is told.
const HEAD_EVERY: Duration = Duration::from_secs(3600);

/// What a start found.
pub(super) fn opened(recovered: &Recovered, path: &str, at: Head) {
    if recovered.is_new {
        tracing::warn!(
            ledger = path,
            "there was no ledger: a new one begins, and so do all budgets"
        );
    }
    if recovered.indeterminate > 0 {
        tracing::warn!(
            rows = recovered.indeterminate,
            "the last process ended in the middle of exchanges: their rows are indeterminate"
        );
    }
    if recovered.without_head {
        tracing::warn!(
            ledger = path,
            "there was no readable .head beside the ledger: nothing tells whether it was set back; it is written anew"
        );
    }
    for lost in &recovered.lost {
        tracing::warn!(ledger = path, rows = lost.rows(), "{lost}");
    }
    if recovered.unchecked {
        tracing::info!(
            ledger = path,
            "the ledger is large: its newest rows are checked, the rest is checked while the gate serves"
        );
    }
    head(path, at);
}

/// Where the chain ends, for whoever keeps the log.
pub(super) fn head(path: &str, head: Head) {
    tracing::info!(ledger = path, %head, "the ledger's head; `tollgate usage verify --head` finds what is missing before it");
}

/// Tells of changes. Never ends.
pub(crate) async fn on(running: Arc<Running>) {
    let Some(books) = &running.outlets.books else {
        return;
    };
    let mut told = Told::new(books);
    let mut every = tokio::time::interval(EVERY);
    loop {
        every.tick().await;
        told.look(books);
    }
}

/// What the log has said last.
struct Told {
    path: String,
    unavailable: Option<String>,
    head_fault: Option<String>,
    lost: u64,
    shipping: Option<(bool, Option<bool>)>,
    head: Head,
    head_at: Instant,
}

impl Told {
    fn new(books: &Books) -> Self {
        Self {
            path: books.ledger.path().display().to_string(),
            unavailable: None,
            head_fault: None,
            lost: 0,
            shipping: None,
            head: books.ledger.head(),
            head_at: Instant::now(),
        }
    }

    fn look(&mut self, books: &Books) {
        self.availability(books, books.ledger.stats());
        self.head_file(books.ledger.head_fault());
        if let Some(shipper) = &books.shipper {
            self.shipping(&shipper.shipping());
        }
        let at = books.ledger.head();
        if at != self.head && self.head_at.elapsed() >= HEAD_EVERY {
            (self.head, self.head_at) = (at, Instant::now());
            head(&self.path, at);
        }
    }

    fn availability(&mut self, books: &Books, stats: Stats) {
        let now = books.ledger.intake().unavailable().map(|now| now.why);
        let path = &self.path;
        match (&self.unavailable, &now) {
            (None, Some(why)) => {
                self.lost = stats.lost_settlements;
                tracing::error!(ledger = path, %why, "the ledger takes no rows: strict routes refuse, other rows wait in memory");
            }
            // A commit that waits tells how long, anew each time.
            (Some(before), Some(why)) if before != why && !why.starts_with("a commit") => {
                tracing::error!(ledger = path, %why, waiting = stats.spilled, "the ledger still takes no rows");
            }
            (Some(_), None) => {
                let lost = stats.lost_settlements.saturating_sub(self.lost);
                tracing::warn!(ledger = path, lost, "the ledger takes rows again");
            }
            _ => {}
        }
        self.unavailable = now;
    }

    fn head_file(&mut self, fault: Option<String>) {
        let path = &self.path;
        match (&self.head_fault, &fault) {
            (None, Some(why)) => {
                tracing::warn!(ledger = path, %why, "the head beside the ledger is not written: the next start cannot tell whether the ledger was set back");
            }
            (Some(_), None) => {
                tracing::warn!(ledger = path, "the head beside the ledger is written again");
            }
            _ => {}
        }
        self.head_fault = fault;
    }

    fn shipping(&mut self, shipping: &Shipping) {
        let now = (shipping.forked, shipping.encrypted);
        if self.shipping.replace(now) == Some(now) {
            return;
        }
        if shipping.forked {
            tracing::error!(why = shipping.last_fault, "nothing is copied to Postgres");
        } else if shipping.encrypted == Some(false) {
            tracing::warn!(
                "the connection to Postgres is not encrypted: sslmode=verify-full in its connection string asks for that"
            );
        }
    }
}
