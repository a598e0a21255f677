//! `tollgate usage batches`: batches whose use is not counted yet.
//!
//! Not here: where they are kept (`ledger::uncounted_batches`).

use std::io::Write;
use std::path::Path;

use ledger::date::timestamp;
use serde_json::json;

use super::Fault;
use super::arguments::Batches;

/// Lists them.
pub(super) fn uncounted(ledger: &Path, asked: &Batches, out: &mut dyn Write) -> Result<(), Fault> {
    let batches = ledger::uncounted_batches(ledger).map_err(Fault::Said)?;
    if asked.json {
        let of = |batch: &ledger::Thing| {
            json!({
                "id": &*batch.id,
                "backend": &*batch.backend,
                "workload": &*batch.owner.workload,
                "issuer": batch.owner.issuer.as_deref(),
                "key": batch.maker.key.as_deref(),
                "user": batch.maker.user.as_deref(),
                "models": batch.calls.iter().map(|(_, model)| &**model).collect::<Vec<_>>(),
                "created": timestamp(batch.created_unix_ms),
            })
        };
        let list: Vec<_> = batches.iter().map(of).collect();
        writeln!(out, "{:#}", json!(list))?;
        return Ok(());
    }
    if batches.is_empty() {
        writeln!(out, "Every batch is counted.")?;
        return Ok(());
    }
    writeln!(
        out,
        "{:<24} {:<20} {:<16} batch",
        "made", "workload", "backend"
    )?;
    for batch in &batches {
        let made = timestamp(batch.created_unix_ms);
        let (workload, backend) = (&batch.owner.workload, &batch.backend);
        writeln!(out, "{made:<24} {workload:<20} {backend:<16} {}", batch.id)?;
    }
    Ok(())
}
