//! Chat completions.
//!
//! The older `functions` and `function_call` are not rendered by vLLM; where a provider's own template would render
//! them, they are refused.

use super::{Reader, parts};
use crate::conversation::{Call, Content, Conversation, Tool, Turn};
use crate::tree::Tree;
use crate::uncountable::{Uncountable, wrong};

/// Arguments that are the renderer's and not the template's: what the engine makes of them is not known here.
const OF_THE_RENDERER: [&str; 4] = ["chat_template", "tokenize", "messages", "conversation"];

pub(super) fn read(body: &Tree, reader: Reader) -> Result<Conversation, Uncountable> {
    let messages = body
        .get("messages")
        .and_then(Tree::list)
        .ok_or(wrong("messages", "a list"))?;
    own_template_is_absent(body, reader)?;
    if reader == Reader::Overhead && body.get("functions").is_some() {
        return Err(wrong("functions", "given as `tools`"));
    }
    let given = |name| (name, body.get(name).cloned().unwrap_or(Tree::Null));
    let prompt = body.get("add_generation_prompt");
    let mut conversation = Conversation {
        tools: tools(body)?,
        effort: body.get_text("reasoning_effort").map(str::to_owned),
        continues: is_true(body, "continue_final_message"),
        adds_special_tokens: is_true(body, "add_special_tokens"),
        own_arguments: own_arguments(body, reader)?,
        said_arguments: vec![
            (
                "add_generation_prompt",
                prompt.cloned().unwrap_or(Tree::Bool(true)),
            ),
            given("documents"),
        ],
        ..Conversation::default()
    };
    for message in messages {
        conversation.turns.push(turn(message, reader)?);
    }
    Ok(conversation)
}

pub(super) fn is_true(body: &Tree, name: &str) -> bool {
    matches!(body.get(name), Some(Tree::Bool(true)))
}

/// An engine refuses a body's own template unless it was started to trust it.
pub(super) fn own_template_is_absent(body: &Tree, reader: Reader) -> Result<(), Uncountable> {
    match reader {
        Reader::Template { .. } if body.get("chat_template").is_some() => Err(wrong(
            "chat_template",
            "absent: only the model's own is known",
        )),
        _ => Ok(()),
    }
}

/// What the body asks to be passed to the template.
pub(super) fn own_arguments(
    body: &Tree,
    reader: Reader,
) -> Result<Vec<(String, Tree)>, Uncountable> {
    match body.get("chat_template_kwargs") {
        Some(arguments @ Tree::Map(members)) if matches!(reader, Reader::Template { .. }) => {
            if OF_THE_RENDERER
                .iter()
                .any(|name| arguments.member(name).is_some())
            {
                return Err(wrong(
                    "chat_template_kwargs",
                    "arguments of the template alone",
                ));
            }
            Ok(members.clone())
        }
        _ => Ok(Vec::new()),
    }
}

/// vLLM takes no empty list here.
fn tools(body: &Tree) -> Result<Option<Vec<Tool>>, Uncountable> {
    let Some(tools) = body.get("tools") else {
        return Ok(None);
    };
    let tools = tools.list().ok_or(wrong("tools", "a list"))?;
    if tools.is_empty() {
        return Ok(None);
    }
    let functions = tools.iter().map(|tool| {
        let function = tool
            .get("function")
            .ok_or(wrong("tools", "a list of functions"))?;
        let mut read = Tool::read(function, "parameters")?;
        read.outer_deferred = tool.get("defer_loading").cloned();
        read.deferred = read.deferred.or_else(|| read.outer_deferred.clone());
        Ok(read)
    });
    functions.collect::<Result<_, _>>().map(Some)
}

pub(super) fn turn(message: &Tree, reader: Reader) -> Result<Turn, Uncountable> {
    let content = parts::read(message.get("content"), reader)?;
    if matches!(reader, Reader::Template { .. }) && message.get_text("task").is_some() {
        return Err(wrong("task", "absent: only some templates know it"));
    }
    let name = message.get_text("name").map(str::to_owned);
    match message.get_text("role") {
        Some("system") => Ok(instructions("system", content, name)),
        Some("developer") => Ok(Turn::Instructions {
            role: "developer",
            content,
            name,
            tools: message.get("tools").cloned(),
        }),
        Some("user") => Ok(Turn::User { content, name }),
        Some("assistant") => Ok(Turn::Assistant {
            content,
            reasoning: message
                .get_text("reasoning")
                .or_else(|| message.get_text("reasoning_content"))
                .map(str::to_owned),
            calls: calls(message)?,
            name,
        }),
        Some("tool") => Ok(Turn::Answer {
            content,
            call_id: message
                .get_text("tool_call_id")
                .unwrap_or_default()
                .to_owned(),
            name,
            of: None,
        }),
        Some(role) if matches!(reader, Reader::Template { .. }) => Ok(Turn::Other {
            role: role.to_owned(),
            content,
            name,
        }),
        _ => Err(wrong("role", "system, developer, user, assistant or tool")),
    }
}

fn instructions(role: &'static str, content: Content, name: Option<String>) -> Turn {
    Turn::Instructions {
        role,
        content,
        name,
        tools: None,
    }
}

fn calls(message: &Tree) -> Result<Vec<Call>, Uncountable> {
    let Some(calls) = message.get("tool_calls") else {
        return Ok(Vec::new());
    };
    let calls = calls.list().ok_or(wrong("tool_calls", "a list"))?;
    let read = |call: &Tree| {
        let function = call
            .get("function")
            .ok_or(wrong("tool_calls", "calls of functions"))?;
        let arguments = match function.get("arguments") {
            None => String::new(),
            Some(Tree::Text(text)) => text.clone(),
            Some(_) => return Err(wrong("arguments", "a string")),
        };
        Ok(Call {
            id: call.get_text("id").unwrap_or_default().to_owned(),
            name: function.get_text("name").unwrap_or_default().to_owned(),
            arguments,
            tree: in_order(
                call,
                &["id", "function", "type"],
                in_order(function, &["arguments", "name"], Tree::Null),
            ),
        })
    };
    calls.iter().map(read).collect()
}

/// The members as vLLM's own types put them: those that they know first. `function` stands in for the member of that
/// name.
fn in_order(tree: &Tree, known: &[&str], function: Tree) -> Tree {
    let Tree::Map(members) = tree else {
        return tree.clone();
    };
    let is_known = |name: &String| known.contains(&name.as_str());
    let first = known
        .iter()
        .filter_map(|known| members.iter().find(|(name, _)| name == known));
    let others = members.iter().filter(|(name, _)| !is_known(name));
    let mut ordered: Vec<_> = first.chain(others).cloned().collect();
    if let Some((_, place)) = ordered.iter_mut().find(|(name, _)| name == "function") {
        *place = function;
    }
    Tree::Map(ordered)
}
