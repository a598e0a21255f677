//! A question and its answer, as plain data.
//!
//! Invariant: moments are since the start, and in the order in which they stand here.
//! Not here: what they come to in the mean (`soak`, `prove`).

use std::time::Duration;

/// A question whose answer its user has in full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    /// Whose, by its place in the traffic.
    pub profile: u32,
    /// Which user of the profile; `None` of an open loop.
    pub user: Option<u32>,
    /// Which conversation of the profile.
    pub session: u64,
    /// Which turn of it, from 0.
    pub turn: u32,
    /// By which engine: ranks of the first replica come first.
    pub engine: u32,
    /// The pause before it, or the gap between two arrivals; `None` where a user came back to ask.
    pub thought: Option<Duration>,
    /// It was asked.
    pub asked: Duration,
    /// The engine took it from its inbox.
    pub queued: Duration,
    /// Its first step was chosen.
    pub scheduled: Duration,
    /// The engine had its first token.
    pub made: Duration,
    /// The user had the first token.
    pub first: Duration,
    /// The user had the last token.
    pub last: Duration,
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Those of them that the prefix cache spared.
    pub cached_tokens: u32,
    /// Tokens of the answer.
    pub output_tokens: u32,
}

impl Exchange {
    /// Question to first token, at the user, seconds.
    #[must_use]
    pub fn ttft_s(&self) -> f64 {
        seconds(self.asked, self.first)
    }

    /// Question to last token, at the user, seconds.
    #[must_use]
    pub fn e2e_s(&self) -> f64 {
        seconds(self.asked, self.last)
    }

    /// From the queue's entry to the choice of the first step, seconds.
    #[must_use]
    pub fn queue_s(&self) -> f64 {
        seconds(self.queued, self.scheduled)
    }

    /// From the choice of the first step to the first token at the engine, seconds.
    #[must_use]
    pub fn prefill_s(&self) -> f64 {
        seconds(self.scheduled, self.made)
    }

    /// For each token after the first, at the user, seconds; `None` for an answer of one token.
    #[must_use]
    pub fn tpot_s(&self) -> Option<f64> {
        let after = self.output_tokens.checked_sub(1).filter(|&n| n > 0)?;
        Some(seconds(self.first, self.last) / f64::from(after))
    }
}

fn seconds(from: Duration, to: Duration) -> f64 {
    to.saturating_sub(from).as_secs_f64()
}
