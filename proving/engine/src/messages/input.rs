//! What a Messages request says, in the terms of a chat.
//!
//! Invariant: a message that passes is a user's or an assistant's, of text, images, thinking, tool use and
//! tool results; a tool result becomes a message of its own.
//! Not here: how a chat becomes a prompt (`render`).

use crate::error::Refusal;
use crate::json::Json;
use crate::render::{PromptMessage, PromptToolCall, Tool};
use crate::validate::{self, ParsedMessages};

/// Reads the system prompt and the messages.
pub(super) fn read(
    system: Option<&Json>,
    messages: &[Json],
    harmony: bool,
) -> Result<ParsedMessages, Refusal> {
    let mut parsed = ParsedMessages::default();
    if let Some(system) = system {
        let text = validate::content(system, &mut parsed.media, "");
        let text = text.map_err(|why| Refusal::bad_request(why).about("system"))?;
        parsed.messages.push(text_message("system", text));
    }
    if messages.is_empty() {
        return Err(fault("messages: at least one message is required"));
    }
    for (i, one) in messages.iter().enumerate() {
        message(one, &mut parsed, validate::between(harmony))
            .map_err(|why| fault(&format!("messages[{i}]: {why}")))?;
    }
    Ok(parsed)
}

fn message(message: &Json, parsed: &mut ParsedMessages, between: &str) -> Result<(), String> {
    let role = match message.get("role").and_then(Json::as_str) {
        Some(role @ ("user" | "assistant")) => role,
        Some(other) => return Err(format!("Unknown role: {other}")),
        None => return Err("needs a role".to_owned()),
    };
    let content = message.get("content").unwrap_or(&Json::Null);
    let Json::Array(blocks) = content else {
        let text = validate::content(content, &mut parsed.media, between)?;
        parsed.messages.push(text_message(role, text));
        return Ok(());
    };
    let mut whole = PromptMessage {
        role: role.to_owned(),
        ..PromptMessage::default()
    };
    for block in blocks {
        block_of(block, &mut whole, parsed, between)?;
    }
    if whole.text.is_some() || whole.reasoning.is_some() || !whole.calls.is_empty() {
        parsed.messages.push(whole);
    }
    Ok(())
}

fn block_of(
    block: &Json,
    whole: &mut PromptMessage,
    parsed: &mut ParsedMessages,
    between: &str,
) -> Result<(), String> {
    let text = |member: &str| {
        let text = block.get(member).and_then(Json::as_str);
        text.ok_or_else(|| format!("a block needs a string member {member}"))
    };
    match block.get("type").and_then(Json::as_str) {
        Some("text") => add(&mut whole.text, text("text")?, between),
        Some("thinking") => add(&mut whole.reasoning, text("thinking")?, ""),
        Some("redacted_thinking") => {}
        Some("image" | "document") => {
            parsed.media += 1;
            add(&mut whole.text, "", between);
        }
        Some("tool_use") => whole.calls.push(PromptToolCall {
            id: text("id")?.to_owned(),
            name: text("name")?.to_owned(),
            arguments: block
                .get("input")
                .map_or_else(|| "{}".to_owned(), |input| input.to_value().to_string()),
        }),
        Some("tool_result") => {
            let result = match block.get("content") {
                None => String::new(),
                Some(content) => validate::content(content, &mut parsed.media, "\n")?,
            };
            parsed.messages.push(PromptMessage {
                call_id: Some(text("tool_use_id")?.to_owned()),
                ..text_message("tool", result)
            });
        }
        other => return Err(format!("Unknown block type: {}", other.unwrap_or("none"))),
    }
    Ok(())
}

fn add(to: &mut Option<String>, text: &str, between: &str) {
    validate::append(to.get_or_insert_default(), text, between);
}

fn text_message(role: &str, text: String) -> PromptMessage {
    PromptMessage {
        role: role.to_owned(),
        text: Some(text),
        ..PromptMessage::default()
    }
}

/// Tools, as a chat would offer them.
pub(super) fn tools(tools: Option<&[Json]>) -> Result<Vec<Tool>, Refusal> {
    let mut offered = Vec::new();
    for tool in tools.unwrap_or_default() {
        let Some(name) = tool.get("name").and_then(Json::as_str) else {
            return Err(Refusal::bad_request("a tool needs a name").about("tools"));
        };
        // Server tools (web search and the like) have a type, no schema, and show the model nothing.
        let Some(parameters) = tool.get("input_schema") else {
            continue;
        };
        let description = tool.get("description").and_then(Json::as_str);
        let text = |text: &str| Json::String(text.to_owned());
        let function = [
            ("name", text(name)),
            ("description", text(description.unwrap_or_default())),
            ("parameters", parameters.clone()),
        ];
        let function = function.map(|(member, value)| (member.to_owned(), value));
        let whole = [
            ("type".to_owned(), text("function")),
            ("function".to_owned(), Json::Object(function.into())),
        ];
        offered.push(Tool {
            name: name.to_owned(),
            description: description.unwrap_or_default().to_owned(),
            parameters: Some(parameters.clone()),
            whole: Json::Object(whole.into()),
        });
    }
    Ok(offered)
}

/// The choice among tools, as a chat would make it.
pub(super) fn tool_choice(choice: Option<&Json>) -> Result<Option<Json>, Refusal> {
    let Some(choice) = choice else {
        return Ok(None);
    };
    let mode = |mode: &str| Ok(Some(Json::String(mode.to_owned())));
    match choice.get("type").and_then(Json::as_str) {
        Some("auto") => mode("auto"),
        Some("none") => mode("none"),
        Some("any") => mode("required"),
        // A tool that is named is a choice of its own shape, which has its `name` too.
        Some("tool") => Ok(Some(choice.clone())),
        _ => Err(Refusal::bad_request("tool_choice needs a type").about("tool_choice")),
    }
}

fn fault(why: &str) -> Refusal {
    Refusal::bad_request(why).about("messages")
}
