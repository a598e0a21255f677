//! A conversation as a template sees it: what vLLM 0.32.0 makes of the request (`renderers/chat_utils.py`,
//! `renderers/hf.py`).
//!
//! Arguments of calls are objects, not text; a developer's message becomes the system's where the template knows no
//! developer, and then all system messages become one.
//! Not here: rendering (`template`).

use minijinja::Value;
use minijinja::value::Serde;

use super::Shape;
use crate::conversation::{Call, Content, Conversation, Tool, Turn};
use crate::tree::Tree;

pub(super) fn of(conversation: &Conversation, shape: Shape) -> Vec<(String, Value)> {
    let mut messages: Vec<Tree> = Vec::new();
    if let Some(text) = &conversation.instructions {
        messages.push(message("system", Tree::from(text.as_str())));
    }
    messages.extend(conversation.turns.iter().map(|turn| seen(turn, shape)));
    let is_developer = |message: &Tree| message.get_text("role") == Some("developer");
    if !shape.knows_developer && messages.iter().any(is_developer) {
        messages = with_one_system(messages);
    }
    let tools = match conversation.tools.as_slice() {
        [] => Tree::Null,
        tools => Tree::List(tools.iter().map(tool).collect()),
    };
    let mut arguments = vec![
        ("messages".to_owned(), value(&Tree::List(messages))),
        ("tools".to_owned(), value(&tools)),
        ("documents".to_owned(), Value::from(())),
        ("add_generation_prompt".to_owned(), Value::from(true)),
    ];
    if let Some(effort) = &conversation.effort {
        arguments.push(("reasoning_effort".to_owned(), Value::from(effort.as_str())));
        arguments.push(("enable_thinking".to_owned(), Value::from(effort != "none")));
    }
    let given = conversation.template_arguments.iter();
    arguments.extend(given.map(|(name, tree)| (name.clone(), value(tree))));
    arguments
}

fn value(tree: &Tree) -> Value {
    Value::from(Serde(tree))
}

fn message(role: &str, content: Tree) -> Tree {
    Tree::map([("role", role.into()), ("content", content)])
}

fn seen(turn: &Turn, shape: Shape) -> Tree {
    let (mut seen, name) = match turn {
        Turn::Instructions {
            role,
            content,
            name,
        } => (message(role, shown(content, shape)), name),
        Turn::User { content, name } => (message("user", shown(content, shape)), name),
        Turn::Answer {
            content,
            call_id,
            name,
        } => {
            let mut answer = message("tool", Tree::Text(content.parts.join("\n")));
            push(&mut answer, "tool_call_id", call_id.as_str().into());
            (answer, name)
        }
        Turn::Assistant {
            content,
            reasoning,
            calls,
            name,
        } => {
            let mut assistant = message("assistant", shown(content, shape));
            if !calls.is_empty() {
                let calls = calls.iter().map(call).collect();
                push(&mut assistant, "tool_calls", Tree::List(calls));
            }
            if let Some(text) = reasoning {
                push(&mut assistant, "reasoning", text.as_str().into());
                push(&mut assistant, "reasoning_content", text.as_str().into());
            }
            (assistant, name)
        }
    };
    if let Some(name) = name {
        push(&mut seen, "name", name.as_str().into());
    }
    seen
}

fn push(tree: &mut Tree, name: &str, member: Tree) {
    if let Tree::Map(members) = tree {
        members.push((name.to_owned(), member));
    }
}

fn shown(content: &Content, shape: Shape) -> Tree {
    if !shape.takes_parts {
        return Tree::Text(content.parts.join("\n"));
    }
    let part = |text: &String| Tree::map([("type", "text".into()), ("text", text.as_str().into())]);
    Tree::List(content.parts.iter().map(part).collect())
}

/// The call with its arguments read; what is no object becomes an empty one.
fn call(call: &Call) -> Tree {
    let arguments = match serde_json::from_str(&call.arguments) {
        Ok(object @ Tree::Map(_)) => object,
        _ => Tree::Map(Vec::new()),
    };
    let mut tree = call.tree.clone();
    if let Tree::Map(members) = &mut tree
        && let Some((_, Tree::Map(function))) =
            members.iter_mut().find(|(name, _)| name == "function")
    {
        match function.iter_mut().find(|(name, _)| name == "arguments") {
            Some((_, place)) => *place = arguments,
            None => function.push(("arguments".to_owned(), arguments)),
        }
    }
    tree
}

fn tool(tool: &Tool) -> Tree {
    let text = |text: &Option<String>| text.as_deref().map_or(Tree::Null, Tree::from);
    let mut function = Tree::map([
        ("name", tool.name.as_str().into()),
        ("description", text(&tool.description)),
        ("parameters", tool.parameters.clone().unwrap_or(Tree::Null)),
    ]);
    if let Some(strict) = &tool.strict {
        push(&mut function, "strict", strict.clone());
    }
    Tree::map([("type", "function".into()), ("function", function)])
}

fn with_one_system(messages: Vec<Tree>) -> Vec<Tree> {
    let is_system =
        |message: &Tree| matches!(message.get_text("role"), Some("system" | "developer"));
    let (system, mut others): (Vec<_>, Vec<_>) = messages.into_iter().partition(is_system);
    let texts: Vec<_> = system
        .iter()
        .filter_map(|message| message.get("content"))
        .map(|content| match content {
            Tree::List(parts) => {
                let parts: Vec<_> = parts
                    .iter()
                    .filter_map(|part| part.get_text("text"))
                    .collect();
                parts.join("\n")
            }
            other => other.text().unwrap_or_default().to_owned(),
        })
        .filter(|text| !text.is_empty())
        .collect();
    others.insert(0, message("system", Tree::Text(texts.join("\n\n"))));
    others
}
