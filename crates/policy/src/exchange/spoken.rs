//! What an answer of a session holds and is charged: of the Realtime API, whose prompts are all that was said before.
//!
//! Invariant: what is reported is judged as a report over HTTP is; where nothing is, an estimate is charged.
//! Not here: which model it is of ([`crate::realtime`]), reading its report (`wire::usage`).

use wire::call::Cap;
use wire::usage::Reading;

use super::answered::answered_on_socket;
use crate::estimate::Estimator;
use crate::front::Demand;
use crate::tokens::{Count, Tokens};

/// Base64 of sound for which one token of input is taken: ten a second, in 48,000 bytes of it.
const AUDIO_BYTES_PER_TOKEN: u64 = 6_400;
/// The same of output, which has twice as many.
const AUDIO_BYTES_PER_TOKEN_MADE: u64 = 3_200;
/// Tokens of input that a second of sound has.
const TOKENS_PER_SECOND: u64 = 10;

/// What the prompt of the next answer has, as far as its gate saw it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SaidSoFar {
    /// Tokens that the last answer read and made, all of which the next one reads.
    pub tokens: u64,
    /// Bytes of text since.
    pub text_bytes: u64,
    /// Bytes of sound since, in Base64.
    pub audio_bytes: u64,
}

impl SaidSoFar {
    /// What an answer may take: all of this, and as much output as its event or its session allows, or its route expects.
    #[must_use]
    pub fn demand(self, cap: Option<Cap>, output_max: Option<u64>, estimator: Estimator) -> Demand {
        let text = match self.text_bytes {
            0 => 0,
            bytes => estimator.prompt(bytes),
        };
        let sound = self.audio_bytes.div_ceil(AUDIO_BYTES_PER_TOKEN);
        let prompt = self.tokens.saturating_add(text).saturating_add(sound);
        let said = match cap {
            Some(Cap::Tokens(tokens)) => Some(tokens),
            Some(Cap::Open) | None => None,
        };
        let most = said.or(output_max);
        Demand {
            prompt,
            prompt_least: prompt,
            prompt_charged: prompt,
            completion: estimator.completion(most, 1),
            is_capped: said.is_some(),
            is_bounded: most.is_some(),
            most: output_max.into(),
        }
    }
}

/// What was seen of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SeenOfAnswer {
    /// Bytes of its text.
    pub text_bytes: u64,
    /// Bytes of its sound, in Base64.
    pub audio_bytes: u64,
}

impl SeenOfAnswer {
    /// What it is charged by what its server reports, else by what was seen of it, of a call that held so much.
    #[must_use]
    pub fn tokens(self, usage: &Reading, held: Demand) -> Tokens {
        let sound = self.audio_bytes.div_ceil(AUDIO_BYTES_PER_TOKEN_MADE);
        let bytes = self.text_bytes.saturating_add(sound.saturating_mul(4));
        answered_on_socket(usage, held, bytes)
    }

    /// What it is charged where nobody reports: its prompt as it was estimated, and what was seen of it.
    #[must_use]
    pub fn unreported(self, held: Demand) -> Tokens {
        self.tokens(&Reading::Absent, held)
    }
}

/// What was written down of so many seconds of sound, billed by these.
#[must_use]
pub fn of_seconds(seconds: u64) -> Tokens {
    Tokens {
        prompt: Count::Estimated(seconds.saturating_mul(TOKENS_PER_SECOND)),
        completion: Count::Estimated(0),
        ..Tokens::default()
    }
}

#[cfg(test)]
mod tests;
