//! One call made plain: how many tokens come out, at what pace, and why they end.
//!
//! Invariant: prompt and output together never exceed `max_model_len`; a cap is never exceeded; `Finish::Length`
//! only when a cap or the context cut the output.
//! Not here: reading messages (`validate`), the bytes of an answer (`chat`, `completions`, `responses`).

use std::time::Duration;

use http::HeaderMap;

use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::text::{Output, Rng, Tally};

const SHORTEST_TOKENS: usize = 8;
const LONGEST_TOKENS: usize = 64;
const MAX_PAD_BYTES: usize = 64 << 20;

/// Why generation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finish {
    Stop,
    Length,
}

impl Finish {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
        }
    }
}

/// What the call says about its output's length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wanted {
    pub(crate) cap: Option<i64>,
    pub(crate) min: u64,
    pub(crate) ignore_eos: bool,
}

/// What `x-engine-*` headers say instead of the configuration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overrides {
    ttft: Option<Duration>,
    itl: Option<Duration>,
    tokens: Option<usize>,
    content_bytes: usize,
}

impl Overrides {
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, Refusal> {
        Ok(Self {
            ttft: number(headers, "x-engine-ttft-ms")?.map(Duration::from_millis),
            itl: number(headers, "x-engine-itl-ms")?.map(Duration::from_millis),
            tokens: number(headers, "x-engine-tokens")?.map(|n| n as usize),
            content_bytes: number(headers, "x-engine-content-bytes")?
                .map_or(0, |n| (n as usize).min(MAX_PAD_BYTES)),
        })
    }
}

fn number(headers: &HeaderMap, name: &str) -> Result<Option<u64>, Refusal> {
    let Some(value) = headers.get(name) else {
        return Ok(None);
    };
    let parsed = value.to_str().ok().and_then(|v| v.trim().parse().ok());
    parsed
        .map(Some)
        .ok_or_else(|| Refusal::bad_request(format!("header {name} must be a whole number")))
}

/// A call that was understood and admitted.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) prompt_tokens: u64,
    pub(crate) output: Output,
    pub(crate) finish: Finish,
    pub(crate) ttft: Duration,
    pub(crate) itl: Duration,
}

impl Plan {
    /// Settles length, text and pace. `forced` is output that is already decided, such as a tool call's arguments.
    pub(crate) fn settle(
        config: &EngineConfig,
        prompt: Tally,
        wanted: Wanted,
        forced: Option<String>,
        overrides: Overrides,
    ) -> Result<Self, Refusal> {
        let limit = output_limit(config.max_model_len, prompt.tokens, wanted.cap)?;
        let mut rng = Rng(prompt.hash);
        let (output, finish) = match forced {
            Some(text) => {
                let mut output = Output::of(text);
                let cut = output.truncate(limit);
                (output, if cut { Finish::Length } else { Finish::Stop })
            }
            None => {
                let (tokens, finish) = length(&mut rng, limit, wanted, overrides.tokens);
                (
                    Output::compose(rng.next(), tokens).pad(overrides.content_bytes),
                    finish,
                )
            }
        };
        Ok(Self {
            prompt_tokens: prompt.tokens,
            output,
            finish,
            ttft: overrides.ttft.unwrap_or(config.ttft),
            itl: overrides.itl.unwrap_or(config.inter_token),
        })
    }

    pub(crate) fn completion_tokens(&self) -> usize {
        self.output.tokens()
    }

    /// From arrival to the last token.
    pub(crate) fn total(&self) -> Duration {
        let gaps = u32::try_from(self.completion_tokens().saturating_sub(1)).unwrap_or(u32::MAX);
        self.ttft.saturating_add(self.itl.saturating_mul(gaps))
    }
}

fn length(rng: &mut Rng, limit: usize, wanted: Wanted, exact: Option<usize>) -> (usize, Finish) {
    let drawn = SHORTEST_TOKENS + rng.below(LONGEST_TOKENS - SHORTEST_TOKENS + 1);
    let natural = exact.unwrap_or_else(|| drawn.max(wanted.min as usize));
    if wanted.ignore_eos || natural > limit {
        (limit, Finish::Length)
    } else {
        (natural, Finish::Stop)
    }
}

/// Most tokens that this call may generate.
fn output_limit(
    max_model_len: usize,
    prompt_tokens: u64,
    cap: Option<i64>,
) -> Result<usize, Refusal> {
    let room = (max_model_len as u64).saturating_sub(prompt_tokens);
    if room == 0 {
        return Err(Refusal::bad_request(format!(
            "This model's maximum context length is {max_model_len} tokens. However, your request has \
             {prompt_tokens} input tokens. Please reduce the length of the input messages."
        ))
        .about("input_tokens"));
    }
    let Some(cap) = cap else {
        return Ok(room as usize);
    };
    match u64::try_from(cap) {
        Ok(0) | Err(_) => {
            Err(Refusal::bad_request(format!("max_tokens must be at least 1, got {cap}.")).about("max_tokens"))
        }
        Ok(cap) if cap > room => Err(Refusal::bad_request(format!(
            "'max_tokens' or 'max_completion_tokens' is too large: {cap}. This model's maximum context length is \
             {max_model_len} tokens and your request has {prompt_tokens} input tokens ({cap} > {max_model_len} - \
             {prompt_tokens})."
        ))
        .about("max_tokens")),
        Ok(cap) => Ok(cap as usize),
    }
}

#[cfg(test)]
mod tests;
