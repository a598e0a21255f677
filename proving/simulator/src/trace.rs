//! A recorded run of a real vLLM: the texts of `requests.jsonl`, `meta.json` and, if at hand, `timeseries.csv`.
//!
//! Arrival is on the wall clock and the rest on the engine's monotonic clock. The smallest gap between arrival and
//! queueing is taken as the offset between the two, so that times count from the first arrival on one clock; what
//! the server takes at least before queueing is part of that offset and cannot be told apart. A fit, which may only
//! look at a share of the requests, takes the smallest gap among those ([`Trace::aligned`]).
//! Invariant: requests are in order of arrival; each has its tokens and its times in order; samples are in order of
//! time.
//! Not here: reading the files (`prove`), simulating the run (`replay`).

mod meta;
mod request;

pub use meta::Meta;
pub use request::{Recorded, Times};

/// A run as it was recorded.
#[derive(Clone, Debug)]
pub struct Trace {
    /// What the engine was set to.
    pub meta: Meta,
    /// In order of arrival.
    pub requests: Vec<Recorded>,
    /// One sample each second; empty without the file.
    pub timeseries: Vec<Sample>,
}

/// What the engine held in one second.
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

/// A file of a recording that does not say what it has to.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {says}")]
pub struct TraceError {
    /// Its name in the recording's folder.
    pub file: &'static str,
    /// Counts from 1.
    pub line: usize,
    /// What is wrong.
    pub says: String,
}

/// A first sample that is later than this counts from another start than the first arrival.
const LATEST_START_S: f64 = 2.0;

/// Line (from 1) and what is wrong there.
type At = (usize, String);

impl Trace {
    /// The run that these texts say.
    ///
    /// # Errors
    /// Says which file and line is not as it has to be.
    pub fn parse(
        meta_json: &str,
        requests_jsonl: &str,
        timeseries_csv: Option<&str>,
    ) -> Result<Self, TraceError> {
        let of = |file| move |(line, says)| TraceError { file, line, says };
        Ok(Self {
            meta: Meta::parse(meta_json).map_err(of("meta.json"))?,
            requests: request::parse(requests_jsonl).map_err(of("requests.jsonl"))?,
            timeseries: timeseries_csv
                .map_or(Ok(Vec::new()), parse_timeseries)
                .map_err(of("timeseries.csv"))?,
        })
    }
}

impl Trace {
    /// The same with clocks aligned by the requests of this range alone: what the others say of the offset is undone.
    #[must_use]
    pub fn aligned(&self, range: std::ops::Range<usize>) -> Self {
        let of_range = self.requests.get(range).unwrap_or_default();
        let gaps = of_range
            .iter()
            .map(|r| r.times.queued.saturating_sub(r.times.arrival));
        let by = gaps.min().unwrap_or_default();
        let mut aligned = self.clone();
        aligned.requests.iter_mut().for_each(|r| r.times.back(by));
        aligned
    }
}

fn parse_timeseries(text: &str) -> Result<Vec<Sample>, At> {
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
    let (mut samples, mut before) = (Vec::<Sample>::new(), 0.0);
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
        let [mut at_s, running, waiting, kv_percent] = values;
        // Some recorders count from their own start, before which nothing ran.
        if samples.is_empty() && at_s > LATEST_START_S {
            before = at_s - 1.0;
        }
        at_s -= before;
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

#[cfg(test)]
mod tests;
