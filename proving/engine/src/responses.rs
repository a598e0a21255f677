//! `/v1/responses`: the request, and the answer whole or as typed events.
//!
//! Invariant: events carry consecutive sequence numbers and end in exactly one `response.completed` or, when a cap
//! cut the output, `response.incomplete`, with usage. Nothing is stored: `previous_response_id` is not found.
//! Not here: reading input items (`input`), the events of one output item (`item`), tool schemas (`tools`), time
//! (`pace`).

mod input;
mod item;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::{arguments, effort, eighths};
use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::generation::Identity;
use crate::json::Json;
use crate::model::Model;
use crate::pace::{AnswerWriter, Events};
use crate::plan::{Choice, Finish, LengthSpec, Overrides, Plan};
use crate::render::{Conversation, Effort, Format, Tool};
use crate::sampling::Knobs;
use crate::structured::{self, Constraint};
use crate::tokenizer::TokenId;
use crate::tools::{self, Auto};
use crate::turn::{AnswerSpec, Channel};
use crate::validate::{self, MEDIA_TOKENS};
use item::Item;

#[derive(Deserialize)]
pub(crate) struct ResponsesRequest {
    input: Json,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    max_output_tokens: Option<i64>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    tools: Option<Vec<Json>>,
    #[serde(default)]
    tool_choice: Option<Json>,
    #[serde(default)]
    reasoning: Option<Reasoning>,
    #[serde(default)]
    previous_response_id: Option<String>,
    #[serde(default)]
    chat_template_kwargs: Option<Json>,
    #[serde(default)]
    text: Option<Json>,
    #[serde(flatten)]
    structured: structured::Asked,
    #[serde(flatten)]
    knobs: Knobs,
}

/// What a request asks a model with.
pub(crate) struct Asked {
    pub(crate) prompt: Vec<TokenId>,
    tools: Vec<Tool>,
    effort: Effort,
}

impl ResponsesRequest {
    /// Checks what a prompt follows from, and makes it.
    pub(crate) fn asked(&self, model: &Model) -> Result<Asked, Refusal> {
        if let Some(id) = &self.previous_response_id {
            return Err(Refusal::not_found(format!(
                "Response with id '{id}' not found."
            )));
        }
        let harmony = model.format.is_harmony();
        let asked = self.reasoning.as_ref().and_then(|r| r.effort.as_deref());
        let effort = effort(asked, harmony)?;
        let items = input::items(&self.input)?;
        let tools = tools::offered(self.tools.as_deref())?;
        let continues = input::continues(&items);
        let mut arguments = arguments(
            self.chat_template_kwargs.clone(),
            None,
            Some(!continues),
            Some(continues),
        )?;
        arguments.keeps_unset = true;
        arguments.effort = asked.map(str::to_owned);
        let mut conversation = Conversation {
            tools: self
                .tools
                .as_ref()
                .filter(|tools| !tools.is_empty())
                .map(|_| tools.clone()),
            effort,
            arguments,
            ..Conversation::default()
        };
        let mut media = 0;
        if harmony {
            conversation.of_items = true;
            conversation.instructions.clone_from(&self.instructions);
            conversation.messages = items;
        } else {
            let chat = input::chat(self.instructions.as_deref(), &items);
            let parsed = validate::of_responses(chat)?;
            (conversation.messages, media) = (parsed.messages, parsed.media);
        }
        let mut prompt = match &model.format {
            // What a template writes is encoded as a plain prompt is, unlike in chat.
            Format::Template(_) => model.tokenizer().with_special(model.prompt(&conversation)?),
            Format::Harmony { .. } | Format::ChatMl => model.prompt(&conversation)?,
        };
        prompt.extend(std::iter::repeat_n(0, media * MEDIA_TOKENS));
        Ok(Asked {
            prompt,
            tools,
            effort,
        })
    }

    pub(crate) fn cap(&self) -> Option<i64> {
        self.max_output_tokens
    }

    /// What the text has to be: by `text.format`, or by vLLM's own members.
    fn constraint(&self) -> Result<Option<Constraint>, Refusal> {
        let format = self.text.as_ref().and_then(|text| text.get("format"));
        match format.filter(|format| **format != Json::Null) {
            Some(format) => structured::Asked::of_text(format),
            None => self.structured.constraint(),
        }
    }
}

#[derive(Deserialize)]
struct Reasoning {
    #[serde(default)]
    effort: Option<String>,
}

pub(crate) struct Responses {
    who: Identity,
    plan: Plan,
    request: ResponsesRequest,
    sequence: u64,
    items: Vec<Item>,
    /// The item that is being said.
    at: Option<usize>,
}

