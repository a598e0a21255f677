//! The shape of chat messages: who may speak, and what a message must hold.
//!
//! Invariant: a message that passes has a known role, readable content, and what its role requires.
//! Not here: the rest of a chat request (`chat`), its length (`plan`).

use serde::Deserialize;
use serde_json::Value;

use crate::error::Refusal;
use crate::text::Tally;

/// Marks that a chat template puts around each message.
const MESSAGE_OVERHEAD_TOKENS: u64 = 4;
/// Marks that open the answer.
const ANSWER_OVERHEAD_TOKENS: u64 = 3;
/// What a part that is no text (image, sound, file) counts.
pub(crate) const MEDIA_TOKENS: u64 = 256;

/// One message of a chat.
#[derive(Deserialize)]
pub(crate) struct Message {
    role: String,
    #[serde(default)]
    content: Option<Value>,
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

/// Checks all messages and counts them into `prompt`.
pub(crate) fn messages(
    messages: &[Message],
    model: &str,
    prompt: &mut Tally,
) -> Result<(), Refusal> {
    if messages.is_empty() {
        return Err(fault(0, "at least one message is required"));
    }
    for (i, message) in messages.iter().enumerate() {
        message.check(i, is_harmony(model))?;
        message.tally(i, prompt)?;
    }
    prompt.add_fixed(ANSWER_OVERHEAD_TOKENS);
    Ok(())
}

fn is_harmony(model: &str) -> bool {
    model
        .rsplit('/')
        .next()
        .is_some_and(|name| name.starts_with("gpt-oss"))
}

impl Message {
    fn check(&self, i: usize, harmony: bool) -> Result<(), Refusal> {
        match self.role.as_str() {
            "system" | "developer" | "user" => self.need_content(i),
            "assistant"
                if self.content.is_none() && self.tool_calls.as_ref().is_none_or(Vec::is_empty) =>
            {
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

    fn tally(&self, i: usize, prompt: &mut Tally) -> Result<(), Refusal> {
        prompt.add_fixed(MESSAGE_OVERHEAD_TOKENS);
        prompt.add(&self.role);
        if let Some(name) = &self.name {
            prompt.add(name);
        }
        if let Some(value) = &self.content {
            content(value, prompt).map_err(|why| fault(i, &why))?;
        }
        for call in self.tool_calls.iter().flatten() {
            for text in [&call.id, &call.function.name, &call.function.arguments] {
                prompt.add(text);
            }
        }
        Ok(())
    }
}

/// Counts content that is a text or a list of parts; says what is wrong with any other.
pub(crate) fn content(value: &Value, prompt: &mut Tally) -> Result<(), String> {
    match value {
        Value::String(text) => prompt.add(text),
        Value::Array(parts) => parts.iter().try_for_each(|one| part(one, prompt))?,
        _ => return Err("content must be a string or a list of parts".to_owned()),
    }
    Ok(())
}

fn part(part: &Value, prompt: &mut Tally) -> Result<(), String> {
    let kind = part
        .get("type")
        .and_then(Value::as_str)
        .ok_or("a content part needs a type")?;
    match kind {
        "text" | "input_text" | "output_text" | "refusal" => {
            let member = if kind == "refusal" { "refusal" } else { "text" };
            let text = part.get(member).and_then(Value::as_str);
            prompt
                .add(text.ok_or_else(|| format!("a {kind} part needs a string member {member}"))?);
        }
        "image_url" | "input_audio" | "audio_url" | "video_url" | "file" => {
            let media = part
                .get(kind)
                .ok_or_else(|| format!("a {kind} part needs a member {kind}"))?;
            prompt.add_fixed(MEDIA_TOKENS);
            prompt.hash = crate::text::hash(prompt.hash, media.to_string().as_bytes());
        }
        "input_image" | "input_file" => prompt.add_fixed(MEDIA_TOKENS),
        other => return Err(format!("Unknown part type: {other}")),
    }
    Ok(())
}

fn fault(i: usize, why: &str) -> Refusal {
    Refusal::bad_request(format!("messages[{i}]: {why}")).about("messages")
}

#[cfg(test)]
mod tests;
