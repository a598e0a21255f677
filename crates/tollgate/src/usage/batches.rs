//! `tollgate usage batches`: batches whose use is not counted yet, and the end of one that never can be.
//!
//! Not here: where they are kept (`ledger::uncounted_batches`), the row of one that is given up (the gate enters it).

use std::io::Write;
use std::path::Path;

use ledger::date::timestamp;
use serde_json::json;

use super::Fault;
use super::arguments::Batches;

/// Lists them.
pub(super) fn uncounted(ledger: &Path, asked: &Batches, out: &mut dyn Write) -> Result<(), Fault> {
    if let (Some(id), Some(why)) = (&asked.give_up, &asked.why) {
        return give_up(ledger, (id, why), asked, out);
    }
    let kept = ledger::uncounted_batches(ledger).map_err(Fault::Said)?;
    let is_kept = kept.is_some();
    let batches = kept.unwrap_or_default();
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
        match is_kept {
            true => writeln!(out, "Every batch is counted.")?,
            false => writeln!(
                out,
                "There is no {}.batches: this ledger's gate has taken no batch, or the file was lost.",
                ledger.display()
            )?,
        }
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

/// Notes that a batch is given up, and by whom.
fn give_up(
    ledger: &Path,
    (id, why): (&str, &str),
    asked: &Batches,
    out: &mut dyn Write,
) -> Result<(), Fault> {
    let is_plain = !why.trim().is_empty() && why.len() <= WHY_BYTES_MAX;
    if !is_plain || why.chars().any(char::is_control) {
        let says = format!("--why: write 1 to {WHY_BYTES_MAX} bytes on one line");
        return Err(Fault::Said(says));
    }
    let who = operator();
    let given_up = ledger::give_up_batch(ledger, id, asked.backend.as_deref(), (&who, why));
    let given_up = given_up.map_err(Fault::Said)?;
    let workload = &*given_up.thing.owner.workload;
    if asked.json {
        let said = json!({ "id": id, "workload": workload, "given_up": true, "by": who });
        writeln!(out, "{said}")?;
        return Ok(());
    }
    writeln!(
        out,
        "{id} of the workload {workload} is given up by {who}. The gate with this ledger enters its row (`{}`) within seconds, or \
         when it runs next; nothing is charged for it.",
        policy::batches::BATCH_GIVEN_UP
    )?;
    Ok(())
}

/// Most of what is said of why.
const WHY_BYTES_MAX: usize = 500;

/// Who gives the command, for the log: by what their shell calls them, and by their number, which they cannot choose.
fn operator() -> String {
    let uid = rustix::process::getuid().as_raw();
    let mut names = ["SUDO_USER", "USER", "LOGNAME"].into_iter();
    let name = names.find_map(|name| std::env::var(name).ok().filter(|name| !name.is_empty()));
    match name {
        Some(name) => format!("{} (uid {uid})", name.escape_debug()),
        None => format!("uid {uid}"),
    }
}