impl Responses {
    /// Checks the request and plans its answer. Returns it with whether it is to be streamed.
    pub(crate) fn admit(
        config: &EngineConfig,
        model: &Model,
        request: ResponsesRequest,
        who: Identity,
        overrides: Overrides,
    ) -> Result<(Self, bool), Refusal> {
        request.knobs.check()?;
        let harmony = model.format.is_harmony();
        let Asked {
            prompt,
            tools,
            effort,
        } = request.asked(model)?;
        let auto = Auto::of(config, harmony);
        let seed = model.seed(config.seed, &prompt);
        let tool = tools::chosen(&tools, request.tool_choice.as_ref(), auto, seed)?;
        let lengths = LengthSpec {
            cap: request.max_output_tokens,
            ..LengthSpec::default()
        };
        let spec = AnswerSpec {
            harmony,
            reasoning_eighths: eighths(effort),
            tool,
            content: request.constraint()?,
        };
        let plan = Plan::settle(config, model, vec![prompt], &lengths, &spec, overrides)?;
        let streams = request.stream.unwrap_or(false);
        let items = Item::all(&who.id, &plan.choices[0].turn);
        Ok((
            Self {
                who,
                plan,
                request,
                sequence: 0,
                items,
                at: None,
            },
            streams,
        ))
    }

    fn choice(&self) -> &Choice {
        &self.plan.choices[0]
    }

    fn response(&self, status: &str, output: Value, usage: Value) -> Value {
        let cut = status == "incomplete";
        let text = self.request.text.as_ref().map(Json::to_value);
        let text = text.unwrap_or_else(|| json!({"format": {"type": "text"}}));
        json!({
            "id": self.who.id, "object": "response", "created_at": self.who.created, "model": self.who.model,
            "status": status, "background": false, "error": null,
            "incomplete_details": cut.then(|| json!({"reason": "max_output_tokens"})),
            "instructions": self.request.instructions, "max_output_tokens": self.request.max_output_tokens,
            "metadata": {}, "output": output, "parallel_tool_calls": true, "previous_response_id": null,
            "temperature": 1.0, "top_p": 1.0, "text": text,
            "tool_choice": self.request.tool_choice.as_ref().map_or(json!("auto"), Json::to_value),
            "tools": self.request.tools.iter().flatten().map(Json::to_value).collect::<Vec<_>>(),
            "truncation": "disabled", "usage": usage,
        })
    }

    fn last_status(&self) -> &'static str {
        match self.choice().finish {
            Finish::Stop => "completed",
            Finish::Length => "incomplete",
        }
    }

    fn finished(&self) -> Value {
        let (input, output) = (
            self.plan.prompt_tokens(),
            self.plan.completion_tokens() as u64,
        );
        let usage = json!({
            "input_tokens": input, "input_tokens_details": {"cached_tokens": self.plan.cached_tokens()}, "output_tokens": output,
            "output_tokens_details": {"reasoning_tokens": self.plan.reasoning_tokens()},
            "total_tokens": input + output,
        });
        let last = self.items.len().saturating_sub(1);
        let items = self.items.iter().enumerate();
        let output = items.map(|(i, item)| {
            item.whole(if i < last {
                "completed"
            } else {
                self.last_status()
            })
        });
        self.response(self.last_status(), output.collect(), usage)
    }

    fn say(&mut self, out: &mut Events, kind: &str, mut event: Value) {
        event["type"] = json!(kind);
        event["sequence_number"] = json!(self.sequence);
        self.sequence += 1;
        out.push_back(Bytes::from(format!("event: {kind}\ndata: {event}\n\n")));
    }

    fn say_all(&mut self, out: &mut Events, events: Vec<(&'static str, Value)>) {
        for (kind, event) in events {
            self.say(out, kind, event);
        }
    }

    /// Ends the item that is being said, and begins the one of `channel`.
    fn turn_to(&mut self, channel: Option<Channel>, status: &str, out: &mut Events) {
        let next = self
            .items
            .iter()
            .position(|item| Some(item.channel) == channel);
        if self.at == next {
            return;
        }
        if let Some(at) = self.at {
            self.say_all(out, self.items[at].closing(at, status));
        }
        if let Some(next) = next {
            self.say_all(out, self.items[next].opening(next));
        }
        self.at = next;
    }
}

impl AnswerWriter for Responses {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn preamble(&mut self, out: &mut Events) {
        let response = self.response("in_progress", json!([]), Value::Null);
        self.say(out, "response.created", json!({"response": response}));
        self.say(out, "response.in_progress", json!({"response": response}));
    }

    fn tokens(&mut self, _choice: usize, from: usize, to: usize, out: &mut Events) {
        for i in from..to {
            let (channel, text) = self.choice().turn.token(i);
            if channel == Channel::Mark || text.is_empty() {
                continue;
            }
            let text = text.to_owned();
            self.turn_to(Some(channel), "completed", out);
            if let Some(at) = self.at {
                let (kind, event) = self.items[at].delta(at, &text);
                self.say(out, kind, event);
            }
        }
    }

    fn closing(&mut self, out: &mut Events) {
        self.turn_to(None, self.last_status(), out);
        let kind = format!("response.{}", self.last_status());
        let response = self.finished();
        self.say(out, &kind, json!({"response": response}));
    }

    fn whole(&self) -> Bytes {
        Bytes::from(self.finished().to_string())
    }
}
