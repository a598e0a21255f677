//! A line of Mooncake's traces (FAST '25): a JSON object.
//!
//! Invariant: a timestamp is in milliseconds and may have a fraction.
//! Not here: what the blocks mean (the simulator's KV cache).

use std::time::Duration;

use serde::Deserialize;

use super::Traced;

/// Milliseconds at most: 317 years.
const MOST_MS: f64 = 1e13;

#[derive(Deserialize)]
struct Line {
    timestamp: f64,
    input_length: u32,
    output_length: u32,
    #[serde(default)]
    hash_ids: Vec<u64>,
}

pub(super) fn read(line: &str) -> Result<Traced, String> {
    let line: Line = serde_json::from_str(line).map_err(|e| e.to_string())?;
    if !(0.0..=MOST_MS).contains(&line.timestamp) {
        return Err(format!(
            "{} is no timestamp in milliseconds",
            line.timestamp
        ));
    }
    Ok(Traced {
        at: Duration::from_nanos((line.timestamp * 1e6).round() as u64),
        prompt_tokens: line.input_length,
        output_tokens: line.output_length,
        blocks: line.hash_ids,
    })
}
