//! `/v1/chat/completions`: the request, and the answer whole or as chunks.
//!
//! Invariant: a stream is role chunk, one chunk a token, finish chunk, then (only if asked) the usage chunk with
//! no choices, then `[DONE]`. Log probabilities and several choices are refused, not faked; sampling parameters
//! and `stop` are accepted and have no effect.
//! Not here: message shapes (`validate`), tool schemas (`tools`), time (`pace`).

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::generation::Identity;
use crate::pace::{Events, Script};
use crate::plan::{Overrides, Plan, Wanted};
use crate::text::Tally;
use crate::tools::{self, Forced};
use crate::validate::{self, Message};

#[derive(Deserialize)]
pub(crate) struct ChatRequest {
    messages: Vec<Message>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    tool_choice: Option<Value>,
    #[serde(default)]
    logprobs: Option<bool>,
    #[serde(flatten)]
    sampling: Sampling,
}

/// Members that chat and plain completions share.
#[derive(Deserialize)]
pub(crate) struct Sampling {
    #[serde(default)]
    max_tokens: Option<i64>,
    #[serde(default)]
    max_completion_tokens: Option<i64>,
    #[serde(default)]
    min_tokens: Option<u64>,
    #[serde(default)]
    ignore_eos: Option<bool>,
    #[serde(default)]
    n: Option<u64>,
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
    pub(crate) fn check(&self) -> Result<(), Refusal> {
        if self.n.is_some_and(|n| n != 1) {
            return Err(Refusal::bad_request("n other than 1 is not simulated").about("n"));
        }
        if self.stream_options.is_some() && !self.streams() {
            let why = "Stream options can only be defined when `stream=True`.";
            return Err(Refusal::bad_request(why).about("stream_options"));
        }
        Ok(())
    }

    pub(crate) fn streams(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    pub(crate) fn stream_options(&self) -> StreamOptions {
        self.stream_options.unwrap_or_default()
    }

    pub(crate) fn wanted(&self) -> Wanted {
        Wanted {
            cap: self.max_completion_tokens.or(self.max_tokens),
            min: self.min_tokens.unwrap_or(0),
            ignore_eos: self.ignore_eos.unwrap_or(false),
        }
    }
}

/// A chat answer.
pub(crate) struct Chat {
    who: Identity,
    plan: Plan,
    tool: Option<Forced>,
    options: StreamOptions,
    head: String,
    sent: usize,
}

impl Chat {
    /// Checks the request and plans its answer. Returns it with whether it is to be streamed.
    pub(crate) fn admit(
        config: &EngineConfig,
        request: ChatRequest,
        who: Identity,
        overrides: Overrides,
    ) -> Result<(Self, bool), Refusal> {
        request.sampling.check()?;
        if request.logprobs == Some(true) {
            return Err(Refusal::bad_request("logprobs are not simulated").about("logprobs"));
        }
        let mut prompt = Tally::new(config.seed);
        validate::messages(&request.messages, &who.model, &mut prompt)?;
        let tool = tools::forced(
            request.tools.as_ref(),
            request.tool_choice.as_ref(),
            &mut prompt,
        )?;
        let arguments = tool.as_ref().map(|t| t.arguments.clone());
        let plan = Plan::settle(
            config,
            prompt,
            request.sampling.wanted(),
            arguments,
            overrides,
        )?;
        let head = format!(
            "data: {{\"id\":\"{}\",\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":{},\"choices\":[",
            who.id,
            who.created,
            Value::from(who.model.as_str())
        );
        let options = request.sampling.stream_options();
        Ok((
            Self {
                who,
                plan,
                tool,
                options,
                head,
                sent: 0,
            },
            request.sampling.streams(),
        ))
    }

    fn finish_reason(&self) -> &'static str {
        match &self.tool {
            Some(tool) if !tool.named && self.plan.finish.as_str() == "stop" => "tool_calls",
            _ => self.plan.finish.as_str(),
        }
    }

    fn chunk(&self, delta: &Value, finish: Option<&str>) -> Bytes {
        let finish = Value::from(finish);
        let choice = format!(
            "{{\"index\":0,\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{finish}}}"
        );
        self.event(&choice, self.options.continuous_usage_stats == Some(true))
    }

    fn event(&self, choices: &str, with_usage: bool) -> Bytes {
        let mut event = String::with_capacity(self.head.len() + choices.len() + 128);
        event.push_str(&self.head);
        event.push_str(choices);
        event.push(']');
        if with_usage {
            event.push_str(",\"usage\":");
            event.push_str(&usage(self.plan.prompt_tokens, self.sent).to_string());
        }
        event.push_str("}\n\n");
        Bytes::from(event)
    }

    fn tool_call_id(&self) -> String {
        self.who.id.replacen("chatcmpl-", "chatcmpl-tool-", 1)
    }
}

impl Script for Chat {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn opening(&mut self, out: &mut Events) {
        out.push_back(self.chunk(&json!({"role": "assistant", "content": ""}), None));
        if let Some(tool) = &self.tool {
            out.push_back(self.chunk(
                &json!({"tool_calls": [{"id": self.tool_call_id(), "type": "function", "index": 0,
                    "function": {"name": tool.name, "arguments": ""}}]}),
                None,
            ));
        }
    }

    fn token(&mut self, i: usize, out: &mut Events) {
        self.sent = i + 1;
        let text = self.plan.output.token(i);
        let delta = match self.tool {
            None => json!({"content": text}),
            Some(_) => json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]}),
        };
        out.push_back(self.chunk(&delta, None));
    }

    fn closing(&mut self, out: &mut Events) {
        out.push_back(self.chunk(&json!({}), Some(self.finish_reason())));
        if self.options.include_usage == Some(true) {
            out.push_back(self.event("", true));
        }
        out.push_back(Bytes::from_static(b"data: [DONE]\n\n"));
    }

    fn whole(&self) -> Bytes {
        let text = self.plan.output.text();
        let message = match &self.tool {
            None => {
                json!({"role": "assistant", "content": text, "refusal": null, "tool_calls": []})
            }
            Some(tool) => {
                json!({"role": "assistant", "content": null, "refusal": null, "tool_calls": [{
                "id": self.tool_call_id(), "type": "function", "function": {"name": tool.name, "arguments": text}}]})
            }
        };
        let answer = json!({
            "id": self.who.id, "object": "chat.completion", "created": self.who.created, "model": self.who.model,
            "choices": [{"index": 0, "message": message, "logprobs": null,
                "finish_reason": self.finish_reason(), "stop_reason": null}],
            "service_tier": null, "system_fingerprint": null,
            "usage": usage(self.plan.prompt_tokens, self.plan.completion_tokens()),
        });
        Bytes::from(answer.to_string())
    }
}

/// Usage of chat and plain completions.
pub(crate) fn usage(prompt_tokens: u64, completion_tokens: usize) -> Value {
    json!({
        "prompt_tokens": prompt_tokens, "total_tokens": prompt_tokens + completion_tokens as u64,
        "completion_tokens": completion_tokens, "prompt_tokens_details": null,
    })
}
