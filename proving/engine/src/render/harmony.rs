//! Harmony, gpt-oss's format, as vLLM 0.32.0 builds it from a chat's messages or a response's items.
//!
//! Invariant: each piece of a header and each text of a content is encoded by itself, as openai-harmony does, so that
//! counts agree to the token (`vectors/harmony`, `vectors/tokens`). Reasoning before the last final answer is left out.
//! Not here: built-in tools (browser, python), which vLLM offers only when it is told to.

use super::encoder::Encoder;
use super::typescript::function_type;
use super::{Conversation, Effort, Tool};
use crate::json::Json;

/// What gpt-oss was trained to be told about itself.
const IDENTITY: &str =
    "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06";
const CHANNELS: &str =
    "# Valid channels: analysis, commentary, final. Channel must be included for every message.";
const TOOLS_HINT: &str = "\nCalls to these tools must go to the commentary channel: 'functions'.";

/// One message of the prompt.
#[derive(Default)]
struct Said {
    author: String,
    /// Of a call it stands before the channel, of an answer behind it.
    to: Option<String>,
    channel: Option<&'static str>,
    is_call: bool,
    texts: Vec<String>,
}

impl Said {
    fn new(author: &str, channel: Option<&'static str>, text: impl Into<String>) -> Self {
        Self {
            author: author.to_owned(),
            channel,
            texts: vec![text.into()],
            ..Self::default()
        }
    }

    fn call(name: &str, arguments: &str) -> Self {
        Self {
            to: Some(format!(" to=functions.{name}")),
            is_call: true,
            ..Self::new("assistant", Some("commentary"), arguments)
        }
    }

    fn answer(function: &str, texts: Vec<String>) -> Self {
        Self {
            author: format!("functions.{function}"),
            to: Some(" to=assistant".to_owned()),
            channel: Some("commentary"),
            is_call: false,
            texts,
        }
    }

    fn is_final(&self) -> bool {
        self.author == "assistant" && self.channel == Some("final")
    }

    fn write(&self, out: &mut Encoder<'_>) {
        out.mark("<|start|>");
        out.text(&self.author);
        let to = self.to.as_deref();
        to.into_iter()
            .filter(|_| self.is_call)
            .for_each(|to| out.text(to));
        if let Some(channel) = self.channel {
            out.mark("<|channel|>");
            out.text(channel);
            let behind = if self.is_call { Some(" json") } else { to };
            behind.into_iter().for_each(|text| out.text(text));
        }
        out.mark("<|message|>");
        self.texts.iter().for_each(|text| out.text(text));
        out.mark(if self.is_call { "<|call|>" } else { "<|end|>" });
    }
}

/// Writes the prompt. Says what it cannot be made of.
pub(crate) fn prompt(
    out: &mut Encoder<'_>,
    conversation: &Conversation,
    date: &str,
) -> Result<(), String> {
    let mut messages = conversation.messages.as_slice();
    let mut instructions = conversation.instructions.clone();
    if instructions.is_none()
        && let Some((first, rest)) = messages.split_first()
        && matches!(role(first), "system" | "developer")
    {
        instructions = flat(first.get("content"));
        messages = rest;
    }
    let tools = conversation.tools();
    Said::new("system", None, system(conversation.effort, tools, date)).write(out);
    if instructions.as_ref().is_some_and(|text| !text.is_empty()) || !tools.is_empty() {
        Said::new("developer", None, developer(instructions.as_deref(), tools)).write(out);
    }
    let said = if conversation.of_items {
        of_items(messages)?
    } else {
        of_chat(messages)
    };
    let last_final = said.iter().rposition(Said::is_final).unwrap_or(0);
    for (at, one) in said.iter().enumerate() {
        if at >= last_final || one.channel != Some("analysis") {
            one.write(out);
        }
    }
    out.mark("<|start|>");
    out.text("assistant");
    Ok(())
}

/// What the model generates for a message to be read out of it, which begins after the prompt's last name.
pub(crate) fn answer(out: &mut Encoder<'_>, message: &Json) {
    of_chat(std::slice::from_ref(message))
        .iter()
        .for_each(|one| one.write(out));
}

fn system(effort: Effort, tools: &[Tool], date: &str) -> String {
    let effort = match effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    };
    let hint = if tools.is_empty() { "" } else { TOOLS_HINT };
    format!("{IDENTITY}\nCurrent date: {date}\n\nReasoning: {effort}\n\n{CHANNELS}{hint}")
}

fn developer(instructions: Option<&str>, tools: &[Tool]) -> String {
    let mut sections = Vec::new();
    if let Some(instructions) = instructions {
        sections.push(format!("# Instructions\n\n{instructions}"));
    }
    if !tools.is_empty() {
        let types: String = tools
            .iter()
            .map(|tool| format!("{}\n", function_type(tool)))
            .collect();
        sections.push(format!(
            "# Tools\n\n## functions\n\nnamespace functions {{\n\n{types}}} // namespace functions"
        ));
    }
    sections.join("\n\n")
}

fn role(message: &Json) -> &str {
    message
        .get("role")
        .and_then(Json::as_str)
        .unwrap_or_default()
}

