//! `/v1/completions`: plain prompts, and their text whole or as chunks.
//!
//! Invariant: one chunk for every `stream_interval` tokens, the last with its finish, and usage only if asked.
//! Choices go by prompt, `n` for each.
//! Not here: log probabilities, echo and suffix (refused), time (`pace`).

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::usage;
use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::generation::Identity;
use crate::json::Json;
use crate::model::Model;
use crate::pace::{AnswerWriter, Events};
use crate::plan::{LengthSpec, Overrides, Plan};
use crate::sampling::{Sampling, StreamOptions};
use crate::tokenizer::TokenId;
use crate::turn::AnswerSpec;

/// vLLM's and OpenAI's default cap where the call names none.
const DEFAULT_CAP: i64 = 16;
/// More prompts in one call are refused.
const MAX_PROMPTS: usize = 128;

#[derive(Deserialize)]
pub(crate) struct CompletionRequest {
    prompt: Json,
    #[serde(default)]
    logprobs: Option<u64>,
    #[serde(default)]
    echo: Option<bool>,
    #[serde(default)]
    suffix: Option<String>,
    #[serde(flatten)]
    sampling: Sampling,
}

pub(crate) struct Completion {
    who: Identity,
    plan: Plan,
    options: StreamOptions,
    sent: Vec<usize>,
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
        request.sampling.check()?;
        if request.suffix.is_some() {
            return Err(Refusal::bad_request("suffix is not currently supported").about("suffix"));
        }
        if request.logprobs.is_some() || request.echo == Some(true) {
            return Err(Refusal::bad_request("logprobs and echo are not simulated"));
        }
        let prompts = prompts(&request.prompt, model)?;
        let lengths = request.sampling.lengths()?;
        let lengths = LengthSpec {
            cap: lengths.cap.or(Some(DEFAULT_CAP)),
            ..lengths
        };
        // A plain prompt is continued as text, whatever the model's format.
        let spec = AnswerSpec {
            harmony: false,
            reasoning_eighths: 0,
            tool: None,
            content: None,
        };
        let plan = Plan::settle(config, model, prompts, &lengths, &spec, overrides)?;
        let options = request.sampling.stream_options();
        let sent = vec![0; plan.choices.len()];
        Ok((
            Self {
                who,
                plan,
                options,
                sent,
            },
            request.sampling.streams(),
        ))
    }

    fn event(&self, choices: Value, completion_tokens: Option<usize>) -> Bytes {
        let mut event = self.envelope(choices);
        if let Some(tokens) = completion_tokens {
            event["usage"] = usage(self.plan.prompt_tokens(), tokens);
        }
        Bytes::from(format!("data: {event}\n\n"))
    }

    fn envelope(&self, choices: Value) -> Value {
        json!({"id": self.who.id, "object": "text_completion", "created": self.who.created,
            "model": self.who.model, "choices": choices})
    }

    fn choice(&self, i: usize, text: &str, ended: bool) -> Value {
        let choice = &self.plan.choices[i];
        let finish = ended.then(|| choice.finish.as_str());
        let stop = choice.turn.stopped_by.as_deref().filter(|_| ended);
        json!({"index": i, "text": text, "logprobs": null, "finish_reason": finish, "stop_reason": stop})
    }
}

/// A text, a list of token ids, or a list of either.
fn prompts(value: &Json, model: &Model) -> Result<Vec<Vec<TokenId>>, Refusal> {
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
                    prompt(one, model)
                        .ok_or_else(|| fault("a prompt must be a string or token ids"))
                })
                .collect()
        }
        one => match prompt(one, model) {
            Some(prompt) => Ok(vec![prompt]),
            None => Err(fault(
                "prompt must be a string, a list of token ids, or a list of either",
            )),
        },
    }
}

/// One prompt; empty ones are refused.
pub(crate) fn prompt(value: &Json, model: &Model) -> Option<Vec<TokenId>> {
    let ids = match value {
        Json::String(text) => model.tokenizer().encode(text),
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
        let turn = &self.plan.choices[choice].turn;
        let text: String = (from..to).map(|i| turn.token(i).1).collect();
        let ended = to == turn.tokens();
        if !text.is_empty() || ended {
            let with_usage = self.options.continuous_usage_stats == Some(true);
            let said = json!([self.choice(choice, &text, ended)]);
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
            .map(|(i, choice)| self.choice(i, choice.turn.content(), true))
            .collect();
        let mut answer = self.envelope(json!(choices));
        answer["usage"] = usage(self.plan.prompt_tokens(), self.plan.completion_tokens());
        Bytes::from(answer.to_string())
    }
}
