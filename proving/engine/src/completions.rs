//! `/v1/completions`: plain prompts, and their text whole or as chunks.
//!
//! Invariant: one chunk for every `stream_interval` tokens, the last with its finish, and usage only if asked.
//! Choices go by prompt, `n` for each.
//! Not here: the lists of log probabilities (`logprobs`), suffix (refused), time (`pace`).

mod logprobs;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::usage_of;
use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::generation::Identity;
use crate::json::Json;
use crate::logprobs::{check_entries, entries, of_prompt};
use crate::model::Model;
use crate::pace::{AnswerWriter, Events};
use crate::plan::{Finish, LengthSpec, Overrides, Plan};
use crate::sampling::{Sampling, StreamOptions, check_logprobs};
use crate::structured;
use crate::tokenizer::{TokenId, Tokenizer};
use crate::turn::{AnswerSpec, Channel};
use logprobs::Lists;

/// vLLM's and OpenAI's default cap where the call names none.
const DEFAULT_CAP: i64 = 16;
/// Most tokens of prompts that are said again, each counted for each of its choices.
const MAX_ECHOED: u64 = 1 << 20;
/// More prompts in one call are refused.
const MAX_PROMPTS: usize = 128;

#[derive(Deserialize)]
pub(crate) struct CompletionRequest {
    prompt: Json,
    #[serde(default)]
    add_special_tokens: Option<bool>,
    #[serde(default)]
    logprobs: Option<i64>,
    #[serde(default)]
    echo: Option<bool>,
    #[serde(default)]
    suffix: Option<String>,
    #[serde(flatten)]
    structured: structured::Asked,
    #[serde(flatten)]
    sampling: Sampling,
}

pub(crate) struct Completion {
    who: Identity,
    plan: Plan,
    options: StreamOptions,
    /// Alternatives to show with each token, if log probabilities are to be shown.
    logprobs: Option<usize>,
    /// The prompts as they are said before what is generated; empty where they are not.
    echoed: Vec<Echoed>,
    /// Of each prompt, if they are to be shown.
    prompt_logprobs: Vec<Value>,
    /// Only the prompt was asked for: the one token that the engine makes is not said.
    only_prompt: bool,
    sent: Vec<usize>,
}

/// A prompt that is said again.
struct Echoed {
    text: String,
    pieces: Vec<String>,
}

impl Echoed {
    fn of(tokenizer: &Tokenizer, prompt: &[TokenId]) -> Self {
        let text = |ids: &[TokenId]| tokenizer.decode(ids).unwrap_or_default();
        Self {
            text: text(prompt),
            pieces: prompt.iter().map(|id| text(&[*id])).collect(),
        }
    }
}

impl CompletionRequest {
    /// Its prompts, cut where it says so.
    pub(crate) fn asked(
        &self,
        config: &EngineConfig,
        model: &Model,
    ) -> Result<Vec<Vec<TokenId>>, Refusal> {
        let truncated = |prompt| self.sampling.truncate(prompt, config.max_model_len);
        let prompts = prompts(&self.prompt, model, self.add_special_tokens.unwrap_or(true))?;
        prompts.into_iter().map(truncated).collect()
    }

    /// Most tokens of an answer.
    pub(crate) fn cap(&self) -> Option<i64> {
        self.sampling.cap().or(Some(DEFAULT_CAP))
    }

    fn check(&self, tokenizer: &Tokenizer) -> Result<(), Refusal> {
        let about = |why: &str| Err(Refusal::bad_request(why).about("logprobs"));
        if let Some(..=-2) = self.logprobs {
            return about("`logprobs` must be a positive value or -1.");
        }
        self.sampling.check(tokenizer)?;
        if self.suffix.is_some() {
            return Err(Refusal::bad_request("suffix is not currently supported").about("suffix"));
        }
        let size = tokenizer.vocabulary_size();
        check_logprobs("sample", self.logprobs.unwrap_or(0), size).or_else(|why| about(&why))
    }

    fn echoes(&self) -> bool {
        self.echo == Some(true)
    }

    /// Most tokens to generate; of an echo that asks for none the engine makes one.
    fn lengths(&self) -> Result<(LengthSpec, bool), Refusal> {
        let lengths = self.sampling.lengths()?;
        let only_prompt = self.echoes() && lengths.cap == Some(0);
        let cap = if only_prompt {
            Some(1)
        } else {
            lengths.cap.or(Some(DEFAULT_CAP))
        };
        Ok((LengthSpec { cap, ..lengths }, only_prompt))
    }

