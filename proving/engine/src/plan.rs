//! One call made plain: how many tokens come out of each choice, at what pace, and why they end.
//!
//! Invariant: prompt and output together never exceed `max_model_len`; a cap is never exceeded; `Finish::Length`
//! only when a cap or the context cut the output.
//! Not here: reading messages (`validate`), the bytes of an answer (`chat`, `completions`, `responses`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use experiment::random::Rng;
use http::HeaderMap;

use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::model::Model;
use crate::tokenizer::TokenId;
use crate::turn::{AnswerSpec, Turn};

/// Longest answer that a call without a cap is given in one piece of memory.
const MAX_OUTPUT_TOKENS: usize = 1 << 20;

/// Most tokens of all choices of a call together, and most of their prompts, each counted for each of its choices.
const MAX_CALL_TOKENS: usize = 1 << 20;
const MAX_CALL_PROMPT_TOKENS: usize = 1 << 24;

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
#[derive(Clone, Debug)]
pub(crate) struct LengthSpec {
    pub(crate) cap: Option<i64>,
    pub(crate) min: u64,
    pub(crate) ignore_eos: bool,
    pub(crate) choices: usize,
    pub(crate) stops: Vec<String>,
    pub(crate) stop_included: bool,
}

impl Default for LengthSpec {
    fn default() -> Self {
        Self {
            cap: None,
            min: 0,
            ignore_eos: false,
            choices: 1,
            stops: Vec::new(),
            stop_included: false,
        }
    }
}

impl LengthSpec {
    /// Refuses a least number of tokens that the most, `limit`, does not allow.
    fn check_least(&self, limit: usize) -> Result<(), Refusal> {
        if self.min > limit as u64 {
            return Err(Refusal::bad_request(format!(
                "min_tokens must be less than or equal to max_tokens={limit}, got {}.",
                self.min
            )));
        }
        Ok(())
    }

    fn at_least(&self, tokens: usize) -> usize {
        tokens.max(usize::try_from(self.min).unwrap_or(usize::MAX))
    }
}

/// What `x-engine-*` headers say instead of the configuration.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Overrides {
    ttft: Option<Duration>,
    itl: Option<Duration>,
    tokens: Option<usize>,
}

