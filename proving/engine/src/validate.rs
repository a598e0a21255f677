//! The shape of chat messages: who may speak, and what a message must hold.
//!
//! Invariant: a message that passes has a known role, readable content, and what its role requires.
//! Not here: the rest of a chat request (`chat`), how messages become a prompt (`render`).

use serde::Deserialize;

use crate::error::Refusal;
use crate::json::Json;
use crate::render::{PromptMessage, PromptToolCall};

/// What a part that is no text (image, sound, file) counts, in place of what a vision model would make of it.
pub(crate) const MEDIA_TOKENS: usize = 256;

/// One message of a chat.
#[derive(Deserialize)]
pub(crate) struct Message {
    role: String,
    #[serde(default)]
    content: Option<Json>,
    #[serde(default, alias = "reasoning_content")]
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct ToolCall {
    id: String,
    function: CalledFunction,
}

#[derive(Deserialize)]
struct CalledFunction {
    name: String,
    arguments: String,
}

/// The messages of a prompt, and how many of their parts were no text.
#[derive(Debug, Default)]
pub(crate) struct ParsedMessages {
    pub(crate) messages: Vec<PromptMessage>,
    pub(crate) media: usize,
}

/// Checks all messages. `harmony` models know no `function` role and see no images.
pub(crate) fn messages(messages: Vec<Message>, harmony: bool) -> Result<ParsedMessages, Refusal> {
    if messages.is_empty() {
        return Err(fault(0, "at least one message is required"));
    }
    let mut parsed = ParsedMessages::default();
    for (i, message) in messages.into_iter().enumerate() {
        message.check(i, harmony)?;
        let prompt_message = message
            .into_prompt_message(&mut parsed.media, between(harmony))
            .map_err(|why| fault(i, &why))?;
        if harmony && parsed.media > 0 {
            return Err(fault(i, "this model is not a multimodal model"));
        }
        parsed.messages.push(prompt_message);
    }
    Ok(parsed)
}

impl Message {
    fn check(&self, i: usize, harmony: bool) -> Result<(), Refusal> {
        let calls = self
            .tool_calls
            .as_ref()
            .is_some_and(|calls| !calls.is_empty());
        match self.role.as_str() {
            "system" | "developer" | "user" => self.need_content(i),
            "assistant" if self.content.is_none() && self.reasoning.is_none() && !calls => {
                Err(fault(i, "an assistant message needs content or tool_calls"))
            }
            "assistant" => Ok(()),
            "tool" if self.tool_call_id.is_none() => {
                Err(fault(i, "a tool message needs tool_call_id"))
            }
            "tool" => self.need_content(i),
            "function" if !harmony && self.name.is_none() => {
                Err(fault(i, "a function message needs name"))
            }
            "function" if !harmony => Ok(()),
            role => Err(fault(i, &format!("Unknown role: {role}"))),
        }
    }

    fn need_content(&self, i: usize) -> Result<(), Refusal> {
        self.content
            .as_ref()
            .map(drop)
            .ok_or_else(|| fault(i, &format!("a {} message needs content", self.role)))
    }

    fn into_prompt_message(
        self,
        media: &mut usize,
        between: &str,
    ) -> Result<PromptMessage, String> {
        let text = self
            .content
            .as_ref()
            .map(|content| self::content(content, media, between))
            .transpose()?;
        let calls = self
            .tool_calls
            .unwrap_or_default()
            .into_iter()
            .map(|call| PromptToolCall {
                id: call.id,
                name: call.function.name,
                arguments: call.function.arguments,
            });
        Ok(PromptMessage {
            role: self.role,
            text,
            reasoning: self.reasoning,
            calls: calls.collect(),
            call_id: self.tool_call_id,
        })
    }
}

/// What stands between the texts of one message: vLLM hands them to a template as lines, and encodes each by itself in
/// Harmony.
pub(crate) fn between(harmony: bool) -> &'static str {
    if harmony { "" } else { "\n" }
}

/// The text of content that is a text or a list of parts, and in `media` how many are none; says what is wrong with
/// any other. Empty parts are left out.
pub(crate) fn content(value: &Json, media: &mut usize, between: &str) -> Result<String, String> {
    match value {
        Json::String(text) => Ok(text.clone()),
        Json::Array(parts) => {
            let mut whole = String::new();
            parts
                .iter()
                .try_for_each(|one| part(one, &mut whole, media, between))?;
            Ok(whole)
        }
        _ => Err("content must be a string or a list of parts".to_owned()),
    }
}

fn part(part: &Json, whole: &mut String, media: &mut usize, between: &str) -> Result<(), String> {
    let kind = part
        .get("type")
        .and_then(Json::as_str)
        .ok_or("a content part needs a type")?;
    match kind {
        "text" | "input_text" | "output_text" | "refusal" => {
            let member = if kind == "refusal" { "refusal" } else { "text" };
            let text = part.get(member).and_then(Json::as_str);
            let text =
                text.ok_or_else(|| format!("a {kind} part needs a string member {member}"))?;
            append(whole, text, between);
        }
        "image_url" | "input_audio" | "audio_url" | "video_url" | "file" => {
            part.get(kind)
                .ok_or_else(|| format!("a {kind} part needs a member {kind}"))?;
            *media += 1;
        }
        "input_image" | "input_file" => *media += 1,
        other => return Err(format!("Unknown part type: {other}")),
    }
    Ok(())
}

/// Adds a text to those before it.
pub(crate) fn append(whole: &mut String, text: &str, between: &str) {
    if !whole.is_empty() && !text.is_empty() {
        whole.push_str(between);
    }
    whole.push_str(text);
}

fn fault(i: usize, why: &str) -> Refusal {
    Refusal::bad_request(format!("messages[{i}]: {why}")).about("messages")
}

#[cfg(test)]
mod tests;