    /// Refuses what would make all other calls wait while its answer is written. Of a stream every event is small.
    fn check_size(&self, plan: &Plan) -> Result<(), Refusal> {
        let read = plan.prompt_tokens() * plan.choices_each() as u64;
        if self.echoes() && read > MAX_ECHOED {
            let why = format!(
                "The prompts to echo have {read} tokens, all choices counted, and {MAX_ECHOED} is the most of this server."
            );
            return Err(Refusal::bad_request(why).about("echo"));
        }
        let top = self.logprobs.and_then(|top| usize::try_from(top).ok());
        let said = match self.sampling.streams() {
            true => 0,
            false => entries(plan.completion_tokens() as u64, top),
        };
        check_entries(said + entries(read, self.prompt_logprobs()), "logprobs")
    }

    /// How many log probabilities of each token of a prompt are shown: an echo shows as many as of the answer's.
    fn prompt_logprobs(&self) -> Option<usize> {
        let of_answer = || {
            usize::try_from(self.logprobs?)
                .ok()
                .filter(|_| self.echoes())
        };
        self.sampling.prompt_logprobs().or_else(of_answer)
    }
}

impl Completion {
    /// Checks the request and plans its answer. Returns it with whether it is to be streamed.
    pub(crate) fn admit(
        config: &EngineConfig,
        model: &Model,
        request: &CompletionRequest,
        who: Identity,
        overrides: Overrides,
    ) -> Result<(Self, bool), Refusal> {
        let tokenizer = model.tokenizer();
        request.check(tokenizer)?;
        let prompts = request.asked(config, model)?;
        let (lengths, only_prompt) = request.lengths()?;
        // A plain prompt is continued as text, whatever the model's format.
        let spec = AnswerSpec {
            harmony: false,
            reasoning_eighths: 0,
            tool: None,
            content: request.structured.constraint()?,
        };
        let mut plan = Plan::settle(config, model, prompts, &lengths, &spec, overrides)?;
        request.check_size(&plan)?;
        let echoed = plan.prompts.iter().filter(|_| request.echoes());
        let echoed = echoed.map(|prompt| Echoed::of(tokenizer, prompt)).collect();
        let top = request.prompt_logprobs();
        plan.reads_cache = top.is_none();
        let of_prompt = |top| {
            plan.prompts
                .iter()
                .map(move |p| of_prompt(tokenizer, p, top))
        };
        let prompt_logprobs = top.into_iter().flat_map(of_prompt).collect();
        let sent = vec![0; plan.choices.len()];
        Ok((
            Self {
                who,
                plan,
                options: request.sampling.stream_options(),
                logprobs: request.logprobs.and_then(|top| usize::try_from(top).ok()),
                echoed,
                prompt_logprobs,
                only_prompt,
                sent,
            },
            request.sampling.streams(),
        ))
    }

    fn event(&self, choices: Value, completion_tokens: Option<usize>) -> Bytes {
        let mut event = self.envelope(choices);
        if let Some(tokens) = completion_tokens {
            event["usage"] = usage_of(&self.plan, tokens);
        }
        Bytes::from(format!("data: {event}\n\n"))
    }

    fn envelope(&self, choices: Value) -> Value {
        json!({"id": self.who.id, "object": "text_completion", "created": self.who.created,
            "model": self.who.model, "choices": choices})
    }

    /// What the tokens `from..to` of a choice say, before them the prompt if it is echoed, and their probabilities.
    fn said(&self, choice: usize, from: usize, to: usize) -> (String, Value) {
        let turn = &self.plan.choices[choice].turn;
        let echoed = self.echoed.get(self.plan.prompt_index(choice));
        let (mut text, mut at) = (String::new(), 0);
        if let Some(echoed) = echoed {
            if from == 0 {
                text.push_str(&echoed.text);
            } else {
                at = echoed.text.chars().count();
            }
        }
        let to = if self.only_prompt { from } else { to };
        text.extend((from..to).map(|i| turn.token(i).1));
        let Some(top) = self.logprobs else {
            return (text, Value::Null);
        };
        at += (0..from)
            .map(|i| turn.token(i).1.chars().count())
            .sum::<usize>();
        let mut lists = Lists::after(at, top);
        if let Some(echoed) = echoed.filter(|_| from == 0) {
            lists.prompt(&echoed.pieces);
        }
        let tokens = (from..to).map(|i| turn.token(i));
        let said = tokens.filter(|(channel, _)| *channel == Channel::Content);
        said.for_each(|(_, token)| lists.token(token));
        (text, lists.into_value())
    }

