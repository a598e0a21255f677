//! From a conversation to the prompt that a model is given, as token ids.
//!
//! Invariant: what a user wrote never becomes a mark, whatever it says (a template's output excepted, as in the
//! engine that is simulated, where templates are text too).
//! Not here: reading requests (`validate`, `responses::input`), vocabularies (`tokenizer`).

pub(crate) mod encoder;
pub(crate) mod harmony;
pub(crate) mod template;
mod typescript;

use std::sync::Arc;

use crate::json::Json;
use crate::tokenizer::{TokenId, Tokenizer};
use encoder::Encoder;

/// A function that the model may call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) parameters: Option<Json>,
    /// The tool as the request has it, which templates expect.
    pub(crate) whole: Json,
}

/// A call that an earlier answer made.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PromptToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: String,
}

/// One message, whichever API it came by.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PromptMessage {
    pub(crate) role: String,
    pub(crate) text: Option<String>,
    pub(crate) reasoning: Option<String>,
    pub(crate) calls: Vec<PromptToolCall>,
    /// Of a tool's answer: the call that it answers.
    pub(crate) call_id: Option<String>,
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
    pub(crate) messages: Vec<PromptMessage>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) effort: Effort,
    pub(crate) arguments: Arguments,
}

/// What a template is given by name, beside messages and tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments {
    /// The body's own `chat_template_kwargs`.
    pub(crate) own: Vec<(String, Json)>,
    /// What the dialect says; of a name that both have this one counts.
    pub(crate) said: Vec<(String, Json)>,
}

impl Arguments {
    /// All of them; what is null or `"auto"` is as if it were not there.
    pub(crate) fn merged(&self) -> Vec<(String, Json)> {
        let mut merged: Vec<(String, Json)> = Vec::new();
        for (name, value) in self.own.iter().chain(&self.said) {
            if *value == Json::Null || value.as_str() == Some("auto") {
                continue;
            }
            match merged.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => known.clone_from(value),
                None => merged.push((name.clone(), value.clone())),
            }
        }
        merged
    }

    /// Whether the prompt ends with the beginning of an answer.
    fn opens_answer(&self) -> bool {
        let said = self
            .said
            .iter()
            .rfind(|(name, _)| name == "add_generation_prompt");
        said.is_none_or(|(_, value)| *value != Json::Bool(false))
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
            Self::Harmony { date } => harmony::prompt(out, conversation, date),
            Self::ChatMl => chatml(out, conversation),
            Self::Template(template) => out.marked(&template.render(conversation)?),
        }
        Ok(())
    }

    /// Writes what a model generates for `message` to be read out of it: from after its name to its last mark. A
    /// template says nothing of that: there it is the text, the calls and one mark.
    pub(crate) fn write_answer(&self, out: &mut Encoder<'_>, message: &PromptMessage) {
        match self {
            Self::Harmony { .. } => harmony::answer(out, message),
            Self::ChatMl | Self::Template(_) => {
                if let Some(reasoning) = &message.reasoning {
                    out.text(reasoning);
                }
                out.text(&chatml_text(message));
                out.mark_or_text("<|im_end|>");
            }
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
    if !conversation.tools.is_empty() {
        let tools: Vec<String> = conversation
            .tools
            .iter()
            .map(|tool| tool.whole.to_string())
            .collect();
        push("system", &format!("Tools:\n{}", tools.join("\n")));
    }
    for message in &conversation.messages {
        push(&message.role, &chatml_text(message));
    }
    if conversation.arguments.opens_answer() {
        out.mark_or_text("<|im_start|>");
        out.text("assistant\n");
    }
}

fn chatml_text(message: &PromptMessage) -> String {
    let mut text = message.text.clone().unwrap_or_default();
    for call in &message.calls {
        text.push_str(&format!("\n{}({})", call.name, call.arguments));
    }
    text
}

#[cfg(test)]
mod tests;
