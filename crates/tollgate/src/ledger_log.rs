//! The ledger as the configuration asks for it, and what the log says of it: what a start found, each change for
//! the worse and back, and from time to time where the chain ends.
//!
//! Invariant: one line for each change of state, with a count of what it costs; the chain's head is
//! in the log at each start, each end, and once an hour in which rows came; rows that were pruned are
//! told of within ten minutes.
//! Not here: rows (`ledger`), the numbers for a scrape (`metrics`).

use std::time::{Duration, Instant};

use ledger::date::timestamp;
use ledger::{
    ClockStep, Doubt, Head, LedgerService, Options, Recovered, ShipError, Shipper, Shipping, Stats,
};
use policy::revision::Revision;
use policy::secret::Secret;

/// How often the ledger is looked at.
const EVERY: Duration = Duration::from_secs(1);
/// How often its head is told.
const HEAD_EVERY: Duration = Duration::from_secs(3600);

/// How often it is told what was pruned.
const PRUNED_EVERY: Duration = Duration::from_secs(600);

/// Opens it, and tells of what the last process left.
pub(crate) fn open(settings: &config::Ledger) -> Result<LedgerService, String> {
    let options = Options {
        node: settings.node.clone(),
        keep: settings.retention,
        bytes_max: settings.bytes_max,
        ..Options::at(&settings.path)
    };
    let (mut service, recovered) =
        LedgerService::open(options).map_err(|error| format!("the ledger: {error}"))?;
    let path = settings.path.display().to_string();
    opened(&recovered, &path, service.ledger().head());
    if let Some(secret) = &settings.postgres {
        with_server(secret, |server| service.ship_to(server))
            .map_err(|says| format!("ledger.postgres: {says}"))?;
    }
    Ok(service)
}

/// What of the server to which rows are copied could not be used, where one is named; nobody is asked.
pub(crate) fn check_server(settings: &config::Ledger) -> Result<(), String> {
    let server = settings.postgres.as_ref();
    server.map_or(Ok(()), |secret| with_server(secret, Shipper::check))
}

fn with_server(
    secret: &Secret,
    use_it: impl FnOnce(&str) -> Result<(), ShipError>,
) -> Result<(), String> {
    // The parser's own words could repeat a password.
    let not_one =
        "the connection string is not understood; write it as postgres://user@host/database";
    let server = std::str::from_utf8(secret.expose()).map_err(|_| not_one)?;
    use_it(server).map_err(|error| match error {
        ShipError::Config(_) => not_one.to_owned(),
        ShipError::Trust(says) => says,
        _ => "the thread that copies rows cannot be started".to_owned(),
    })
}

/// Begins budgets with what is on record, and keeps the prices that rows will name.
pub(crate) fn begin(
    service: &LedgerService,
    revision: &Revision,
    before: Option<&Revision>,
) -> Result<(), String> {
    let doubt = |doubt| match doubt {
        Doubt::NotFlushed => {
            tracing::warn!(
                "the ledger cannot be written: new budgets begin with what its rows say"
            );
        }
        Doubt::NoSubjects { names, own } => tracing::warn!(
            budgets = names.join(", "),
            callers_with_their_own = own,
            "the ledger does not say which key or user asked: budgets of each key or user begin with nothing spent"
        ),
        Doubt::NoPlace { sums } => tracing::warn!(
            sums,
            "more keys and users have spent from budgets than bounds.subjects allows: calls of the others are refused"
        ),
        Doubt::Rows {
            budget,
            held,
            today,
            unknown,
        } => tracing::warn!(
            %budget,
            held,
            today,
            unknown,
            "calls of this period whose end or cost is not on record: counted as what was held \
             for them, at today's price, or not at all where there is none"
        ),
    };
    let seeded = service.ledger().seed_budgets(revision, before, doubt);
    seeded.map_err(|error| format!("budgets: {error}"))?;
    service.keep_prices(&revision.snapshot);
    Ok(())
}

/// Writes what is left, and tells where the chain ends. Every worker has to have ended.
pub(crate) fn close(service: LedgerService) {
    let ledger = service.ledger();
    if !service.close() {
        let why = ledger.intake().unavailable();
        tracing::error!(
            why = why.map(|u| u.why).unwrap_or_default(),
            "the ledger's last rows could not be written: they are lost, and calls that had begun become `indeterminate`"
        );
    }
    head(&ledger.path().display().to_string(), ledger.head());
    service.stop_shipping();
}