    fn choice(&self, i: usize, (text, logprobs): (String, Value), ended: bool) -> Value {
        let choice = &self.plan.choices[i];
        let finish = match choice.finish {
            _ if self.only_prompt => Finish::Length,
            finish => finish,
        };
        let finish = ended.then(|| finish.as_str());
        let stop = choice.turn.stopped_by.as_deref().filter(|_| ended);
        json!({"index": i, "text": text, "logprobs": logprobs, "finish_reason": finish, "stop_reason": stop})
    }
}

/// A text, a list of token ids, or a list of either.
fn prompts(value: &Json, model: &Model, adds_special: bool) -> Result<Vec<Vec<TokenId>>, Refusal> {
    let fault = |why: &str| Refusal::bad_request(why).about("prompt");
    match value {
        Json::Array(several)
            if matches!(several.first(), Some(Json::String(_) | Json::Array(_))) =>
        {
            if several.len() > MAX_PROMPTS {
                return Err(fault("too many prompts in one call"));
            }
            several
                .iter()
                .map(|one| {
                    prompt(one, model, adds_special)
                        .ok_or_else(|| fault("a prompt must be a string or token ids"))
                        .and_then(|prompt| known(prompt, model))
                })
                .collect()
        }
        one => match prompt(one, model, adds_special) {
            Some(prompt) => Ok(vec![known(prompt, model)?]),
            None => Err(fault(
                "prompt must be a string, a list of token ids, or a list of either",
            )),
        },
    }
}

/// The prompt, if all its ids are in the vocabulary.
fn known(prompt: Vec<TokenId>, model: &Model) -> Result<Vec<TokenId>, Refusal> {
    let size = model.tokenizer().vocabulary_size();
    match prompt.iter().find(|id| **id as usize >= size) {
        Some(id) => {
            let why = format!("Token id {id} is out of vocabulary");
            Err(Refusal::bad_request(why).about("prompt"))
        }
        None => Ok(prompt),
    }
}

/// One prompt; empty ones are refused.
pub(crate) fn prompt(value: &Json, model: &Model, adds_special: bool) -> Option<Vec<TokenId>> {
    let ids = match value {
        Json::String(text) => model.tokenizer().encode_prompt(text, adds_special),
        Json::Array(ids) => ids.iter().map(token_id).collect::<Option<_>>()?,
        _ => return None,
    };
    (!ids.is_empty()).then_some(ids)
}

/// A token id: a whole number of 32 bits.
pub(crate) fn token_id(value: &Json) -> Option<TokenId> {
    match value {
        Json::Number(n) => n.as_u64().and_then(|n| TokenId::try_from(n).ok()),
        _ => None,
    }
}

impl AnswerWriter for Completion {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn tokens(&mut self, choice: usize, from: usize, to: usize, out: &mut Events) {
        self.sent[choice] = to;
        let ended = to == self.plan.choices[choice].turn.tokens();
        let said = self.said(choice, from, to);
        if !said.0.is_empty() || ended {
            let with_usage = self.options.continuous_usage_stats == Some(true);
            let said = json!([self.choice(choice, said, ended)]);
            out.push_back(self.event(said, with_usage.then_some(to)));
        }
    }

    fn closing(&mut self, out: &mut Events) {
        if self.options.include_usage == Some(true) {
            out.push_back(self.event(json!([]), Some(self.plan.completion_tokens())));
        }
        out.push_back(Bytes::from_static(b"data: [DONE]\n\n"));
    }

    fn whole(&self) -> Bytes {
        let all = self.plan.choices.iter().enumerate();
        let choices: Vec<Value> = all
            .map(|(i, choice)| {
                let mut whole = self.choice(i, self.said(i, 0, choice.turn.tokens()), true);
                let of_prompt = self.prompt_logprobs.get(self.plan.prompt_index(i));
                whole["prompt_logprobs"] = of_prompt.cloned().unwrap_or_default();
                whole["prompt_token_ids"] = Value::Null;
                whole["token_ids"] = Value::Null;
                whole
            })
            .collect();
        let mut answer = self.envelope(json!(choices));
        answer["usage"] = usage_of(&self.plan, self.plan.completion_tokens());
        Bytes::from(answer.to_string())
    }
}