impl Overrides {
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, Refusal> {
        Ok(Self {
            ttft: number(headers, "x-engine-ttft-ms")?.map(Duration::from_millis),
            itl: number(headers, "x-engine-itl-ms")?.map(Duration::from_millis),
            tokens: number(headers, "x-engine-tokens")?
                .map(|n| (n as usize).clamp(1, MAX_OUTPUT_TOKENS)),
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

/// One choice of an answer.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) turn: Turn,
    pub(crate) finish: Finish,
    /// Most tokens that it could have had.
    pub(crate) limit: usize,
    /// Tokens of its prompt that were in the cache, once it is scheduled.
    pub(crate) cached: Arc<AtomicU64>,
}

/// A call that was understood and admitted.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The prompts; all but a batch of plain completions have one. Choices go by prompt.
    pub(crate) prompts: Vec<Vec<TokenId>>,
    pub(crate) choices: Vec<Choice>,
    pub(crate) ttft: Duration,
    pub(crate) itl: Duration,
    /// Whether what is cached of the prompts need not be computed: log probabilities of a prompt need all of it.
    pub(crate) reads_cache: bool,
    /// Whether usage says how much of the prompts was cached.
    tells_cached: bool,
}

impl Plan {
    /// Settles length, text and pace of every choice of every prompt.
    pub(crate) fn settle(
        config: &EngineConfig,
        model: &Model,
        prompts: Vec<Vec<TokenId>>,
        lengths: &LengthSpec,
        spec: &AnswerSpec,
        overrides: Overrides,
    ) -> Result<Self, Refusal> {
        let prompt_tokens: usize = prompts.iter().map(Vec::len).sum();
        let read = prompt_tokens.saturating_mul(lengths.choices);
        check_together("prompts", read, MAX_CALL_PROMPT_TOKENS)?;
        let mut choices = Vec::with_capacity(prompts.len() * lengths.choices);
        let mut together = 0;
        for prompt in &prompts {
            let limit = output_limit(config.max_model_len, prompt.len() as u64, lengths.cap)?;
            lengths.check_least(limit)?;
            let mut rng = Rng::new(model.seed(config.seed, prompt));
            for _ in 0..lengths.choices {
                let mut rng = Rng::new(rng.bits());
                let drawn = config.output_tokens.draw(&mut rng, spec.harmony);
                let natural = overrides.tokens.unwrap_or_else(|| lengths.at_least(drawn));
                let choice = choice(model, rng, limit, lengths, spec, natural)?;
                together += choice.turn.tokens();
                check_together("choices", together, MAX_CALL_TOKENS)?;
                choices.push(choice);
            }
        }
        Ok(Self {
            prompts,
            choices,
            ttft: overrides.ttft.unwrap_or(config.ttft),
            itl: overrides.itl.unwrap_or(config.inter_token),
            reads_cache: true,
            tells_cached: config.enable_prompt_tokens_details,
        })
    }

    /// Tokens of the prompts that were in the cache; each prompt counts once, however many choices it has.
    pub(crate) fn cached_tokens(&self) -> u64 {
        let firsts = self.choices.iter().step_by(self.choices_each());
        firsts
            .map(|choice| choice.cached.load(Ordering::Relaxed))
            .sum()
    }

    /// The same, where usage is to say it: as in vLLM not if it is 0.
    pub(crate) fn told_cached_tokens(&self) -> Option<u64> {
        Some(self.cached_tokens()).filter(|cached| self.tells_cached && *cached > 0)
    }

    pub(crate) fn prompt_tokens(&self) -> u64 {
        self.prompts.iter().map(|prompt| prompt.len() as u64).sum()
    }

    /// Choices of each prompt.
    pub(crate) fn choices_each(&self) -> usize {
        (self.choices.len() / self.prompts.len().max(1)).max(1)
    }

    /// Which of the prompts is that of choice `i`.
    pub(crate) fn prompt_index(&self, i: usize) -> usize {
        i / self.choices_each()
    }

    /// The prompt of choice `i`.
    pub(crate) fn prompt_of(&self, i: usize) -> &[TokenId] {
        self.prompts
            .get(self.prompt_index(i))
            .map_or(&[], Vec::as_slice)
    }

    pub(crate) fn completion_tokens(&self) -> usize {
        self.choices.iter().map(|choice| choice.turn.tokens()).sum()
    }

    pub(crate) fn reasoning_tokens(&self) -> usize {
        self.choices
            .iter()
            .map(|choice| choice.turn.reasoning_tokens())
            .sum()
    }

    pub(crate) fn longest(&self) -> usize {
        self.choices
            .iter()
            .map(|choice| choice.turn.tokens())
            .max()
            .unwrap_or(0)
    }

    /// From arrival to the last token, at the plan's own pace.
    pub(crate) fn total(&self) -> Duration {
        let gaps = u32::try_from(self.longest().saturating_sub(1)).unwrap_or(u32::MAX);
        self.ttft.saturating_add(self.itl.saturating_mul(gaps))
    }
}

/// Refuses a call whose `what` have more tokens together than the server, which has one thread, takes at once.
fn check_together(what: &str, tokens: usize, most: usize) -> Result<(), Refusal> {
    if tokens <= most {
        return Ok(());
    }
    let why = format!(
        "The {what} of this call have more than {most} tokens together, all choices counted, which is the most of this \
         server. Ask for fewer choices (n) or prompts, or for shorter ones."
    );
    Err(Refusal::bad_request(why).about("n"))
}

fn choice(
    model: &Model,
    mut rng: Rng,
    limit: usize,
    lengths: &LengthSpec,
    spec: &AnswerSpec,
    natural: usize,
) -> Result<Choice, Refusal> {
    let seed = rng.bits();
    let content = spec.content.as_ref().filter(|_| spec.tool.is_none());
    let content = content.map(|content| content.text(seed)).transpose()?;
    let decided = spec.tool.is_some() || content.is_some();
    let ends_itself = decided || !(lengths.ignore_eos || natural > limit);
    // An answer that is to be cut is one that would have gone on.
    let tokens = if ends_itself {
        natural
    } else {
        limit.saturating_add(8)
    };
    let tokens = tokens.min(MAX_OUTPUT_TOKENS);
    let mut turn = Turn::compose(&model.composer, seed, tokens, spec, content);
    let least = usize::try_from(lengths.min).unwrap_or(usize::MAX);
    turn.stop_at(&lengths.stops, least, lengths.stop_included);
    let cut = turn.cut(limit);
    if cut {
        turn.stopped_by = None;
    } else if ends_itself && !decided {
        turn.cut(natural);
    }
    Ok(Choice {
        turn,
        limit,
        cached: Arc::default(),
        finish: if cut { Finish::Length } else { Finish::Stop },
    })
}

/// Most tokens that this call may generate.
pub(crate) fn output_limit(
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
