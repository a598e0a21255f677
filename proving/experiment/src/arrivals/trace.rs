//! Recorded arrivals, in the forms in which they are published.
//!
//! Invariant: arrivals ascend from 0, the first of the trace; a line that cannot be read is an error with its number,
//! never skipped.
//! Not here: reading files; pauses inside sessions.

mod azure;
mod burstgpt;
mod mooncake;
mod servegen;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

/// More arrivals than this are refused: a week of the largest published trace has fewer.
const MOST_ARRIVALS: usize = 50_000_000;

/// A recorded sequence of arrivals. Copies share their memory.
#[derive(Debug, Clone)]
pub struct Trace {
    name: Arc<str>,
    arrivals: Arc<[Traced]>,
}

/// One recorded arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traced {
    /// Since the first of the trace.
    pub at: Duration,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens of the answer.
    pub output_tokens: u32,
    /// Names of the prompt's blocks, which prompts with a common beginning have in common; empty where not recorded.
    pub blocks: Vec<u64>,
}

/// A trace that cannot be read.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{name}, line {line}: {says}")]
pub struct TraceError {
    /// The trace.
    pub name: String,
    /// From 1.
    pub line: usize,
    /// What is wrong.
    pub says: String,
}

impl PartialEq for Trace {
    /// Whether both are the same trace or have the same arrivals; names say nothing.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.arrivals, &other.arrivals) || self.arrivals == other.arrivals
    }
}

impl Trace {
    /// Reads any form, told apart by the first line: `{` begins Mooncake's, a header BurstGPT's and Azure's, six fields without one
    /// ServeGen's.
    ///
    /// Azure's is CSV with the header `TIMESTAMP,ContextTokens,GeneratedTokens` and moments such as
    /// `2023-11-16 18:17:03.9799600`. Mooncake's is a JSON object on each line with `timestamp` (milliseconds),
    /// `input_length`, `output_length` and `hash_ids`; other members are left unread. BurstGPT's is CSV whose header has `Timestamp`
    /// (seconds), `Request tokens` and `Response tokens`. ServeGen's is a client's windows, from which arrivals are drawn; without its
    /// other file all are one token long ([`Trace::servegen`]).
    ///
    /// # Errors
    /// A line that is not of the form, or before the one above it in time; a trace without arrivals.
    pub fn parse(name: &str, text: &str) -> Result<Self, TraceError> {
        if text.trim_start().starts_with('{') {
            return Self::mooncake(name, text);
        }
        let first = numbered(text).next().map_or("", |(_, line)| line);
        if burstgpt::columns(first).is_some() {
            Self::burstgpt(name, text)
        } else if servegen::is_window(first) {
            Self::servegen(name, text, None)
        } else {
            Self::azure(name, text)
        }
    }

    /// Whether a text is a client's windows of ServeGen, whose lengths stand in another file.
    #[must_use]
    pub fn is_servegen(text: &str) -> bool {
        let first = numbered(text).next();
        first.is_some_and(|(_, line)| servegen::is_window(line))
    }

    /// Reads BurstGPT's form.
    ///
    /// # Errors
    /// As of [`Trace::parse`].
    pub fn burstgpt(name: &str, text: &str) -> Result<Self, TraceError> {
        let mut lines = numbered(text);
        let header = lines.next();
        let columns = header.and_then(|(_, header)| burstgpt::columns(header));
        let Some(columns) = columns else {
            let says = "the header with Timestamp, Request tokens and Response tokens is missing";
            return Err(error(name, 1, says.into()));
        };
        Self::of(name, lines, |line| burstgpt::read(line, columns))
    }

