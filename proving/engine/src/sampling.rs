//! The members that chat and plain completions share: how much to generate, in how many choices, and how to send it.
//!
//! Invariant: what passes `check` is what vLLM admits; what does not is refused in its words, in its order. Temperature
//! and its like are checked and then read by nobody: they have no effect.
//! Not here: the length that follows from them (`plan`); ranges of one number each (`knobs`).

mod knobs;

use serde::Deserialize;

use crate::error::Refusal;
use crate::json::Json;
use crate::plan::LengthSpec;
use crate::tokenizer::{TokenId, Tokenizer};
pub(crate) use knobs::Knobs;

/// More choices than this are refused.
const MAX_CHOICES: i64 = 128;
/// Most log probabilities of a token, vLLM's `--max-logprobs`.
const MAX_LOGPROBS: i64 = 20;

#[derive(Deserialize)]
pub(crate) struct Sampling {
    #[serde(flatten)]
    knobs: Knobs,
    #[serde(default)]
    max_tokens: Option<i64>,
    #[serde(default)]
    min_tokens: Option<i64>,
    #[serde(default)]
    ignore_eos: Option<bool>,
    #[serde(default)]
    n: Option<i64>,
    #[serde(default)]
    best_of: Option<i64>,
    #[serde(default)]
    use_beam_search: Option<bool>,
    #[serde(default)]
    stop: Option<Json>,
    #[serde(default)]
    stop_token_ids: Option<Vec<i64>>,
    #[serde(default)]
    allowed_token_ids: Option<Vec<i64>>,
    #[serde(default)]
    bad_words: Option<Vec<String>>,
    #[serde(default)]
    logit_bias: Option<Json>,
    #[serde(default)]
    prompt_logprobs: Option<i64>,
    #[serde(default)]
    truncate_prompt_tokens: Option<i64>,
    #[serde(default)]
    include_stop_str_in_output: Option<bool>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
}

#[derive(Clone, Copy, Default, Deserialize)]
pub(crate) struct StreamOptions {
    #[serde(default)]
    pub(crate) include_usage: Option<bool>,
    #[serde(default)]
    pub(crate) continuous_usage_stats: Option<bool>,
}

impl Sampling {
    /// The same with another most number of tokens, if one is given: chat has a newer name for it.
    pub(crate) fn capped(self, cap: Option<i64>) -> Self {
        Self {
            max_tokens: cap.or(self.max_tokens),
            ..self
        }
    }

    /// Most tokens of the answer, if the call says so.
    pub(crate) fn cap(&self) -> Option<i64> {
        self.max_tokens
    }

    pub(crate) fn check(&self, tokenizer: &Tokenizer) -> Result<(), Refusal> {
        self.check_stream()?;
        if let Some(least @ ..=-2) = self.truncate_prompt_tokens {
            return Err(too_small("truncate_prompt_tokens", -1, least));
        }
        self.check_choices()?;
        self.knobs.check()?;
        if self.min_tokens.is_some_and(|least| least < 0) {
            return Err(fault(format!(
                "min_tokens must be greater than or equal to 0, got {}.",
                self.min_tokens.unwrap_or_default()
            )));
        }
        if self.stops()?.iter().any(String::is_empty) {
            return Err(fault("stop cannot contain an empty string.".to_owned()));
        }
        if self.bad_words.iter().flatten().any(String::is_empty) {
            return Err(fault(format!(
                "bad_words cannot contain an empty string. Got bad_words={:?}",
                self.bad_words.as_deref().unwrap_or_default()
            )));
        }
        self.check_ids(tokenizer.vocabulary_size())
    }

    fn check_stream(&self) -> Result<(), Refusal> {
        if self.stream_options.is_some() && !self.streams() {
            let why = "Stream options can only be defined when `stream=True`.";
            return Err(Refusal::bad_request(why).about("stream_options"));
        }
        let about = |why: &str| Err(Refusal::bad_request(why).about("prompt_logprobs"));
        match self.prompt_logprobs {
            Some(-1 | 1..) if self.streams() => {
                about("`prompt_logprobs` are not available when `stream=True`.")
            }
            Some(..=-2) => about("`prompt_logprobs` must be a positive value or -1."),
            _ => Ok(()),
        }
    }

