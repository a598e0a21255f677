//! A conversation as a template sees it: what vLLM 0.32.0 makes of the request (`renderers/chat_utils.py`,
//! `renderers/hf.py`).
//!
//! Arguments of calls are objects, not text; a developer's message becomes the system's where the template knows no
//! developer, and then all system messages become one. Empty parts of a message leave no line in its text.
//! Not here: rendering (`template`).

use minijinja::Value;
use minijinja::value::Serde;

use crate::conversation::{BILLING_LINE, Call, Content, Conversation, Tool, Turn};
use crate::tree::Tree;

/// Stands at the end of a message that is to be continued, to find it in the text; a template that trims takes the
/// space off.
pub(super) const CONTINUED: &str = "TOLLGATE_GOES_ON_HERE ";

/// What a template's text says about what it can take.
#[derive(Clone, Copy)]
pub(super) struct TemplateForm {
    pub(super) takes_parts: bool,
    pub(super) knows_developer: bool,
}

pub(super) fn of(
    conversation: &Conversation,
    effort: Option<&str>,
    form: TemplateForm,
) -> Vec<(String, Value)> {
    let mut messages: Vec<Tree> = Vec::new();
    if let Some(text) = conversation.instructions.as_deref()
        && !text.is_empty()
    {
        messages.push(instructions("system", &Content::of(text), form));
    }
    messages.extend(conversation.turns.iter().map(|turn| seen(turn, form)));
    let is_developer = |message: &Tree| message.get_text("role") == Some("developer");
    if !form.knows_developer && messages.iter().any(is_developer) {
        messages = with_one_system(messages);
    }
    if conversation.continues
        && let Some(last) = messages.last_mut()
    {
        mark(last);
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
    if let Some(effort) = effort {
        arguments.push(("reasoning_effort".to_owned(), Value::from(effort)));
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

fn seen(turn: &Turn, form: TemplateForm) -> Tree {
    let (mut seen, name) = match turn {
        Turn::Instructions {
            role,
            content,
            name,
        } => (instructions(role, content, form), name),
        Turn::User { content, name } => (message("user", shown(content, form)), name),
        Turn::Answer {
            content,
            call_id,
            name,
        } => {
            let text = if form.takes_parts {
                content.parts.join("\n")
            } else {
                joined(content)
            };
            let mut answer = message("tool", Tree::Text(text));
            push(&mut answer, "tool_call_id", call_id.as_str().into());
            (answer, name)
        }
        Turn::Assistant {
            content,
            reasoning,
            calls,
            name,
        } => {
            let mut assistant = message("assistant", shown(content, form));
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

fn shown(content: &Content, form: TemplateForm) -> Tree {
    if !form.takes_parts {
        return Tree::Text(joined(content));
    }
    let part = |text: &String| Tree::map([("type", "text".into()), ("text", text.as_str().into())]);
    Tree::List(content.parts.iter().map(part).collect())
}

fn joined(content: &Content) -> String {
    let parts: Vec<_> = content
        .parts
        .iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    parts.join("\n")
}

/// A message of the system or the developer; the system's without the line for a provider's accounting.
fn instructions(role: &str, content: &Content, form: TemplateForm) -> Tree {
    if role != "system" {
        return message(role, shown(content, form));
    }
    let kept = content.parts.iter().filter_map(|part| {
        if !part.starts_with(BILLING_LINE) {
            return Some(part.clone());
        }
        let (_, rest) = part.split_once('\n')?;
        (!rest.is_empty()).then(|| rest.to_owned())
    });
    let content = Content {
        parts: kept.collect(),
    };
    message(role, shown(&content, form))
}

/// Puts the mark behind the last text of a message.
fn mark(message: &mut Tree) {
    match member(message, "content") {
        Some(Tree::Text(text)) => text.push_str(CONTINUED),
        Some(Tree::List(parts)) => {
            if let Some(Tree::Text(text)) = parts.last_mut().and_then(|part| member(part, "text")) {
                text.push_str(CONTINUED);
            }
        }
        _ => {}
    }
}

fn member<'a>(tree: &'a mut Tree, name: &str) -> Option<&'a mut Tree> {
    let Tree::Map(members) = tree else {
        return None;
    };
    members
        .iter_mut()
        .find_map(|(other, member)| (other == name).then_some(member))
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
