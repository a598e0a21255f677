//! From a conversation to the prompt that a model is given, as token ids.
//!
//! Invariant: what a user wrote never becomes a mark, whatever it says (a template's output excepted, as in the
//! engine that is simulated, where templates are text too).
//! Not here: reading requests (`validate`, `responses::input`), rendering (`prompts`), vocabularies (`tokenizer`).

mod arguments;
pub(crate) mod encoder;
pub(crate) mod template;
mod turns;

use std::sync::Arc;

use crate::json::Json;
use crate::tokenizer::{TokenId, Tokenizer};
pub(crate) use arguments::Arguments;
use encoder::Encoder;
use prompts::harmony::{self, Piece, Script};
use prompts::template::noon_of;

/// A function that the model may call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) parameters: Option<Json>,
    /// The tool as the request has it, which templates expect.
    pub(crate) whole: Json,
}

/// How hard a model is asked to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Effort {
    Low,
    #[default]
    Medium,
    High,
}

/// Everything that a prompt follows from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    /// Messages as objects of the chat dialect, whichever API they came by; or items of responses.
    pub(crate) messages: Vec<Json>,
    /// For Harmony, the messages are items of responses, each of which is read by itself.
    pub(crate) of_items: bool,
    /// Of responses in Harmony, whose own member it is.
    pub(crate) instructions: Option<String>,
    /// None where none were given: a template tells that from an empty list.
    pub(crate) tools: Option<Vec<Tool>>,
    pub(crate) effort: Effort,
    pub(crate) arguments: Arguments,
}

impl Conversation {
    pub(crate) fn tools(&self) -> &[Tool] {
        self.tools.as_deref().unwrap_or_default()
    }
}

/// How a model wants its conversations.
#[derive(Clone, Debug)]
pub(crate) enum Format {
    /// gpt-oss's, with the date that its system message names.
    Harmony { date: String },
    /// What stands in for a model whose template is not at hand.
    ChatMl,
    /// A template in Jinja, from the model's own files.
    Template(Arc<template::Template>),
}

impl Format {
    pub(crate) fn is_harmony(&self) -> bool {
        matches!(self, Self::Harmony { .. })
    }

    /// The prompt. Fails only where a template refuses the conversation, and says why.
    pub(crate) fn prompt(
        &self,
        tokenizer: &Tokenizer,
        conversation: &Conversation,
    ) -> Result<Vec<TokenId>, String> {
        let mut out = Encoder::new(tokenizer);
        self.write(&mut out, conversation)?;
        Ok(out.into_ids())
    }

    /// Writes the prompt. Fails as [`prompt`](Self::prompt) does.
    pub(crate) fn write(
        &self,
        out: &mut Encoder<'_>,
        conversation: &Conversation,
    ) -> Result<(), String> {
        match self {
            Self::Harmony { date } => turns::with(conversation, true, |given| {
                say(out, &harmony::render(given, noon_of(date))?);
                Ok(())
            })?,
            Self::ChatMl => chatml(out, conversation),
            Self::Template(template) => out.marked(&template.render(conversation)?),
        }
        Ok(())
    }

    /// Writes what a model generates for `message` to be read out of it: from after its name to its last mark. A
    /// template says nothing of that: there it is the text, the calls and one mark.
    pub(crate) fn write_answer(&self, out: &mut Encoder<'_>, message: &Json) {
        match self {
            Self::Harmony { .. } => {
                let message = message.tree();
                if let Ok(turn) = turns::turn(&message, turns::For::Harmony) {
                    say(out, &harmony::render_answer(std::slice::from_ref(&turn)));
                }
            }
            Self::ChatMl | Self::Template(_) => {
                if let Some(reasoning) = message.get("reasoning").and_then(Json::as_str) {
                    out.text(reasoning);
                }
                out.text(&chatml_text(message));
                out.mark_or_text("<|im_end|>");
            }
        }
    }
}

/// Writes what Harmony made.
fn say(out: &mut Encoder<'_>, script: &Script<'_>) {
    for piece in script.pieces() {
        match piece {
            Piece::Special(name) => out.mark(name),
            Piece::Word(word) => out.text(word.text()),
            Piece::Text(text) => out.text(text),
        }
    }
}

/// ChatML, which stands in for a model whose template is not at hand: every message between two marks.
fn chatml(out: &mut Encoder<'_>, conversation: &Conversation) {
    let mut push = |role: &str, text: &str| {
        out.mark_or_text("<|im_start|>");
        out.text(&format!("{role}\n{text}"));
        out.mark_or_text("<|im_end|>");
        out.text("\n");
    };
    if !conversation.tools().is_empty() {
        let tools: Vec<String> = conversation
            .tools()
            .iter()
            .map(|tool| tool.whole.to_string())
            .collect();
        push("system", &format!("Tools:\n{}", tools.join("\n")));
    }
    for message in &conversation.messages {
        let role = message.get("role").and_then(Json::as_str);
        push(role.unwrap_or_default(), &chatml_text(message));
    }
    if conversation.arguments.opens_answer() {
        out.mark_or_text("<|im_start|>");
        out.text("assistant\n");
    }
}

fn chatml_text(message: &Json) -> String {
    let mut text = String::new();
    for part in match message.get("content") {
        Some(Json::Array(parts)) => parts.as_slice(),
        Some(one) => std::slice::from_ref(one),
        None => &[],
    } {
        let said = part.get("text").unwrap_or(part).as_str();
        if !text.is_empty() && said.is_some_and(|said| !said.is_empty()) {
            text.push('\n');
        }
        text.push_str(said.unwrap_or_default());
    }
    let calls = message.get("tool_calls").and_then(Json::as_array);
    for call in calls.unwrap_or_default() {
        let function = call.get("function").unwrap_or(&Json::Null);
        let said = |name| {
            function
                .get(name)
                .and_then(Json::as_str)
                .unwrap_or_default()
        };
        text.push_str(&format!("\n{}({})", said("name"), said("arguments")));
    }
    text
}

#[cfg(test)]
mod tests;