/// The texts of content as one; none where it has none.
fn flat(content: Option<&Json>) -> Option<String> {
    match content {
        Some(Json::String(text)) => Some(text.clone()),
        Some(Json::Array(parts)) => {
            let text = |part| Json::get(part, "text").unwrap_or(part).as_str();
            let texts: Vec<&str> = parts.iter().filter_map(text).collect();
            (!texts.is_empty()).then(|| texts.concat())
        }
        _ => None,
    }
}

/// The text of each part, an empty one where a part has none; of nothing one that is empty.
fn each(content: Option<&Json>) -> Vec<String> {
    match content {
        Some(Json::Array(parts)) if !parts.is_empty() => {
            let text = |part| {
                Json::get(part, "text")
                    .unwrap_or(part)
                    .as_str()
                    .unwrap_or_default()
            };
            parts.iter().map(|part| text(part).to_owned()).collect()
        }
        Some(Json::String(text)) => vec![text.clone()],
        _ => vec![String::new()],
    }
}

fn calls(message: &Json) -> &[Json] {
    message
        .get("tool_calls")
        .and_then(Json::as_array)
        .unwrap_or_default()
}

fn of_chat(messages: &[Json]) -> Vec<Said> {
    let mut said = Vec::new();
    for message in messages {
        chat_message(message, messages, &mut said);
    }
    said
}

fn chat_message(message: &Json, all: &[Json], said: &mut Vec<Said>) {
    let text = |value: Option<&Json>| value.and_then(Json::as_str).unwrap_or_default().to_owned();
    let reasoning = text(message.get("reasoning"));
    let thought =
        (!reasoning.is_empty()).then(|| Said::new("assistant", Some("analysis"), reasoning));
    match role(message) {
        "assistant" if !calls(message).is_empty() => {
            if let Some(content) = flat(message.get("content")).filter(|text| !text.is_empty()) {
                said.push(Said::new("assistant", Some("commentary"), content));
            }
            said.extend(thought);
            for call in calls(message) {
                let function = call.get("function").unwrap_or(&Json::Null);
                said.push(Said::call(
                    &text(function.get("name")),
                    &text(function.get("arguments")),
                ));
            }
        }
        "assistant" => {
            said.extend(thought);
            let texts = each(message.get("content"));
            if texts.first().is_some_and(|text| !text.is_empty()) {
                said.push(Said {
                    texts,
                    ..Said::new("assistant", Some("final"), "")
                });
            }
        }
        "tool" => {
            let id = message.get("tool_call_id");
            let mut calls = all.iter().flat_map(calls);
            let call = calls
                .rfind(|call| call.get("id") == id)
                .and_then(|call| call.get("function"));
            let function = text(call.and_then(|function| function.get("name")));
            let content = flat(message.get("content")).unwrap_or_default();
            said.push(Said::answer(&function, vec![content]));
        }
        "system" | "developer" => {
            if let Some(text) = flat(message.get("content")) {
                said.push(Said::new("developer", None, developer(Some(&text), &[])));
            }
        }
        role => said.push(Said {
            texts: each(message.get("content")),
            ..Said::new(role, None, "")
        }),
    }
}

fn of_items(items: &[Json]) -> Result<Vec<Said>, String> {
    let mut said = Vec::new();
    for (at, item) in items.iter().enumerate() {
        said.extend(item_said(item, &items[..at]).map_err(|why| format!("input[{at}]: {why}"))?);
    }
    Ok(said)
}

/// What one item says; an empty one of the system's, and reasoning without content, nothing.
fn item_said(item: &Json, before: &[Json]) -> Result<Option<Said>, String> {
    let text = |name: &str| item.get(name).and_then(Json::as_str).unwrap_or_default();
    let content = item.get("content");
    Ok(
        match item.get("type").and_then(Json::as_str).unwrap_or("message") {
            "message" => match role(item) {
                "system" | "developer" => flat(content)
                    .filter(|text| !text.is_empty())
                    .map(|text| Said::new("developer", None, developer(Some(&text), &[]))),
                role => Some(Said {
                    texts: match content {
                        Some(Json::Array(parts)) if parts.is_empty() => Vec::new(),
                        content => each(content),
                    },
                    channel: (role == "assistant").then_some("final"),
                    ..Said::new(role, None, "")
                }),
            },
            "function_call_output" => {
                let is_call =
                    |one: &&Json| one.get("type").and_then(Json::as_str) == Some("function_call");
                let id = item.get("call_id");
                let call = before
                    .iter()
                    .filter(is_call)
                    .rfind(|call| call.get("call_id") == id);
                let call =
                    call.ok_or_else(|| format!("No call message found for {}", text("call_id")))?;
                let function = call.get("name").and_then(Json::as_str).unwrap_or_default();
                Some(Said::answer(function, each(item.get("output"))))
            }
            "reasoning" => {
                let parts = content.and_then(Json::as_array).unwrap_or_default();
                let texts = parts
                    .iter()
                    .filter_map(|part| part.get("text").and_then(Json::as_str));
                let texts: Vec<&str> = texts.collect();
                (!parts.is_empty())
                    .then(|| Said::new("assistant", Some("analysis"), texts.join("\n")))
            }
            "function_call" => Some(Said::call(text("name"), text("arguments"))),
            other => return Err(format!("Unknown input type: {other}")),
        },
    )
}
