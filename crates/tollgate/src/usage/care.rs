//! `tollgate usage verify`, `backup` and `salvage`: the ledger's file and not what it says.
//!
//! Invariant: what is lost is said in numbers, each time that somebody looks.
//! Not here: the checks and copies themselves (`ledger`).

use std::io::Write;
use std::path::Path;

use ledger::report;
use ledger::{BackupError, Expected, Lost, Reader, SalvageOutcome, Salvaged};
use serde_json::{Value, json};

use super::arguments::{Backup, Salvage, Verify};
use super::{Fault, width};

/// Whether the ledger is as it was written.
pub(super) fn verify(reader: &Reader, asked: &Verify, out: &mut dyn Write) -> Result<bool, Fault> {
    let not_a_head = || {
        let says = "--head takes SEQ:HASH as printed before, or the 64 hex digits of a hash";
        Fault::Asked(says.to_owned())
    };
    let expected = asked
        .head
        .as_deref()
        .map(|head| Expected::parse(head).ok_or_else(not_a_head))
        .transpose()?;
    let verified = reader.verify(expected)?;
    let findings: Vec<String> = verified.findings.iter().map(ToString::to_string).collect();
    let (seq, hash) = (verified.head.seq, verified.head.hash.to_string());
    if asked.json {
        let told = json!({"rows": verified.rows, "pruned_up_to": verified.anchor, "head": {"seq": seq, "hash": hash}, "findings": findings, "salvaged": lost_json(&verified.lost), "salvaged_rows_lost": Lost::sum(&verified.lost)});
        writeln!(out, "{told:#}")?;
        return Ok(findings.is_empty());
    }
    let salvages = Lost::by_salvage(&verified.lost);
    let lost = salvages.iter().map(ToString::to_string);
    for line in findings.iter().cloned().chain(lost) {
        writeln!(out, "{}", report::wrapped(&line, width(), 2))?;
    }
    if salvages.len() > 1 {
        let (rows, times) = (Lost::sum(&verified.lost), salvages.len());
        writeln!(out, "{rows} rows were lost in {times} salvages")?;
    }
    let verdict = if findings.is_empty() {
        "every row is as it was written"
    } else {
        "not as it was written"
    };
    writeln!(
        out,
        "{verdict}: {} rows after row {}\nhead {}",
        verified.rows, verified.anchor, verified.head
    )?;
    Ok(findings.is_empty())
}

pub(super) fn backup(reader: &Reader, asked: &Backup, out: &mut dyn Write) -> Result<(), Fault> {
    let said = |error: BackupError| Fault::Said(error.to_string());
    let batches = reader.backup_batches(&asked.file).map_err(said)?;
    let verified = reader.backup(&asked.file).inspect_err(|_| {
        // A copy of the one without the other is none.
        batches
            .iter()
            .for_each(|copy| drop(std::fs::remove_file(copy)));
    });
    let verified = verified.map_err(said)?;
    let batches = batches.map(|copy| copy.display().to_string());
    let (file, head) = (asked.file.display().to_string(), verified.head);
    if asked.json {
        let told = json!({"file": file, "batches": batches, "rows": verified.rows, "pruned_up_to": verified.anchor, "head": {"seq": head.seq, "hash": head.hash.to_string()}, "salvaged": lost_json(&verified.lost)});
        writeln!(out, "{told:#}")?;
    } else {
        let (rows, anchor) = (verified.rows, verified.anchor);
        let says = format!("{file} is whole: {rows} rows after row {anchor}");
        writeln!(out, "{}", report::wrapped(&says, width(), 2))?;
        writeln!(out, "head {head}")?;
        if let Some(batches) = batches {
            writeln!(out, "files and batches: {batches}")?;
        }
    }
    Ok(())
}

