//! How long things are, in tokens of the model that will answer.
//!
//! Invariant: quantiles are exact up to 2,047 and within 0.1 % above; memory does not grow with what is counted.
//! Not here: tokenizers; whoever builds a corpus gives one ([`TargetTokenizer`]).

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// What a target makes of messages.
pub trait TargetTokenizer: Sync {
    /// Names vocabulary and format, for the manifest.
    fn name(&self) -> String;

    /// A counter for one thread.
    fn counter(&self) -> Box<dyn PromptCounter + '_>;
}

/// Counts the prompts of one session after the other.
pub trait PromptCounter {
    /// Begins with a session: its tools as a JSON list, its messages as JSON objects.
    ///
    /// # Errors
    /// What the target would refuse.
    fn start(&mut self, tools: Option<&str>, messages: &[String]) -> Result<(), String>;

    /// The token ids of the prompt that these messages of the session make, by their places.
    ///
    /// # Errors
    /// What the target would refuse.
    fn prompt(&mut self, places: &[usize]) -> Result<Vec<u32>, String>;

    /// Tokens that the target would have generated for this message to be its answer.
    ///
    /// # Errors
    /// When it is no message.
    fn answer(&mut self, place: usize) -> Result<u32, String>;
}

/// A distribution, as the manifest has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// How many values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The smallest.
    pub min: u64,
    /// Half are at most this.
    pub p50: u64,
    /// Nine in ten are at most this.
    pub p90: u64,
    /// 99 in a hundred are at most this.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

/// The lengths of a profile's sessions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Geometry {
    /// Requests of a session.
    pub turns: Quantiles,
    /// Prompt tokens of its first request.
    pub first_prompt_tokens: Quantiles,
    /// Prompt tokens of every request.
    pub prompt_tokens: Quantiles,
    /// Prompt tokens that the request before did not begin with, from the second request on.
    pub new_tokens: Quantiles,
    /// Tokens of recorded answers.
    pub answer_tokens: Quantiles,
    /// Recorded think time, in milliseconds.
    pub think_ms: Quantiles,
    /// Tokens with which a session's first prompt begins as one of an earlier session did, in whole blocks.
    pub shared_first_tokens: Quantiles,
    /// Bytes of a request.
    pub request_bytes: Quantiles,
}

/// Counts values for [`Quantiles`].
#[derive(Debug)]
pub(crate) struct Distribution {
    values: Histogram<u64>,
    sum: u128,
    max: u64,
    min: u64,
}

impl Distribution {
    /// Values above are counted as this: a day in milliseconds is a tenth of it.
    const MOST: u64 = 1 << 30;

    pub(crate) fn new() -> Self {
        Self {
            // Three digits and a maximum of at least 2 are always valid.
            values: Histogram::new_with_max(Self::MOST, 3).expect("valid bounds"),
            sum: 0,
            max: 0,
            min: u64::MAX,
        }
    }

    pub(crate) fn add(&mut self, value: u64) {
        self.values.saturating_record(value);
        self.sum += u128::from(value);
        self.max = self.max.max(value);
        self.min = self.min.min(value);
    }

    pub(crate) fn quantiles(&self) -> Quantiles {
        let count = self.values.len();
        if count == 0 {
            return Quantiles::default();
        }
        let at = |quantile| {
            let value = self.values.value_at_quantile(quantile);
            value.clamp(self.min, self.max)
        };
        Quantiles {
            count,
            mean: self.sum as f64 / count as f64,
            min: self.min,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: self.max,
        }
    }
}
