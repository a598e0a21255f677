//! Metrics of the ledger: what reached the disk, what waits, what was lost. And its head, which is too
//! long for a metric.
//!
//! Not here: what the numbers mean for a bill (docs/usage.md).

use telemetry::Extra;

use super::{With, counter, gauge, number};
use crate::book::Books;

/// The state in JSON.
pub(super) fn page(books: &Books) -> String {
    let (stats, head) = (books.ledger.stats(), books.ledger.head());
    let why = books.ledger.intake().unavailable().map(|away| away.why);
    let page = serde_json::json!({
        "available": stats.available,
        "why": why,
        "head": {"seq": head.seq, "hash": head.hash.to_string()},
        "salvaged_rows_lost": stats.salvaged_lost,
        "checked": !stats.unchecked,
    });
    format!("{page:#}\n")
}

/// All of them, now.
pub(super) fn of(books: &Books) -> Vec<Extra> {
    let stats = books.ledger.stats();
    let lost = |kind, n| {
        let help = "Entries that no queue had room for: a settlement is a lost row, a note is not.";
        counter("tollgate_ledger_lost_total", help, number(n)).with("kind", kind)
    };
    let pruned = |shipped, n| {
        let help =
            "Rows pruned for their age or for room, by whether Postgres had them if it should.";
        counter("tollgate_ledger_pruned_total", help, number(n)).with("shipped", shipped)
    };
    let mut extras = vec![
        gauge(
            "tollgate_ledger_available",
            "Whether the disk takes rows (1) or not (0).",
            f64::from(u8::from(stats.available)),
        ),
        counter(
            "tollgate_ledger_rows_total",
            "Rows settled on disk by this process.",
            number(stats.settled),
        ),
        counter(
            "tollgate_ledger_admissions_total",
            "Admissions on disk; those that ended within one commit are not among them.",
            number(stats.admitted),
        ),
        counter(
            "tollgate_ledger_duplicates_total",
            "Settlements of a row that was settled before, and left as it was.",
            number(stats.duplicates),
        ),
        counter(
            "tollgate_ledger_commits_total",
            "Commits that reached the disk.",
            number(stats.commits),
        ),
        counter(
            "tollgate_ledger_failures_total",
            "Commits that failed; what was in them waits in memory.",
            number(stats.failures),
        ),
        counter(
            "tollgate_ledger_head_failures_total",
            "Times that the head beside the ledger could not be written.",
            number(stats.head_failures),
        ),
        counter(
            "tollgate_ledger_malformed_total",
            "Entries that the database refused as malformed: a bug.",
            number(stats.refused),
        ),
        lost("settlement", stats.lost_settlements),
        lost("note", stats.lost_notes),
        pruned("yes", stats.pruned.saturating_sub(stats.pruned_unshipped)),
        pruned("no", stats.pruned_unshipped),
        gauge(
            "tollgate_ledger_spilled",
            "Entries that wait in memory for the disk to come back.",
            number(stats.spilled),
        ),
        gauge(
            "tollgate_ledger_bytes",
            "Bytes of the ledger's file in use.",
            number(stats.bytes),
        ),
        gauge(
            "tollgate_ledger_log_bytes",
            "Bytes of the log beside the file; it is copied into the file each minute.",
            number(stats.log_bytes),
        ),
        gauge(
            "tollgate_ledger_head",
            "Number of the last row on disk; its hash is at /ledger.",
            number(stats.head),
        ),
        gauge(
            "tollgate_ledger_checked",
            "Whether the whole file has been checked since the start (1) or part of it not yet (0).",
            f64::from(u8::from(!stats.unchecked)),
        ),
        gauge(
            "tollgate_ledger_salvaged_rows_lost",
            "Rows that salvages of this ledger have lost, ever.",
            number(stats.salvaged_lost),
        ),
        gauge(
            "tollgate_ledger_last_commit_seconds",
            "How long the last commit took, seconds.",
            number(stats.last_commit_us) / 1e6,
        ),
    ];
    if let Some(shipper) = &books.shipper {
        let shipping = shipper.shipping();
        let behind = stats.head.saturating_sub(shipping.up_to.unsigned_abs());
        extras.push(counter(
            "tollgate_ledger_shipped_total",
            "Rows that Postgres took from this process.",
            number(shipping.shipped),
        ));
        extras.push(counter(
            "tollgate_ledger_ship_failures_total",
            "Tries to ship rows that failed; they are tried again.",
            number(shipping.failures),
        ));
        extras.push(gauge(
            "tollgate_ledger_ship_forked",
            "Whether Postgres has another history of this ledger (1): nothing is shipped then.",
            f64::from(u8::from(shipping.forked)),
        ));
        let help = "Rows on disk that Postgres does not have yet.";
        extras.push(gauge("tollgate_ledger_unshipped", help, number(behind)));
    }
    extras
}