pub(super) fn salvage(ledger: &Path, asked: &Salvage, out: &mut dyn Write) -> Result<(), Fault> {
    let outcome = if asked.new_name {
        ledger::under_new_name(ledger).map(SalvageOutcome::Salvaged)
    } else {
        ledger::salvage(ledger)
    };
    let salvaged = match outcome.map_err(|error| Fault::Said(error.to_string()))? {
        SalvageOutcome::Salvaged(salvaged) => salvaged,
        SalvageOutcome::Whole { rows, head } if asked.json => {
            let head = json!({"seq": head.seq, "hash": head.hash.to_string()});
            let told = json!({"is_whole": true, "rows": rows, "rows_lost": 0, "head": head, "lost": [], "kept_aside": []});
            return Ok(writeln!(out, "{told:#}")?);
        }
        SalvageOutcome::Whole { rows, head } => {
            let says = format!("nothing to salvage: {} is whole", ledger.display());
            writeln!(out, "{}", report::wrapped(&says, width(), 2))?;
            writeln!(out, "{rows} rows stay as they are\nhead {head}")?;
            return Ok(());
        }
    };
    salvaged_told(ledger, salvaged, asked.json, out)
}

/// Tells what was kept and lost, and what is left to do, with which it fails.
fn salvaged_told(
    ledger: &Path,
    salvaged: Salvaged,
    as_json: bool,
    out: &mut dyn Write,
) -> Result<(), Fault> {
    let files: Vec<String> = salvaged
        .kept_aside
        .iter()
        .map(|file| file.display().to_string())
        .collect();
    if as_json {
        let told = json!({"is_whole": false, "rows": salvaged.settled, "rows_lost": salvaged.rows_lost, "open": salvaged.open, "open_altered": salvaged.open_altered, "lost": lost_json(&salvaged.lost), "faults": salvaged.faults, "kept_aside": files, "left_to_do": salvaged.left_to_do});
        writeln!(out, "{told:#}")?;
        return finished(salvaged);
    }
    told(&salvaged, out)?;
    for file in files {
        writeln!(out, "what was there is kept as {file}")?;
    }
    if salvaged.left_to_do.is_none() {
        writeln!(out, "{} opens again, under a new name", ledger.display())?;
    }
    finished(salvaged)
}

/// Whether nothing is left to do.
fn finished(salvaged: Salvaged) -> Result<(), Fault> {
    match salvaged.left_to_do {
        Some(left) => Err(Fault::Said(format!(
            "the ledger is salvaged and in its place, but {left}"
        ))),
        None => Ok(()),
    }
}

fn told(salvaged: &Salvaged, out: &mut dyn Write) -> Result<(), Fault> {
    for fault in &salvaged.faults {
        let says = format!("not all could be read: {fault}");
        writeln!(out, "{}", report::wrapped(&says, width(), 2))?;
    }
    let lost = salvaged.rows_lost;
    writeln!(out, "{} rows kept, {lost} lost", salvaged.settled)?;
    for lost in &salvaged.lost {
        if lost.rows() > 0 {
            writeln!(out, "  rows {} to {}", lost.from, lost.to)?;
        }
        if lost.open_ended {
            writeln!(out, "  how many came after row {} is not known", lost.to)?;
        }
    }
    let (kept, altered) = (salvaged.open, salvaged.open_altered);
    if kept + altered > 0 {
        writeln!(out, "{kept} incomplete exchanges kept, {altered} lost")?;
    }
    if lost > 0 {
        writeln!(out, "what they cost is in no budget any more")?;
    }
    Ok(())
}

fn lost_json(lost: &[Lost]) -> Value {
    let one = |lost: &Lost| json!({"at_unix_ms": lost.at_unix_ms, "from": lost.from, "to": lost.to, "rows": lost.rows(), "open_ended": lost.open_ended});
    lost.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn what_a_salvage_could_not_finish_is_told_after_what_it_did_and_fails() {
        let salvaged = || Salvaged {
            settled: 7,
            kept_aside: vec![PathBuf::from("usage.db.damaged-1")],
            left_to_do: Some("usage.db.head cannot be written".to_owned()),
            ..Salvaged::default()
        };
        let ledger = Path::new("usage.db");
        let mut out = Vec::new();
        let fault = salvaged_told(ledger, salvaged(), false, &mut out).expect_err("is not done");
        let says = "the ledger is salvaged and in its place, but usage.db.head cannot be written";
        assert!(matches!(&fault, Fault::Said(said) if said == says));
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("7 rows kept, 0 lost"), "{text}");
        assert!(text.contains("usage.db.damaged-1"), "{text}");
        assert!(!text.contains("opens again"), "{text}");
        let mut out = Vec::new();
        salvaged_told(ledger, salvaged(), true, &mut out).expect_err("is not done");
        let told: Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(told["rows"], 7);
        assert_eq!(told["left_to_do"], "usage.db.head cannot be written");
    }
}
