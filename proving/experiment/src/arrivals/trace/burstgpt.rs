//! A line of BurstGPT's traces: a moment in seconds, tokens of request and response, in columns that the header names.
//!
//! The published files have six columns, or eight with `Session ID` and `Elapsed time`; a response of no tokens is a request that failed, and
//! was one token long to a replay.
//! Not here: which model it was, and sessions: each line is an arrival.

use std::time::Duration;

use super::Traced;

/// What a header has, in any order.
const COLUMNS: [&str; 3] = ["Timestamp", "Request tokens", "Response tokens"];

/// Where a header has the columns; `None` of another header.
pub(super) fn columns(header: &str) -> Option<[usize; 3]> {
    let names: Vec<&str> = header
        .trim_start_matches('\u{feff}')
        .split(',')
        .map(str::trim)
        .collect();
    let place = |column: &str| names.iter().position(|name| *name == column);
    let [moment, prompt, output] = COLUMNS.map(place);
    Some([moment?, prompt?, output?])
}

pub(super) fn read(line: &str, columns: [usize; 3]) -> Result<Traced, String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let field = |place: usize| {
        let field = fields.get(place).copied();
        field.ok_or_else(|| format!("has no column {}", place + 1))
    };
    let [moment, prompt, output] = columns;
    let seconds: Option<f64> = field(moment)?.parse().ok();
    let at = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let count = |text: &str| {
        text.parse()
            .map_err(|_| format!("{text:?} is no number of tokens"))
    };
    let prompt: u32 = count(field(prompt)?)?;
    let output: u32 = count(field(output)?)?;
    Ok(Traced {
        at: at.ok_or_else(|| {
            format!(
                "{:?} is no moment in seconds",
                field(moment).unwrap_or_default()
            )
        })?,
        prompt_tokens: prompt.max(1),
        output_tokens: output.max(1),
        blocks: Vec::new(),
    })
}
