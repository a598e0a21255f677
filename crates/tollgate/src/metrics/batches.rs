//! Metrics of batches that were not counted yet.
//!
//! Not here: who knows of them (`ledger`).

use policy::snapshot::Snapshot;
use telemetry::Extra;
use telemetry::extras::number;

/// All of them, now.
pub(super) fn of(s: &Snapshot, now_ms: u64) -> Vec<Extra> {
    let Some(store) = &s.batches else {
        return Vec::new();
    };
    let unsettled = store.stats();
    let help = "Batches whose use is not counted yet, by workload.";
    let mut extras: Vec<Extra> = unsettled
        .by_workload
        .iter()
        .map(|(workload, count)| {
            let extra = Extra::gauge("tollgate_batches_uncounted", help, number(*count));
            extra.with("workload", workload)
        })
        .collect();
    let oldest = unsettled.oldest_unix_ms;
    let age = oldest.map_or(0, |oldest| now_ms.saturating_sub(oldest) / 1000);
    extras.push(Extra::gauge(
        "tollgate_batches_oldest_uncounted_seconds",
        "Age of the oldest batch whose use is not counted yet, seconds; 0 where there is none.",
        number(age),
    ));
    extras
}
