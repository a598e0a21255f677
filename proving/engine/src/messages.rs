//! `/v1/messages`, Anthropic's dialect as vLLM serves it: the request, and the answer whole or as named events.
//!
//! Invariant: content blocks are opened, sent and closed one after another, numbered from 0; the last
//! `message_delta` carries the usage of the whole message, which is cumulative. A block's deltas join to its whole.
//! Not here: reading messages (`input`), time (`pace`).

mod input;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat::{self, eighths};
use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::generation::Identity;
use crate::json::Json;
use crate::model::Model;
use crate::pace::{AnswerWriter, Events};
use crate::plan::{Choice, Finish, LengthSpec, Overrides, Plan};
use crate::render::{Conversation, Effort, Tool};
use crate::sampling::Knobs;
use crate::tokenizer::TokenId;
use crate::tools::{self, Auto};
use crate::turn::{AnswerSpec, Channel, Turn};
use crate::validate::MEDIA_TOKENS;

/// What a prompt follows from.
#[derive(Deserialize)]
pub(crate) struct Asking {
    messages: Vec<Json>,
    #[serde(default)]
    system: Option<Json>,
    #[serde(default)]
    tools: Option<Vec<Json>>,
    #[serde(default)]
    tool_choice: Option<Json>,
    #[serde(default)]
    thinking: Option<Json>,
    #[serde(default)]
    output_config: Option<Json>,
    #[serde(default)]
    chat_template_kwargs: Option<Json>,
}

#[derive(Deserialize)]
pub(crate) struct MessagesRequest {
    #[serde(flatten)]
    pub(crate) asking: Asking,
    max_tokens: i64,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stop_sequences: Option<Vec<String>>,
    #[serde(flatten)]
    knobs: Knobs,
}

impl MessagesRequest {
    pub(crate) fn cap(&self) -> Option<i64> {
        Some(self.max_tokens)
    }
}

/// What a request asks a model with.
pub(crate) struct Asked {
    pub(crate) prompt: Vec<TokenId>,
    tools: Vec<Tool>,
    choice: Option<Json>,
    effort: Effort,
}

impl Asking {
    /// Checks it and makes the prompt of it.
    pub(crate) fn asked(&self, model: &Model) -> Result<Asked, Refusal> {
        let harmony = model.format.is_harmony();
        let parsed = input::read(
            self.system.as_ref(),
            &self.messages,
            harmony,
            model.merges_system(),
        )?;
        let tools = input::tools(self.tools.as_deref())?;
        let choice = input::tool_choice(self.tool_choice.as_ref())?;
        let disables_thinking = self.disables_thinking();
        // What an engine asks for that cannot switch it off, as Harmony.
        let asked = match disables_thinking {
            true => Some("low"),
            false => self.effort(),
        };
        let effort = chat::effort(asked, harmony)?;
        let mut arguments = chat::arguments(self.chat_template_kwargs.clone(), None, None, None)?;
        arguments.effort = asked.map(str::to_owned);
        arguments.disables_thinking = disables_thinking;
        let mut prompt = model.prompt(&Conversation {
            messages: parsed.messages,
            tools: tools.clone(),
            effort,
            arguments,
            ..Conversation::default()
        })?;
        prompt.extend(std::iter::repeat_n(0, parsed.media * MEDIA_TOKENS));
        Ok(Asked {
            prompt,
            tools: tools.unwrap_or_default(),
            choice,
            effort,
        })
    }

    /// Whether it asks not to think at all, which wins over how hard.
    fn disables_thinking(&self) -> bool {
        let thinking = self.thinking.as_ref();
        let kind = thinking.and_then(|thinking| thinking.get("type"));
        kind.and_then(Json::as_str) == Some("disabled")
    }

    /// How hard it asks to think.
    fn effort(&self) -> Option<&str> {
        let output = self
            .output_config
            .as_ref()
            .and_then(|output| output.get("effort"));
        output.and_then(Json::as_str)
    }
}

pub(crate) struct Messages {
    who: Identity,
    plan: Plan,
    blocks: Vec<Block>,
    /// The block that is being said.
    at: Option<usize>,
}

impl Messages {
    /// Checks the request and plans its answer. Returns it with whether it is to be streamed.
    pub(crate) fn admit(
        config: &EngineConfig,
        model: &Model,
        request: MessagesRequest,
        who: Identity,
        overrides: Overrides,
    ) -> Result<(Self, bool), Refusal> {
        request.knobs.check()?;
        let harmony = model.format.is_harmony();
        let Asked {
            prompt,
            tools,
            choice,
            effort,
        } = request.asking.asked(model)?;
        let auto = Auto::of(config, harmony);
        let seed = model.seed(config.seed, &prompt);
        let tool = tools::chosen(&tools, choice.as_ref(), auto, seed)?;
        let lengths = LengthSpec {
            cap: Some(request.max_tokens),
            stops: request.stop_sequences.unwrap_or_default(),
            ..LengthSpec::default()
        };
        let spec = AnswerSpec {
            harmony,
            reasoning_eighths: eighths(effort),
            tool,
            content: None,
        };
        let plan = Plan::settle(config, model, vec![prompt], &lengths, &spec, overrides)?;
        let blocks = Block::all(&who.id, &plan.choices[0].turn);
        let answer = Self {
            who,
            plan,
            blocks,
            at: None,
        };
        Ok((answer, request.stream.unwrap_or(false)))
    }

    fn choice(&self) -> &Choice {
        &self.plan.choices[0]
    }

