//! `/v1/completions`: a plain prompt, and its text whole or as chunks.
//!
//! Invariant: as for chat, one chunk a token and usage only if asked. One prompt a call: a batch is refused.
//! Not here: log probabilities, echo and suffix (refused), time (`pace`).

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::{Sampling, StreamOptions, usage};
use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::generation::Identity;
use crate::pace::{Events, Script};
use crate::plan::{Overrides, Plan, Wanted};
use crate::text::{self, Tally};

/// vLLM's and OpenAI's default cap where the call names none.
const DEFAULT_CAP: i64 = 16;

#[derive(Deserialize)]
pub(crate) struct CompletionRequest {
    prompt: Value,
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
    sent: usize,
}

impl Completion {
    /// Checks the request and plans its answer. Returns it with whether it is to be streamed.
    pub(crate) fn admit(
        config: &EngineConfig,
        request: &CompletionRequest,
        who: Identity,
        overrides: Overrides,
    ) -> Result<(Self, bool), Refusal> {
        request.sampling.check()?;
        if request.logprobs.is_some() || request.echo == Some(true) || request.suffix.is_some() {
            return Err(Refusal::bad_request(
                "logprobs, echo and suffix are not simulated",
            ));
        }
        let mut tally = Tally::new(config.seed);
        prompt(&request.prompt, &mut tally)?;
        let wanted = request.sampling.wanted();
        let wanted = Wanted {
            cap: wanted.cap.or(Some(DEFAULT_CAP)),
            ..wanted
        };
        let plan = Plan::settle(config, tally, wanted, None, overrides)?;
        let options = request.sampling.stream_options();
        Ok((
            Self {
                who,
                plan,
                options,
                sent: 0,
            },
            request.sampling.streams(),
        ))
    }

    fn chunk(&self, text: &str, finish: Option<&str>) -> Bytes {
        let with_usage = self.options.continuous_usage_stats == Some(true);
        self.event(json!([choice(text, finish)]), with_usage)
    }

    fn event(&self, choices: Value, with_usage: bool) -> Bytes {
        let mut event = self.envelope(choices);
        if with_usage {
            event["usage"] = usage(self.plan.prompt_tokens, self.sent);
        }
        Bytes::from(format!("data: {event}\n\n"))
    }

    fn envelope(&self, choices: Value) -> Value {
        json!({"id": self.who.id, "object": "text_completion", "created": self.who.created,
            "model": self.who.model, "choices": choices})
    }
}

fn choice(text: &str, finish: Option<&str>) -> Value {
    json!({"index": 0, "text": text, "logprobs": null, "finish_reason": finish, "stop_reason": null})
}

/// A text, a list of token ids, or a list of exactly one of these.
fn prompt(value: &Value, tally: &mut Tally) -> Result<(), Refusal> {
    match value {
        Value::String(text) => tally.add(text),
        Value::Array(all) if !all.is_empty() && all.iter().all(Value::is_u64) => tokens(all, tally),
        Value::Array(one) if one.len() == 1 => prompt(&one[0], tally)?,
        Value::Array(several) if several.len() > 1 => {
            return Err(Refusal::bad_request("a batch of prompts is not simulated").about("prompt"));
        }
        _ => {
            return Err(
                Refusal::bad_request("prompt must be a string or a list of token ids")
                    .about("prompt"),
            );
        }
    }
    Ok(())
}

/// Token ids count as themselves.
pub(crate) fn tokens(ids: &[Value], tally: &mut Tally) {
    tally.add_fixed(ids.len() as u64);
    for id in ids.iter().filter_map(Value::as_u64) {
        tally.hash = text::hash(tally.hash, &id.to_le_bytes());
    }
}

impl Script for Completion {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn opening(&mut self, _out: &mut Events) {}

    fn token(&mut self, i: usize, out: &mut Events) {
        self.sent = i + 1;
        let last = self.sent == self.plan.completion_tokens();
        let finish = last.then(|| self.plan.finish.as_str());
        out.push_back(self.chunk(self.plan.output.token(i), finish));
    }

    fn closing(&mut self, out: &mut Events) {
        if self.plan.completion_tokens() == 0 {
            out.push_back(self.chunk("", Some(self.plan.finish.as_str())));
        }
        if self.options.include_usage == Some(true) {
            out.push_back(self.event(json!([]), true));
        }
        out.push_back(Bytes::from_static(b"data: [DONE]\n\n"));
    }

    fn whole(&self) -> Bytes {
        let mut answer = self.envelope(json!([choice(
            self.plan.output.text(),
            Some(self.plan.finish.as_str())
        )]));
        answer["usage"] = usage(self.plan.prompt_tokens, self.plan.completion_tokens());
        Bytes::from(answer.to_string())
    }
}