/// What a start found.
fn opened(recovered: &Recovered, path: &str, at: Head) {
    if recovered.is_new {
        tracing::warn!(
            ledger = path,
            see = "docs/troubleshooting.md#there-was-no-ledger",
            "there was no ledger: the gate began a new one, and all budgets begin with nothing spent"
        );
    }
    if recovered.indeterminate > 0 {
        tracing::warn!(
            rows = recovered.indeterminate,
            see = "docs/troubleshooting.md#the-last-process-ended-in-the-middle-of-exchanges",
            "the last process ended in the middle of exchanges: their cost is not known, and their rows say `indeterminate`"
        );
    }
    if recovered.without_head {
        tracing::warn!(
            ledger = path,
            see = "docs/troubleshooting.md#there-was-no-readable-head-beside-the-ledger",
            "there was no readable .head beside the ledger: the gate cannot tell whether an older ledger was put back, and writes a new .head"
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
fn head(path: &str, head: Head) {
    tracing::info!(ledger = path, %head, "the ledger's head; `tollgate usage verify --head` finds what is missing before it");
}

/// Tells of changes. Never ends.
pub(crate) async fn watch(service: &LedgerService) {
    let mut said = Said::new(service);
    let mut every = tokio::time::interval(EVERY);
    loop {
        every.tick().await;
        said.look(service);
    }
}

/// What the log has said last.
struct Said {
    path: String,
    unavailable: Option<String>,
    head_fault: Option<String>,
    lost: u64,
    shipping: Option<(bool, Option<bool>)>,
    head: Head,
    head_at: Instant,
    clock_step: Option<ClockStep>,
    /// Rows pruned, and when that was told.
    pruned: u64,
    pruned_at: Option<Instant>,
}

impl Said {
    fn new(service: &LedgerService) -> Self {
        Self {
            path: service.ledger().path().display().to_string(),
            unavailable: None,
            head_fault: None,
            lost: 0,
            shipping: None,
            head: service.ledger().head(),
            head_at: Instant::now(),
            clock_step: None,
            pruned: 0,
            pruned_at: None,
        }
    }

    fn look(&mut self, service: &LedgerService) {
        let stats = service.ledger().stats();
        self.availability(service, stats);
        self.clock(service.ledger().clock_step());
        self.pruned(stats.pruned, service.ledger().pruned_until());
        self.head_file(service.ledger().head_fault());
        if let Some(shipping) = service.shipping() {
            self.shipping(&shipping);
        }
        let at = service.ledger().head();
        if at != self.head && self.head_at.elapsed() >= HEAD_EVERY {
            (self.head, self.head_at) = (at, Instant::now());
            head(&self.path, at);
        }
    }

    fn availability(&mut self, service: &LedgerService, stats: Stats) {
        let now = service.ledger().intake().unavailable().map(|now| now.why);
        let path = &self.path;
        match (&self.unavailable, &now) {
            (None, Some(why)) => {
                self.lost = stats.lost_settlements;
                tracing::error!(ledger = path, %why, see = "docs/troubleshooting.md#the-ledger-takes-no-rows", "the ledger takes no rows: strict routes refuse, other rows wait in memory");
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
                tracing::warn!(ledger = path, %why, see = "docs/troubleshooting.md#the-head-beside-the-ledger-is-not-written", "the head beside the ledger is not written: the next start cannot tell whether an older ledger was put back");
            }
            (Some(_), None) => {
                tracing::warn!(ledger = path, "the head beside the ledger is written again");
            }
            _ => {}
        }
        self.head_fault = fault;
    }

    fn clock(&mut self, step: Option<ClockStep>) {
        if let Some(step) = step.filter(|step| self.clock_step != Some(*step)) {
            let (expected, found) = (step.expected_unix_ms, step.found_unix_ms);
            let running_s = step.after.as_secs();
            tracing::warn!(
                ledger = self.path,
                wall_clock = timestamp(found),
                by_monotonic_clock = timestamp(expected),
                running_s,
                "the wall clock was set, or the host slept: no row is pruned for its age until both clocks have agreed for an hour"
            );
        }
        self.clock_step = step;
    }

    /// The first are told of at once.
    fn pruned(&mut self, pruned: u64, until: Option<u64>) {
        let is_due = self.pruned_at.is_none_or(|at| at.elapsed() >= PRUNED_EVERY);
        if pruned == self.pruned || !is_due {
            return;
        }
        let ended_until = until.map(timestamp).unwrap_or_default();
        let rows = pruned - self.pruned;
        tracing::info!(
            ledger = self.path,
            rows,
            ended_until,
            "old rows were pruned"
        );
        (self.pruned, self.pruned_at) = (pruned, Some(Instant::now()));
    }

    fn shipping(&mut self, shipping: &Shipping) {
        let now = (shipping.forked, shipping.encrypted);
        if self.shipping.replace(now) == Some(now) {
            return;
        }
        if shipping.forked {
            tracing::error!(
                why = shipping.last_fault,
                see = "docs/troubleshooting.md#nothing-is-copied-to-postgres",
                "nothing is copied to Postgres"
            );
        } else if shipping.encrypted == Some(false) {
            tracing::warn!(
                "the connection to Postgres is not encrypted: sslmode=verify-full in its connection string asks for that"
            );
        }
    }
}

#[cfg(test)]
mod tests;