    fn stop_reason(&self) -> &'static str {
        let choice = self.choice();
        match choice.finish {
            Finish::Length => "max_tokens",
            Finish::Stop if choice.turn.stopped_by.is_some() => "stop_sequence",
            Finish::Stop if choice.turn.calls() => "tool_use",
            Finish::Stop => "end_turn",
        }
    }

    fn message(&self, content: Value, stop_reason: Option<&str>, output_tokens: usize) -> Value {
        let stopped_by = stop_reason.and(self.choice().turn.stopped_by.as_deref());
        json!({
            "id": self.who.id, "type": "message", "role": "assistant", "model": self.who.model,
            "content": content, "stop_reason": stop_reason, "stop_sequence": stopped_by,
            "usage": self.usage(output_tokens),
        })
    }

    fn usage(&self, output_tokens: usize) -> Value {
        let prompt = self.plan.prompt_tokens();
        match self.plan.told_cached_tokens() {
            // As Anthropic counts: what was read from a cache is no input.
            Some(cached) => json!({"input_tokens": prompt.saturating_sub(cached),
                "cache_read_input_tokens": cached, "output_tokens": output_tokens}),
            None => json!({"input_tokens": prompt, "output_tokens": output_tokens}),
        }
    }

    /// Ends the block that is being said, and begins the one of `channel`.
    fn turn_to(&mut self, channel: Option<Channel>, out: &mut Events) {
        let next = self.blocks.iter().position(|b| Some(b.channel) == channel);
        if self.at == next {
            return;
        }
        if let Some(at) = self.at {
            say(out, "content_block_stop", json!({"index": at}));
        }
        if let Some(next) = next {
            let block = self.blocks[next].opened();
            let event = json!({"index": next, "content_block": block});
            say(out, "content_block_start", event);
        }
        self.at = next;
    }
}

fn say(out: &mut Events, kind: &str, mut event: Value) {
    event["type"] = json!(kind);
    out.push_back(Bytes::from(format!("event: {kind}\ndata: {event}\n\n")));
}

impl AnswerWriter for Messages {
    fn plan(&self) -> &Plan {
        &self.plan
    }

    fn preamble(&mut self, out: &mut Events) {
        let message = self.message(json!([]), None, 0);
        say(out, "message_start", json!({"message": message}));
    }

    fn tokens(&mut self, _choice: usize, from: usize, to: usize, out: &mut Events) {
        for i in from..to {
            let (channel, text) = self.choice().turn.token(i);
            if channel == Channel::Mark || text.is_empty() {
                continue;
            }
            let delta = Block::delta(channel, text);
            self.turn_to(Some(channel), out);
            if let Some(at) = self.at {
                let event = json!({"index": at, "delta": delta});
                say(out, "content_block_delta", event);
            }
        }
    }

    fn closing(&mut self, out: &mut Events) {
        self.turn_to(None, out);
        let delta = json!({
            "stop_reason": self.stop_reason(), "stop_sequence": self.choice().turn.stopped_by,
        });
        let usage = self.usage(self.plan.completion_tokens());
        say(
            out,
            "message_delta",
            json!({"delta": delta, "usage": usage}),
        );
        say(out, "message_stop", json!({}));
    }

    fn whole(&self) -> Bytes {
        let content = self.blocks.iter().map(Block::whole).collect();
        let tokens = self.plan.completion_tokens();
        let message = self.message(content, Some(self.stop_reason()), tokens);
        Bytes::from(message.to_string())
    }
}

/// One content block: thinking, text or the use of a tool.
struct Block {
    channel: Channel,
    id: String,
    name: String,
    text: String,
}

impl Block {
    /// The blocks of an answer, in the order in which they are said.
    fn all(message: &str, turn: &Turn) -> Vec<Self> {
        let name = turn.tool.as_ref().map(|tool| tool.name.clone());
        let block = |channel, text: &str| Self {
            channel,
            id: message.replacen("msg_", "toolu_", 1),
            name: name.clone().unwrap_or_default(),
            text: text.to_owned(),
        };
        let mut blocks = Vec::new();
        if !turn.reasoning().is_empty() {
            blocks.push(block(Channel::Reasoning, turn.reasoning()));
        }
        if turn.calls() {
            blocks.push(block(Channel::Arguments, turn.arguments()));
        } else if !turn.content().is_empty() || blocks.is_empty() {
            blocks.push(block(Channel::Content, turn.content()));
        }
        blocks
    }

    fn whole(&self) -> Value {
        match self.channel {
            Channel::Reasoning => {
                json!({"type": "thinking", "thinking": self.text, "signature": self.id})
            }
            Channel::Arguments => {
                // What a cap cut is no JSON any more.
                let input = serde_json::from_str(&self.text).unwrap_or_else(|_| json!({}));
                json!({"type": "tool_use", "id": self.id, "name": self.name, "input": input})
            }
            Channel::Content | Channel::Mark => json!({"type": "text", "text": self.text}),
        }
    }

    /// The block as it is before anything of it is said.
    fn opened(&self) -> Value {
        match self.channel {
            Channel::Reasoning => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Channel::Arguments => {
                json!({"type": "tool_use", "id": self.id, "name": self.name, "input": {}})
            }
            Channel::Content | Channel::Mark => json!({"type": "text", "text": ""}),
        }
    }

    fn delta(channel: Channel, text: &str) -> Value {
        match channel {
            Channel::Reasoning => json!({"type": "thinking_delta", "thinking": text}),
            Channel::Arguments => json!({"type": "input_json_delta", "partial_json": text}),
            Channel::Content | Channel::Mark => json!({"type": "text_delta", "text": text}),
        }
    }
}

#[cfg(test)]
mod tests;