    /// Draws the arrivals of one of ServeGen's clients: of its windows, and of its lengths where the other file is given. They are
    /// the same each time.
    ///
    /// # Errors
    /// As of [`Trace::parse`]; lengths that cannot be read are an error of line 1.
    pub fn servegen(name: &str, windows: &str, lengths: Option<&str>) -> Result<Self, TraceError> {
        let lengths = lengths.map(servegen::Dataset::parse).transpose();
        let lengths = lengths.map_err(|says| error(name, 1, format!("its lengths: {says}")))?;
        let lengths = lengths.unwrap_or_default();
        let mut all = Vec::new();
        for (line, text) in numbered(windows) {
            let window = servegen::window(text).map_err(|says| error(name, line, says))?;
            let before = all.last().map(|before| servegen::begins(*before));
            if before.is_some_and(|before| before >= servegen::begins(window)) {
                return Err(error(name, line, "comes before the line above it".into()));
            }
            all.push(window);
        }
        let mut arrivals: Vec<Traced> = Vec::new();
        for (at, window) in all.iter().enumerate() {
            let next = all.get(at + 1).map(|next| servegen::begins(*next));
            arrivals.extend(servegen::arrivals(*window, next, &lengths));
            if arrivals.len() > MOST_ARRIVALS {
                let says = format!("more than {MOST_ARRIVALS} arrivals");
                return Err(error(name, at + 1, says));
            }
        }
        Self::from_first(name, arrivals)
    }

    /// Reads Azure's form.
    ///
    /// # Errors
    /// As of [`Trace::parse`].
    pub fn azure(name: &str, text: &str) -> Result<Self, TraceError> {
        let mut lines = numbered(text);
        match lines.next() {
            Some((_, header)) if header.trim_start_matches('\u{feff}') == azure::HEADER => {}
            first => {
                let line = first.map_or(1, |(line, _)| line);
                let says = format!("the header {} is missing", azure::HEADER);
                return Err(error(name, line, says));
            }
        }
        Self::of(name, lines, azure::read)
    }

    /// Reads Mooncake's form.
    ///
    /// # Errors
    /// As of [`Trace::parse`].
    pub fn mooncake(name: &str, text: &str) -> Result<Self, TraceError> {
        Self::of(name, numbered(text), mooncake::read)
    }

    /// The name under which it was read.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its arrivals, ascending; at least one.
    #[must_use]
    pub fn arrivals(&self) -> &[Traced] {
        &self.arrivals
    }

    /// Arrivals a second between the first and the last; `None` where they are at one moment.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let span = self.arrivals.last()?.at.as_secs_f64();
        (span > 0.0).then(|| (self.arrivals.len() - 1) as f64 / span)
    }

    fn of<'a>(
        name: &str,
        lines: impl Iterator<Item = (usize, &'a str)>,
        read: impl Fn(&str) -> Result<Traced, String>,
    ) -> Result<Self, TraceError> {
        let mut arrivals: Vec<Traced> = Vec::new();
        for (line, text) in lines {
            let arrival = read(text).map_err(|says| error(name, line, says))?;
            if arrivals.last().is_some_and(|last| last.at > arrival.at) {
                return Err(error(name, line, "comes before the line above it".into()));
            }
            if arrivals.len() == MOST_ARRIVALS {
                let says = format!("more than {MOST_ARRIVALS} arrivals");
                return Err(error(name, line, says));
            }
            arrivals.push(arrival);
        }
        Self::from_first(name, arrivals)
    }

    /// Moments count from the first.
    fn from_first(name: &str, mut arrivals: Vec<Traced>) -> Result<Self, TraceError> {
        let Some(first) = arrivals.first().map(|first| first.at) else {
            return Err(error(name, 1, "has no arrivals".into()));
        };
        arrivals.iter_mut().for_each(|arrival| arrival.at -= first);
        Ok(Self {
            name: name.into(),
            arrivals: arrivals.into(),
        })
    }
}

/// Lines that say something, numbered from 1.
fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..)
        .zip(text.lines())
        .map(|(line, text)| (line, text.trim_end()))
        .filter(|(_, text)| !text.is_empty())
}

fn error(name: &str, line: usize, says: String) -> TraceError {
    let name = name.into();
    TraceError { name, line, says }
}
