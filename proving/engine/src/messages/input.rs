//! What a Messages request says, as the chat that vLLM 0.32.0 makes of it.
//!
//! Invariant: a message that passes is a user's, an assistant's or the system's, of text, images, thinking, tool use and
//! tool results; a tool result becomes a message of its own, before what its message says.
//! Not here: how a chat becomes a prompt (`render`).

use crate::error::Refusal;
use crate::json::{Json, object};
use crate::render::Tool;
use crate::tools;
use crate::validate::{self, ParsedMessages};

/// What Claude Code puts before its system prompt; it changes with every call.
const BILLING_HEADER: &str = "x-anthropic-billing-header";

/// Reads the system prompt and the messages; system messages among these go to the former if it `merges` them.
pub(super) fn read(
    system: Option<&Json>,
    messages: &[Json],
    harmony: bool,
    merges: bool,
) -> Result<ParsedMessages, Refusal> {
    if messages.is_empty() {
        return Err(fault("messages: at least one message is required"));
    }
    let mut instructions = match system {
        None | Some(Json::Null) => String::new(),
        // One text is taken as it is.
        Some(Json::String(text)) => text.clone(),
        Some(system) => {
            system_text(system).map_err(|why| Refusal::bad_request(why).about("system"))?
        }
    };
    let mut chat = Vec::new();
    for (i, one) in messages.iter().enumerate() {
        let at = |why: String| fault(&format!("messages[{i}]: {why}"));
        if one.get("role").and_then(Json::as_str) == Some("system") {
            let text = system_text(one.get("content").unwrap_or(&Json::Null)).map_err(at)?;
            if merges {
                instructions.push_str(&text);
            } else if !text.is_empty() {
                chat.push(object([
                    ("role", Json::from("system")),
                    ("content", Json::String(text)),
                ]));
            }
        } else {
            message(one, &mut chat).map_err(at)?;
        }
    }
    if !instructions.is_empty() {
        let content = ("content", Json::String(instructions));
        chat.insert(0, object([("role", Json::from("system")), content]));
    }
    if chat.is_empty() {
        return Err(fault("messages: say nothing"));
    }
    validate::messages(chat, harmony)
}

/// A system text without blocks that bill.
fn system_text(content: &Json) -> Result<String, String> {
    let text = match content {
        Json::String(text) => std::slice::from_ref(text)
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
        Json::Array(blocks) => {
            let text =
                |block: &'_ Json| block.get("text").and_then(Json::as_str).map(str::to_owned);
            let of_text = blocks.iter().filter(|block| kind(block) == Some("text"));
            let texts: Option<Vec<String>> = of_text.map(text).collect();
            let texts = texts.ok_or("a block needs a string member text")?;
            return Ok(texts
                .into_iter()
                .filter(|text| !text.starts_with(BILLING_HEADER))
                .collect());
        }
        _ => return Err("content must be a string or a list of blocks".to_owned()),
    };
    Ok(text
        .into_iter()
        .filter(|text| !text.starts_with(BILLING_HEADER))
        .collect())
}

fn kind(block: &Json) -> Option<&str> {
    block.get("type").and_then(Json::as_str)
}

/// What a message's blocks say.
#[derive(Default)]
struct Whole {
    parts: Vec<Json>,
    thoughts: Vec<String>,
    calls: Vec<Json>,
}

fn message(message: &Json, chat: &mut Vec<Json>) -> Result<(), String> {
    let role = match message.get("role").and_then(Json::as_str) {
        Some(role @ ("user" | "assistant")) => role,
        Some(other) => return Err(format!("Unknown role: {other}")),
        None => return Err("needs a role".to_owned()),
    };
    let mut said = vec![("role", Json::from(role))];
    match message.get("content") {
        Some(text @ Json::String(_)) => said.push(("content", text.clone())),
        Some(Json::Array(blocks)) => {
            let mut whole = Whole::default();
            for block in blocks {
                self::block(block, role, &mut whole, chat)?;
            }
            if !whole.thoughts.is_empty() {
                said.push(("reasoning", Json::String(whole.thoughts.concat())));
            }
            if !whole.calls.is_empty() {
                said.push(("tool_calls", Json::Array(whole.calls)));
            }
            match whole.parts.as_slice() {
                [] if role == "user" => return Ok(()),
                [] => {}
                [one] if kind(one) == Some("text") => {
                    said.push(("content", one.get("text").cloned().unwrap_or_default()));
                }
                _ => said.push(("content", Json::Array(whole.parts))),
            }
        }
        _ => return Err("content must be a string or a list of blocks".to_owned()),
    }
    chat.push(object(said));
    Ok(())
}

