//! The requests of a recording.
//!
//! Invariant: times of one request never go back; times count from the first arrival.
//! Not here: what they are compared with (`replay`).

use std::time::Duration;

use serde::Deserialize;

use super::At;

/// A request that was recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// As it was named.
    pub id: String,
    /// Length of the prompt.
    pub prompt_tokens: u32,
    /// Tokens generated.
    pub output_tokens: u32,
    /// When, on the engine's clock from the first arrival on.
    pub times: Times,
}

/// When a request arrived, when the engine took and scheduled it, and when its first and last token came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// It arrived.
    pub arrival: Duration,
    /// It entered the engine's queue.
    pub queued: Duration,
    /// It left the queue for the first time; in a recording without `scheduled_ts`, as it entered.
    pub scheduled: Duration,
    /// Its first token came out.
    pub first: Duration,
    /// Its last token came out.
    pub last: Duration,
}

impl Times {
    /// Seconds from arrival to the first step.
    #[must_use]
    pub fn wait(&self) -> f64 {
        (self.scheduled.saturating_sub(self.arrival)).as_secs_f64()
    }

    /// Seconds from the first step to the first token.
    #[must_use]
    pub fn prefill(&self) -> f64 {
        (self.first.saturating_sub(self.scheduled)).as_secs_f64()
    }

    /// Moves the engine's clock back against that of arrivals.
    pub(super) fn back(&mut self, by: Duration) {
        for time in [
            &mut self.queued,
            &mut self.scheduled,
            &mut self.first,
            &mut self.last,
        ] {
            *time = time.saturating_sub(by);
        }
    }

    /// Seconds from arrival to the first token.
    #[must_use]
    pub fn ttft(&self) -> f64 {
        (self.first.saturating_sub(self.arrival)).as_secs_f64()
    }

    /// Seconds for each token after the first; `None` when there was only one.
    #[must_use]
    pub fn tpot(&self, output_tokens: u32) -> Option<f64> {
        let gaps = output_tokens.checked_sub(1).filter(|&gaps| gaps > 0)?;
        Some((self.last.saturating_sub(self.first)).as_secs_f64() / f64::from(gaps))
    }

    /// Seconds from arrival to the last token.
    #[must_use]
    pub fn e2e(&self) -> f64 {
        (self.last.saturating_sub(self.arrival)).as_secs_f64()
    }
}

#[derive(Deserialize)]
struct Line {
    request_id: String,
    input_toks: u32,
    output_toks: u32,
    arrival_time: f64,
    queued_ts: f64,
    scheduled_ts: Option<f64>,
    first_token_ts: f64,
    last_token_ts: f64,
}

/// No request is longer.
const MOST_TOKENS: u32 = 1 << 24;
/// A recording has at most so many requests, and so many tokens generated: what is kept of a run's steps still fits.
const MOST_REQUESTS: usize = 1_000_000;
const MOST_OUTPUT: u64 = 500_000_000;
/// A recording is at most so long, seconds: 30 days.
const LONGEST_S: f64 = 30.0 * 86_400.0;

/// No clock says more: a hundred years.
const LATEST_S: f64 = 3.2e9;

pub(super) fn parse(text: &str) -> Result<Vec<Recorded>, At> {
    let mut lines = Vec::new();
    for (i, text) in text
        .trim_start_matches('\u{feff}')
        .lines()
        .enumerate()
        .filter(|(_, text)| !text.trim().is_empty())
    {
        let line: Line = serde_json::from_str(text).map_err(|error| (i + 1, said(&error)))?;
        check(&line).map_err(|says| (i + 1, says))?;
        lines.push(line);
    }
    lines.sort_by(|a, b| a.arrival_time.total_cmp(&b.arrival_time));
    if let (Some(first), Some(last)) = (lines.first(), lines.last()) {
        let apart = last.arrival_time - first.arrival_time;
        if apart > LONGEST_S {
            return Err((
                1,
                format!(
                    "{} arrives {apart:.0} s after {}: more than 30 days",
                    last.request_id, first.request_id
                ),
            ));
        }
    }
    let output: u64 = lines.iter().map(|line| u64::from(line.output_toks)).sum();
    if lines.len() > MOST_REQUESTS || output > MOST_OUTPUT {
        let says = format!("more than {MOST_REQUESTS} requests, or {MOST_OUTPUT} output tokens");
        return Err((1, says));
    }
    let Some(start) = lines.first().map(|line| nanos(line.arrival_time)) else {
        return Err((1, "holds no request".to_owned()));
    };
    let offset = lines
        .iter()
        .map(|line| nanos(line.queued_ts) - nanos(line.arrival_time))
        .min()
        .unwrap_or(0);
    Ok(lines
        .into_iter()
        .map(|line| recorded(line, start, offset))
        .collect())
}

/// Whole nanoseconds, so that a difference is the same whatever else was subtracted before.
fn nanos(seconds: f64) -> i128 {
    (seconds * 1e9).round() as i128
}

/// The parser sees one line only, so that only its column tells anything.
fn said(error: &serde_json::Error) -> String {
    let place = format!(" at line 1 column {}", error.column());
    let says = error.to_string();
    match says.strip_suffix(&place) {
        Some(says) => format!("column {}: {says}", error.column()),
        None => says,
    }
}

fn check(line: &Line) -> Result<(), String> {
    if line.input_toks == 0 || line.output_toks == 0 {
        return Err("a request without prompt or output tokens".to_owned());
    }
    if line.input_toks.max(line.output_toks) > MOST_TOKENS {
        return Err(format!("a request of more than {MOST_TOKENS} tokens"));
    }
    let times = [
        line.arrival_time,
        line.queued_ts,
        line.scheduled_ts.unwrap_or(line.queued_ts),
        line.first_token_ts,
        line.last_token_ts,
    ];
    if times.iter().any(|time| !time.is_finite()) {
        return Err("a time is not a number".to_owned());
    }
    if line.last_token_ts - line.queued_ts > LONGEST_S {
        return Err("it takes more than 30 days".to_owned());
    }
    if times.iter().any(|time| time.abs() > LATEST_S) {
        return Err(format!("a time is more than {LATEST_S} s from 0"));
    }
    let [_, stamps @ ..] = times;
    if !stamps.is_sorted() {
        let says = "queued_ts, scheduled_ts, first_token_ts and last_token_ts are out of order";
        return Err(says.to_owned());
    }
    Ok(())
}

fn recorded(line: Line, start: i128, offset: i128) -> Recorded {
    let since = |nanos: i128| Duration::from_nanos(u64::try_from(nanos - start).unwrap_or(0));
    let stamp = |seconds: f64| since(nanos(seconds) - offset);
    Recorded {
        id: line.request_id,
        prompt_tokens: line.input_toks,
        output_tokens: line.output_toks,
        times: Times {
            arrival: since(nanos(line.arrival_time)),
            queued: stamp(line.queued_ts),
            scheduled: stamp(line.scheduled_ts.unwrap_or(line.queued_ts)),
            first: stamp(line.first_token_ts),
            last: stamp(line.last_token_ts),
        },
    }
}
