//! What the engine of a recording held, second by second.
//!
//! Invariant: samples are in order of time.
//! Not here: the same of a simulation (`replay`).

use super::At;

/// One line of the recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Seconds from the start.
    pub at_s: f64,
    /// Requests admitted.
    pub running: f64,
    /// Requests that wait.
    pub waiting: f64,
    /// Percent of the KV cache in use.
    pub kv_percent: f64,
}

pub(super) fn parse(text: &str) -> Result<Vec<Sample>, At> {
    let mut lines = text.lines().enumerate().map(|(i, line)| (i + 1, line));
    let (_, header) = lines.next().ok_or((1, "is empty".to_owned()))?;
    let column = |name: &str| {
        let found = header.split(',').position(|column| column.trim() == name);
        found.ok_or_else(|| (1, format!("has no column {name}")))
    };
    let columns = [
        column("t")?,
        column("running")?,
        column("waiting")?,
        column("kv_cache_pct")?,
    ];
    let mut samples = Vec::<Sample>::new();
    for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let fields: Vec<&str> = line.split(',').collect();
        let mut values = [0.0; 4];
        for (value, &column) in values.iter_mut().zip(&columns) {
            let field = fields.get(column).map(|field| field.trim().parse::<f64>());
            *value = match field {
                Some(Ok(value)) if value.is_finite() => value,
                _ => return Err((number, format!("column {} is not a number", column + 1))),
            };
        }
        let [at_s, running, waiting, kv_percent] = values;
        if samples.last().is_some_and(|last| last.at_s > at_s) {
            return Err((number, "time goes back".to_owned()));
        }
        samples.push(Sample {
            at_s,
            running,
            waiting,
            kv_percent,
        });
    }
    Ok(samples)
}