fn block(block: &Json, role: &str, whole: &mut Whole, chat: &mut Vec<Json>) -> Result<(), String> {
    let text = |member: &str| {
        let text = block.get(member).and_then(Json::as_str);
        text.ok_or_else(|| format!("a block needs a string member {member}"))
    };
    match kind(block) {
        Some("text") if text("text")?.is_empty() => {}
        Some("text") => whole.parts.push(text_part(text("text")?)),
        Some("thinking") => whole.thoughts.push(text("thinking")?.to_owned()),
        Some("redacted_thinking" | "tool_reference") => {}
        Some("image" | "document") => whole.parts.push(image()),
        Some("tool_use") => {
            let input = block.get("input").filter(|input| **input != Json::Null);
            let arguments = input.map_or_else(|| "{}".to_owned(), |input| input.dumps(true));
            let function = object([
                ("name", Json::from(text("name")?)),
                ("arguments", Json::String(arguments)),
            ]);
            let call = [
                ("id", Json::from(text("id")?)),
                ("type", Json::from("function")),
                ("function", function),
            ];
            whole.calls.push(object(call));
        }
        Some("tool_result") if role == "user" => result(block, text("tool_use_id")?, chat),
        Some("tool_result") => {
            let said = block
                .get("content")
                .and_then(Json::as_str)
                .unwrap_or_default();
            whole.parts.push(text_part(&format!("Tool result: {said}")));
        }
        other => return Err(format!("Unknown block type: {}", other.unwrap_or("none"))),
    }
    Ok(())
}

fn text_part(text: &str) -> Json {
    object([("type", Json::from("text")), ("text", Json::from(text))])
}

fn image() -> Json {
    object([
        ("type", Json::from("image_url")),
        ("image_url", object([("url", Json::from(""))])),
    ])
}

/// A tool's result: its texts as lines, and behind it a message of its images and one of the tools that it names.
fn result(block: &Json, id: &str, chat: &mut Vec<Json>) {
    let parts = match block.get("content") {
        Some(Json::Array(parts)) => parts.as_slice(),
        _ => &[],
    };
    let of = |wanted: &'static str| parts.iter().filter(move |part| kind(part) == Some(wanted));
    let text = match block.get("content") {
        Some(Json::String(text)) => text.clone(),
        _ => {
            let texts =
                of("text").map(|part| part.get("text").and_then(Json::as_str).unwrap_or_default());
            texts.collect::<Vec<_>>().join("\n")
        }
    };
    let answer = |content: Json| {
        object([
            ("role", Json::from("tool")),
            ("tool_call_id", Json::from(id)),
            ("content", content),
        ])
    };
    chat.push(answer(Json::String(text)));
    let images: Vec<Json> = of("image").map(|_| image()).collect();
    if !images.is_empty() {
        chat.push(object([
            ("role", Json::from("user")),
            ("content", Json::Array(images)),
        ]));
    }
    let named =
        of("tool_reference").filter_map(|part| part.get("tool_name").or_else(|| part.get("name")));
    let named: Vec<Json> = named
        .map(|name| {
            object([
                ("type", Json::from("tool_reference")),
                ("name", name.clone()),
            ])
        })
        .collect();
    if !named.is_empty() {
        chat.push(answer(Json::Array(named)));
    }
}

/// Tools, as a chat would offer them.
pub(super) fn tools(tools: Option<&[Json]>) -> Result<Option<Vec<Tool>>, Refusal> {
    let Some(tools) = tools else {
        return Ok(None);
    };
    let mut offered = Vec::new();
    for tool in tools {
        let Some(name @ Json::String(_)) = tool.get("name") else {
            return Err(Refusal::bad_request("a tool needs a name").about("tools"));
        };
        // Server tools (web search and the like) have a type, no schema, and show the model nothing.
        let Some(schema) = tool.get("input_schema") else {
            continue;
        };
        let mut schema = schema.clone();
        if let Json::Object(members) = &mut schema
            && !members.iter().any(|(name, _)| name == "type")
        {
            members.push(("type".to_owned(), Json::from("object")));
        }
        let mut function = vec![("name", name.clone()), ("parameters", schema)];
        for member in ["description", "strict", "defer_loading"] {
            function.extend(tool.get(member).map(|value| (member, value.clone())));
        }
        offered.push(tools::of_function(&object(function), None));
    }
    Ok(Some(offered))
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
