//! Harmony, gpt-oss's format, as vLLM builds it from a chat request.
//!
//! Invariant: each piece of a header and each content is encoded by itself, as openai-harmony 0.0.8 does, so that
//! counts agree to the token (`vectors/harmony`). Reasoning before the last final answer is left out.
//! Not here: built-in tools (browser, python), which vLLM offers only when it is told to.

use super::encoder::Encoder;
use super::typescript::function_type;
use super::{Conversation, Effort, PromptMessage, Tool};

/// What gpt-oss was trained to be told about itself.
const IDENTITY: &str =
    "You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06";
const CHANNELS: &str =
    "# Valid channels: analysis, commentary, final. Channel must be included for every message.";
const TOOLS_HINT: &str = "\nCalls to these tools must go to the commentary channel: 'functions'.";

pub(crate) fn prompt(encoder: &mut Encoder<'_>, conversation: &Conversation, date: &str) {
    let mut out = Writer { out: encoder };
    out.message(
        "system",
        &[],
        None,
        &system(conversation, date),
        End::Message,
    );
    let (instructions, messages) = split_instructions(&conversation.messages);
    if instructions.is_some() || !conversation.tools.is_empty() {
        out.message(
            "developer",
            &[],
            None,
            &developer(instructions, &conversation.tools),
            End::Message,
        );
    }
    let last_final = messages.iter().rposition(is_final);
    for (i, one) in messages.iter().enumerate() {
        // An answer's own reasoning stands before it, so the last one's goes too.
        out.conversation_message(one, messages, last_final.is_none_or(|last| i > last));
    }
    out.out.mark("<|start|>");
    out.out.text("assistant");
}

/// What the model generates for a message to be read out of it, which begins after the prompt's last name.
pub(crate) fn answer(encoder: &mut Encoder<'_>, message: &PromptMessage) {
    let mut out = Writer { out: encoder };
    out.conversation_message(message, std::slice::from_ref(message), true);
}

/// An answer to the user, which makes the reasoning before it superfluous.
fn is_final(message: &PromptMessage) -> bool {
    message.role == "assistant"
        && message.calls.is_empty()
        && message.text.as_ref().is_some_and(|t| !t.is_empty())
}

fn split_instructions(messages: &[PromptMessage]) -> (Option<&str>, &[PromptMessage]) {
    match messages.split_first() {
        Some((first, rest)) if first.role == "system" || first.role == "developer" => {
            (Some(first.text.as_deref().unwrap_or_default()), rest)
        }
        _ => (None, messages),
    }
}

fn system(conversation: &Conversation, date: &str) -> String {
    let effort = match conversation.effort {
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
    };
    let hint = if conversation.tools.is_empty() {
        ""
    } else {
        TOOLS_HINT
    };
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

/// How a message ends.
enum End {
    Message,
    Call,
}

struct Writer<'a, 'b> {
    out: &'a mut Encoder<'b>,
}

impl Writer<'_, '_> {
    /// `author` and `more` stand before the channel, a content type after it.
    fn message(
        &mut self,
        author: &str,
        more: &[&str],
        channel: Option<(&str, &str)>,
        content: &str,
        end: End,
    ) {
        self.out.mark("<|start|>");
        self.out.text(author);
        more.iter().for_each(|piece| self.out.text(piece));
        if let Some((name, content_type)) = channel {
            self.out.mark("<|channel|>");
            self.out.text(name);
            self.out.text(content_type);
        }
        self.out.mark("<|message|>");
        self.out.text(content);
        self.out.mark(match end {
            End::Message => "<|end|>",
            End::Call => "<|call|>",
        });
    }

    fn conversation_message(
        &mut self,
        message: &PromptMessage,
        all: &[PromptMessage],
        with_reasoning: bool,
    ) {
        let text = message.text.as_deref().unwrap_or_default();
        let reasoning = message
            .reasoning
            .as_deref()
            .filter(|r| with_reasoning && !r.is_empty());
        match message.role.as_str() {
            "assistant" if !message.calls.is_empty() => {
                if !text.is_empty() {
                    self.message(
                        "assistant",
                        &[],
                        Some(("commentary", "")),
                        text,
                        End::Message,
                    );
                }
                if let Some(reasoning) = reasoning {
                    self.message(
                        "assistant",
                        &[],
                        Some(("analysis", "")),
                        reasoning,
                        End::Message,
                    );
                }
                for call in &message.calls {
                    let to = format!(" to=functions.{}", call.name);
                    self.message(
                        "assistant",
                        &[&to],
                        Some(("commentary", " json")),
                        &call.arguments,
                        End::Call,
                    );
                }
            }
            "assistant" => {
                if let Some(reasoning) = reasoning {
                    self.message(
                        "assistant",
                        &[],
                        Some(("analysis", "")),
                        reasoning,
                        End::Message,
                    );
                }
                if !text.is_empty() {
                    self.message("assistant", &[], Some(("final", "")), text, End::Message);
                }
            }
            "tool" => {
                let author = format!("functions.{}", answered(message, all));
                self.message(
                    &author,
                    &[" to=assistant"],
                    Some(("commentary", "")),
                    text,
                    End::Message,
                );
            }
            role => self.message(role, &[], None, text, End::Message),
        }
    }
}

/// The function whose call a tool's answer names.
fn answered<'a>(message: &PromptMessage, all: &'a [PromptMessage]) -> &'a str {
    let mut calls = all.iter().flat_map(|s| &s.calls);
    calls
        .rfind(|call| Some(&call.id) == message.call_id.as_ref())
        .map_or("", |call| call.name.as_str())
}
