//! `tollgate usage tail`: the newest records, and those that come.
//!
//! Not here: the other questions (`usage`).

use std::io::Write;
use std::time::Duration;

use ledger::report::{rounded, wrapped};
use ledger::{Reader, Stored, date};

use super::Fault;
use super::arguments::Tail;

/// How often the ledger is looked at while following.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Rows read at once.
const PAGE: usize = 1000;

pub(super) fn tail(reader: &Reader, asked: &Tail, out: &mut dyn Write) -> Result<(), Fault> {
    let mut last = (reader.head()?.seq - i64::from(asked.last)).max(0);
    loop {
        let rows = reader.after(last, PAGE)?;
        for row in &rows {
            if asked.json {
                writeln!(out, "{}", row.to_json())?;
            } else {
                writeln!(out, "{}", record(row))?;
            }
            last = row.seq;
        }
        if rows.len() == PAGE {
            continue;
        }
        if !asked.follow {
            return Ok(());
        }
        out.flush()?;
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A record in two lines: when, who, where, what; how it ended, tokens, cost.
fn record(row: &Stored) -> String {
    let text = |column| {
        row.text(column)
            .filter(|text| !text.is_empty())
            .unwrap_or("-")
    };
    let ended = date::timestamp(
        row.number("ended_unix_ms")
            .unwrap_or_default()
            .unsigned_abs(),
    );
    let ending = match text("state") {
        "indeterminate" => "indeterminate",
        _ => text("outcome"),
    };
    let tokens = |column| {
        row.number(column)
            .map_or_else(|| "?".to_owned(), |n| n.to_string())
    };
    let cost = row.number("cost_pico").map_or_else(
        || "no price".to_owned(),
        |pico| format!("{} {}", rounded(pico.into(), 6), text("currency")),
    );
    let method = row.text("mcp_method");
    let is_of_batches = matches!(text("operation"), "files" | "batches");
    let what = method.map_or_else(
        || match is_of_batches {
            true => text("operation").to_owned(),
            false => row
                .text("model_sent")
                .unwrap_or(text("model_asked"))
                .to_owned(),
        },
        |method| format!("{method} {}", row.text("mcp_name").unwrap_or_default()),
    );
    let call = format!(
        "{ended} {} {}{} -> {} {}",
        row.seq,
        text("workload"),
        row.text("user_id")
            .or(row.text("key_id"))
            .map_or_else(String::new, |who| format!(" ({who})")),
        text("backend"),
        what.trim_end(),
    );
    // A message to a server of tools has no tokens, nor has a call of files and batches.
    let has_none = method.is_some() || is_of_batches;
    let came_to = format!(
        "{ending} {}, in {} ({}), out {} ({}), {cost}",
        row.number("status").unwrap_or_default(),
        tokens("prompt_tokens"),
        text("prompt_source"),
        tokens("completion_tokens"),
        text("completion_source"),
    );
    let came_to = match has_none {
        true => format!("{ending} {}", row.number("status").unwrap_or_default()),
        false => came_to,
    };
    format!("{}\n  {came_to}", wrapped(&call, super::width(), 4))
}
