//! Metrics of the ledger: what reached the disk, what waits, what was lost. And its head, which is too
//! long for a metric.
//!
//! Not here: what the numbers mean for a bill (docs/usage.md).

use ledger::LedgerService;
use telemetry::Extra;
use telemetry::extras::number;

/// The state in JSON.
pub(crate) fn state(service: &LedgerService) -> serde_json::Value {
    let (stats, head) = (service.ledger().stats(), service.ledger().head());
    let why = service.ledger().intake().unavailable().map(|away| away.why);
    serde_json::json!({
        "available": stats.available,
        "why": why,
        "head": {"seq": head.seq, "hash": head.hash.to_string()},
        "salvaged_rows_lost": stats.salvaged_lost,
        "checked": !stats.unchecked,
    })
}

/// All of them, now.
pub(super) fn of(service: &LedgerService) -> Vec<Extra> {
    let stats = service.ledger().stats();
    let lost = |kind, n| {
        let help = "Entries that no queue had room for: a settlement is a lost row, a note is not.";
        Extra::counter("tollgate_ledger_lost_total", help, number(n)).with("kind", kind)
    };
    let pruned = |shipped, n| {
        let help =
            "Rows pruned for their age or for room, by whether Postgres had them if it should.";
        Extra::counter("tollgate_ledger_pruned_total", help, number(n)).with("shipped", shipped)
    };
    let mut extras = vec![
        Extra::gauge(
            "tollgate_ledger_available",
            "Whether the disk takes rows (1) or not (0).",
            f64::from(u8::from(stats.available)),
        ),
        Extra::counter(
            "tollgate_ledger_rows_total",
            "Rows settled on disk by this process.",
            number(stats.settled),
        ),
        Extra::counter(
            "tollgate_ledger_admissions_total",
            "Admissions on disk; those that ended within one commit are not among them.",
            number(stats.admitted),
        ),
        Extra::counter(
            "tollgate_ledger_duplicates_total",
            "Settlements of a row that was settled before, and left as it was.",
            number(stats.duplicates),
        ),
        Extra::counter(
            "tollgate_ledger_commits_total",
            "Commits that reached the disk.",
            number(stats.commits),
        ),
        Extra::counter(
            "tollgate_ledger_failures_total",
            "Commits that failed; what was in them waits in memory.",
            number(stats.failures),
        ),
        Extra::counter(
            "tollgate_ledger_head_failures_total",
            "Times that the head beside the ledger could not be written.",
            number(stats.head_failures),
        ),
        Extra::counter(
            "tollgate_ledger_malformed_total",
            "Entries that the database refused as malformed: a bug.",
            number(stats.refused),
        ),
        lost("settlement", stats.lost_settlements),
        lost("note", stats.lost_notes),
        pruned("yes", stats.pruned.saturating_sub(stats.pruned_unshipped)),
        pruned("no", stats.pruned_unshipped),
        Extra::gauge(
            "tollgate_ledger_spilled",
            "Entries that wait in memory for the disk to come back.",
            number(stats.spilled),
        ),
        Extra::gauge(
            "tollgate_ledger_bytes",
            "Bytes of the ledger's file in use.",
            number(stats.bytes),
        ),
        Extra::gauge(
            "tollgate_ledger_log_bytes",
            "Bytes of the log beside the file; it is copied into the file each minute.",
            number(stats.log_bytes),
        ),
        Extra::gauge(
            "tollgate_ledger_head",
            "Number of the last row on disk; its hash is at /ledger.",
            number(stats.head),
        ),
        Extra::gauge(
            "tollgate_ledger_checked",
            "Whether the whole file has been checked since the start (1) or part of it not yet (0).",
            f64::from(u8::from(!stats.unchecked)),
        ),
        Extra::gauge(
            "tollgate_ledger_salvaged_rows_lost",
            "Rows that salvages of this ledger have lost, ever.",
            number(stats.salvaged_lost),
        ),
        Extra::gauge(
            "tollgate_ledger_last_commit_seconds",
            "How long the last commit took, seconds.",
            number(stats.last_commit_us) / 1e6,
        ),
    ];
    if let Some(shipping) = service.shipping() {
        let behind = stats.head.saturating_sub(shipping.up_to.unsigned_abs());
        extras.push(Extra::counter(
            "tollgate_ledger_shipped_total",
            "Rows that Postgres took from this process.",
            number(shipping.shipped),
        ));
        extras.push(Extra::counter(
            "tollgate_ledger_ship_failures_total",
            "Tries to ship rows that failed; they are tried again.",
            number(shipping.failures),
        ));
        extras.push(Extra::gauge(
            "tollgate_ledger_ship_forked",
            "Whether Postgres has another history of this ledger (1): nothing is shipped then.",
            f64::from(u8::from(shipping.forked)),
        ));
        let help = "Rows on disk that Postgres does not have yet.";
        extras.push(Extra::gauge(
            "tollgate_ledger_unshipped",
            help,
            number(behind),
        ));
    }
    extras
}
