//! `/v1/responses`: the request, and the answer whole or as typed events.
//!
//! Invariant: events carry consecutive sequence numbers and end in exactly one `response.completed` or, when a cap
//! cut the output, `response.incomplete`, with usage. Nothing is stored: `previous_response_id` is not found.
//! Not here: reading input items (`input`), tool schemas (`tools`), time (`pace`).

mod input;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::generation::Identity;
use crate::pace::{Events, Script};
use crate::plan::{Finish, Overrides, Plan, Wanted};
use crate::text::Tally;
use crate::tools::{self, Forced};

#[derive(Deserialize)]
pub(crate) struct ResponsesRequest {
    input: Value,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    max_output_tokens: Option<i64>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    tool_choice: Option<Value>,
    #[serde(default)]
    previous_response_id: Option<String>,
}

pub(crate) struct Responses {
    who: Identity,
    plan: Plan,
    tool: Option<Forced>,
    request: ResponsesRequest,
    sequence: u64,
}

impl Responses {
    /// Checks the request and plans its answer. Returns it with whether it is to be streamed.
    pub(crate) fn admit(
        config: &EngineConfig,
        request: ResponsesRequest,
        who: Identity,
        overrides: Overrides,
    ) -> Result<(Self, bool), Refusal> {
        if let Some(id) = &request.previous_response_id {
            return Err(Refusal::not_found(format!(
                "Response with id '{id}' not found."
            )));
        }
        let mut prompt = Tally::new(config.seed);
        if let Some(instructions) = &request.instructions {
            prompt.add(instructions);
        }
        input::read(&request.input, &mut prompt)?;
        let tool = tools::forced(
            request.tools.as_ref(),
            request.tool_choice.as_ref(),
            &mut prompt,
        )?;
        let wanted = Wanted {
            cap: request.max_output_tokens,
            ..Wanted::default()
        };
        let plan = Plan::settle(
            config,
            prompt,
            wanted,
            tool.as_ref().map(|t| t.arguments.clone()),
            overrides,
        )?;
        let streams = request.stream.unwrap_or(false);
        Ok((
            Self {
                who,
                plan,
                tool,
                request,
                sequence: 0,
            },
            streams,
        ))
    }

    fn response(&self, status: &str, output: Value, usage: Value) -> Value {
        let cut = status == "incomplete";
        json!({
            "id": self.who.id, "object": "response", "created_at": self.who.created, "model": self.who.model,
            "status": status, "background": false, "error": null,
            "incomplete_details": cut.then(|| json!({"reason": "max_output_tokens"})),
            "instructions": self.request.instructions, "max_output_tokens": self.request.max_output_tokens,
            "metadata": {}, "output": output, "parallel_tool_calls": true, "previous_response_id": null,
            "temperature": 1.0, "top_p": 1.0, "text": {"format": {"type": "text"}},
            "tool_choice": self.request.tool_choice.clone().unwrap_or(json!("auto")),
            "tools": self.request.tools.clone().unwrap_or_default(),
            "truncation": "disabled", "usage": usage,
        })
    }

    fn last_status(&self) -> &'static str {
        match self.plan.finish {
            Finish::Stop => "completed",
            Finish::Length => "incomplete",
        }
    }

    fn finished(&self) -> Value {
        let (input, output) = (
            self.plan.prompt_tokens,
            self.plan.completion_tokens() as u64,
        );
        let usage = json!({
            "input_tokens": input, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": input + output,
        });
        self.response(
            self.last_status(),
            json!([self.item(self.last_status(), self.plan.output.text())]),
            usage,
        )
    }

    fn item_id(&self) -> String {
        self.who
            .id
            .replacen("resp_", if self.tool.is_some() { "fc_" } else { "msg_" }, 1)
    }

    fn item(&self, status: &str, text: &str) -> Value {
        match &self.tool {
            Some(tool) => json!({
                "type": "function_call", "id": self.item_id(), "status": status, "name": tool.name,
                "call_id": self.who.id.replacen("resp_", "call_", 1), "arguments": text,
            }),
            None if status == "in_progress" => json!({
                "type": "message", "id": self.item_id(), "status": status, "role": "assistant", "content": [],
            }),
            None => json!({
                "type": "message", "id": self.item_id(), "status": status, "role": "assistant",
                "content": [part(text)],
            }),
        }
    }

    fn say(&mut self, out: &mut Events, kind: &str, mut event: Value) {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        out.push_back(Bytes::from(format!("event: {kind}\ndata: {event}\n\n")));
    }

    /// An event about the only item, and about its only part if it is text.
    fn about(&self, mut event: Value) -> Value {
        event["item_id"] = json!(self.item_id());
        event["output_index"] = json!(0);
        if self.tool.is_none() {
            event["content_index"] = json!(0);
        }
        event
    }
}

fn part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

impl Script for Responses {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn preamble(&mut self, out: &mut Events) {
        let response = self.response("in_progress", json!([]), Value::Null);
        self.say(out, "response.created", json!({"response": response}));
        self.say(out, "response.in_progress", json!({"response": response}));
    }

    fn opening(&mut self, out: &mut Events) {
        let item = self.item("in_progress", "");
        self.say(
            out,
            "response.output_item.added",
            json!({"output_index": 0, "item": item}),
        );
        if self.tool.is_none() {
            let event = self.about(json!({"part": part("")}));
            self.say(out, "response.content_part.added", event);
        }
    }

    fn token(&mut self, i: usize, out: &mut Events) {
        let event = self.about(json!({"delta": self.plan.output.token(i)}));
        if self.tool.is_some() {
            self.say(out, "response.function_call_arguments.delta", event);
        } else {
            let mut event = event;
            event["logprobs"] = json!([]);
            self.say(out, "response.output_text.delta", event);
        }
    }

    fn closing(&mut self, out: &mut Events) {
        let text = self.plan.output.text().to_owned();
        if let Some(name) = self.tool.as_ref().map(|t| t.name.clone()) {
            let event = self.about(json!({"arguments": text, "name": name}));
            self.say(out, "response.function_call_arguments.done", event);
        } else {
            let event = self.about(json!({"text": text, "logprobs": []}));
            self.say(out, "response.output_text.done", event);
            let event = self.about(json!({"part": part(&text)}));
            self.say(out, "response.content_part.done", event);
        }
        let item = self.item(self.last_status(), &text);
        self.say(
            out,
            "response.output_item.done",
            json!({"output_index": 0, "item": item}),
        );
        let kind = format!("response.{}", self.last_status());
        let response = self.finished();
        self.say(out, &kind, json!({"response": response}));
    }

    fn whole(&self) -> Bytes {
        Bytes::from(self.finished().to_string())
    }
}