    fn check_choices(&self) -> Result<(), Refusal> {
        let n = self.n.unwrap_or(1);
        let about = |why: String| Err(Refusal::bad_request(why).about("n"));
        match (n, self.best_of) {
            (..=0, _) => about(format!("n must be at least 1, got {n}.")),
            (_, _) if n > MAX_CHOICES => {
                about(format!("n must be at most {MAX_CHOICES}, got {n}."))
            }
            (_, Some(best_of @ ..=0)) => {
                Err(fault(format!("best_of must be at least 1, got {best_of}")))
            }
            (_, Some(best_of)) if best_of < n => Err(fault(format!(
                "best_of must be greater than or equal to n, got n={n} and best_of={best_of}."
            ))),
            (_, Some(2..)) => Err(fault("vLLM V1 does not yet support best_of.".to_owned())),
            _ if self.use_beam_search == Some(true) => {
                let why = "use_beam_search is not simulated";
                Err(Refusal::bad_request(why).about("use_beam_search"))
            }
            _ if n > 1 && self.knobs.is_greedy() => Err(fault(format!(
                "n must be 1 when using greedy sampling, got {n}."
            ))),
            _ => Ok(()),
        }
    }

    /// Whether every id that the call names is one of the vocabulary.
    fn check_ids(&self, size: usize) -> Result<(), Refusal> {
        let logprobs = self.prompt_logprobs.unwrap_or(0);
        check_logprobs("prompt", logprobs, size)
            .map_err(|why| Refusal::bad_request(why).about("prompt_logprobs"))?;
        let outside = |ids: &[i64]| -> Vec<i64> {
            let is_outside = |id: &&i64| usize::try_from(**id).is_ok_and(|id| id < size);
            ids.iter().filter(|id| !is_outside(id)).copied().collect()
        };
        let unknown = |ids: Vec<i64>, member: &'static str| {
            let why = format!(
                "token_id(s) {ids:?} in {member} contain out-of-vocab token ids. Vocabulary size: {size}"
            );
            Err(Refusal::bad_request(why).about(member))
        };
        let bias = outside(&self.biased()?);
        if !bias.is_empty() {
            return unknown(bias, "logit_bias");
        }
        let stops = outside(self.stop_token_ids.as_deref().unwrap_or_default());
        if !stops.is_empty() {
            return unknown(stops, "stop_token_ids");
        }
        let about = |why: &str| Err(Refusal::bad_request(why).about("allowed_token_ids"));
        match self.allowed_token_ids.as_deref() {
            Some([]) => about("allowed_token_ids is not None and empty!"),
            Some(ids) if !outside(ids).is_empty() => {
                about("allowed_token_ids contains out-of-vocab token id!")
            }
            _ => Ok(()),
        }
    }

    /// The tokens of `logit_bias`.
    fn biased(&self) -> Result<Vec<i64>, Refusal> {
        let about = |why: String| Refusal::bad_request(why).about("logit_bias");
        let bias = match &self.logit_bias {
            None | Some(Json::Null) => return Ok(Vec::new()),
            Some(Json::Object(bias)) => bias,
            Some(_) => return Err(about("logit_bias must be an object".to_owned())),
        };
        if let Some((name, _)) = bias.iter().find(|(_, by)| !matches!(by, Json::Number(_))) {
            return Err(about(format!("logit_bias of {name:?} must be a number")));
        }
        let id = |(name, _): &(String, Json)| name.trim().parse::<i64>().map_err(|_| name.clone());
        let ids: Vec<Result<i64, String>> = bias.iter().map(id).collect();
        let wrong: Vec<&String> = ids.iter().filter_map(|id| id.as_ref().err()).collect();
        if !wrong.is_empty() {
            return Err(about(format!(
                "logit_bias contains key(s) that cannot be converted to integer token IDs: {wrong:?}"
            )));
        }
        Ok(ids.into_iter().flatten().collect())
    }

    pub(crate) fn streams(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    pub(crate) fn stream_options(&self) -> StreamOptions {
        self.stream_options.unwrap_or_default()
    }

    pub(crate) fn choices(&self) -> usize {
        usize::try_from(self.n.unwrap_or(1)).unwrap_or(1)
    }

    /// How many log probabilities of each token of the prompt are asked for.
    pub(crate) fn prompt_logprobs(&self) -> Option<usize> {
        self.prompt_logprobs
            .and_then(|top| usize::try_from(top).ok())
    }

    /// Keeps the end of a prompt, as many tokens as the call says; with -1 as many as leave room for its output.
    pub(crate) fn truncate(
        &self,
        mut prompt: Vec<TokenId>,
        max_model_len: usize,
    ) -> Result<Vec<TokenId>, Refusal> {
        let about = |why: String| Err(Refusal::bad_request(why).about("truncate_prompt_tokens"));
        let Some(kept) = self.truncate_prompt_tokens else {
            return Ok(prompt);
        };
        let cap = self.max_tokens.unwrap_or(0);
        let room = max_model_len.saturating_sub(usize::try_from(cap).unwrap_or(0));
        let kept = usize::try_from(kept).unwrap_or(room);
        if kept > max_model_len {
            return about(format!(
                "truncate_prompt_tokens value ({kept}) is greater than max_model_len ({max_model_len}). Please \
                 request a smaller truncation size."
            ));
        }
        if kept == 0 {
            return about("The decoder prompt cannot be empty".to_owned());
        }
        prompt.drain(..prompt.len().saturating_sub(kept));
        Ok(prompt)
    }

    pub(crate) fn lengths(&self) -> Result<LengthSpec, Refusal> {
        Ok(LengthSpec {
            cap: self.max_tokens,
            min: u64::try_from(self.min_tokens.unwrap_or(0)).unwrap_or(0),
            ignore_eos: self.ignore_eos.unwrap_or(false),
            choices: self.choices(),
            stops: self.stops()?,
            stop_included: self.include_stop_str_in_output.unwrap_or(false),
        })
    }

    fn stops(&self) -> Result<Vec<String>, Refusal> {
        let fault =
            || Refusal::bad_request("stop must be a string or a list of strings").about("stop");
        match &self.stop {
            None | Some(Json::Null) => Ok(Vec::new()),
            Some(Json::String(one)) => Ok(vec![one.clone()]),
            Some(Json::Array(all)) => all
                .iter()
                .map(|one| one.as_str().map(str::to_owned).ok_or_else(fault))
                .collect(),
            Some(_) => Err(fault()),
        }
    }
}

/// Whether so many log probabilities of each token of `what` (sample, prompt) are not too many; -1 is the whole
/// vocabulary. Says what is wrong.
pub(crate) fn check_logprobs(what: &str, asked: i64, vocabulary: usize) -> Result<(), String> {
    let asked = if asked == -1 {
        vocabulary as i64
    } else {
        asked
    };
    if asked > MAX_LOGPROBS {
        return Err(format!(
            "Requested {what} logprobs of {asked}, which is greater than max allowed: {MAX_LOGPROBS}"
        ));
    }
    Ok(())
}

fn fault(why: String) -> Refusal {
    Refusal::bad_request(why)
}

/// A number below its bound, in the words of the library that reads vLLM's requests.
fn too_small(member: &'static str, least: i64, given: i64) -> Refusal {
    Refusal::bad_request(format!(
        "1 validation error:\n  {{'type': 'greater_than_equal', 'loc': ('body', '{member}'), 'msg': 'Input should be \
         greater than or equal to {least}', 'input': {given}, 'ctx': {{'ge': {least}}}}}"
    ))
    .about(member)
}
