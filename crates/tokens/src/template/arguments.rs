//! A conversation as a template sees it: what vLLM 0.32.0 makes of the request (`renderers/chat_utils.py`,
//! `renderers/hf.py`).
//!
//! Arguments of calls are objects, not text; a developer's message becomes the system's where the template knows no
//! developer, and then all system messages become one. Empty parts of a message leave no line in its text.
//! Not here: rendering (`template`).

use minijinja::Value;
use minijinja::value::Serde;

use crate::conversation::{BILLING_LINE, Call, Content, Conversation, Part, Tool, Turn};
use crate::tree::Tree;

/// Stands at the end of a message that is to be continued, to find it in the text; a template that trims takes the
/// space off. It is the one of `transformers`: some templates look for it.
pub(super) const CONTINUED: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// Parameters of `apply_chat_template` itself, which no template sees.
const NOT_FOR_TEMPLATES: [&str; 8] = [
    "continue_final_message",
    "max_length",
    "padding",
    "return_assistant_tokens_mask",
    "return_dict",
    "return_tensors",
    "tokenizer_kwargs",
    "truncation",
];

/// What a template's text says about what it can take.
#[derive(Clone, Copy)]
pub(super) struct TemplateForm {
    pub(super) takes_parts: bool,
    pub(super) knows_developer: bool,
}

/// What a template is given beside the messages: the body's own arguments, over them what its dialect says, and all of
/// that over the tools and the engine's defaults. Null and `auto` say nothing.
pub(super) fn merged(
    conversation: &Conversation,
    effort: Option<&str>,
    defaults: &[(String, Tree)],
) -> Vec<(String, Tree)> {
    let mut asked = conversation.own_arguments.clone();
    let thinks_by_itself = asked.iter().any(|(name, _)| name == "enable_thinking");
    for (name, value) in &conversation.said_arguments {
        put_set(&mut asked, name, value);
    }
    if let Some(effort) = effort {
        put_set(&mut asked, "reasoning_effort", &effort.into());
        if !thinks_by_itself {
            put(&mut asked, "enable_thinking", Tree::Bool(effort != "none"));
        }
    }
    let mut all = if conversation.keeps_unset && defaults.is_empty() {
        asked.clone()
    } else {
        defaults.to_vec()
    };
    if let Some(tools) = &conversation.tools {
        put(
            &mut all,
            "tools",
            Tree::List(tools.iter().map(tool).collect()),
        );
    }
    for (name, value) in &asked {
        put_set(&mut all, name, value);
    }
    all.retain(|(name, _)| !NOT_FOR_TEMPLATES.contains(&name.as_str()));
    all
}

fn put_set(all: &mut Vec<(String, Tree)>, name: &str, value: &Tree) {
    if !matches!(value, Tree::Null) && value.text() != Some("auto") {
        put(all, name, value.clone());
    }
}

fn put(all: &mut Vec<(String, Tree)>, name: &str, value: Tree) {
    match all.iter_mut().find(|(other, _)| other == name) {
        Some((_, place)) => *place = value,
        None => all.push((name.to_owned(), value)),
    }
}

/// The messages as the template sees them.
pub(super) fn messages(conversation: &Conversation, form: TemplateForm) -> Vec<Tree> {
    let mut messages: Vec<Tree> = Vec::new();
    if let Some(text) = conversation.instructions.as_deref()
        && !text.is_empty()
    {
        messages.push(instructions("system", &Content::of(text), form));
    }
    messages.extend(conversation.turns.iter().map(|turn| seen(turn, form)));
    let is_developer = |message: &Tree| message.get_text("role") == Some("developer");
    if form.knows_developer || !messages.iter().any(is_developer) {
        return messages;
    }
    messages.iter_mut().for_each(as_system);
    // One that stands first stays as it is.
    let is_system = |message: &Tree| message.get_text("role") == Some("system");
    if messages.iter().skip(1).any(is_system) {
        messages = with_one_system(messages);
    }
    messages
}

/// Makes a developer's message the system's.
fn as_system(message: &mut Tree) {
    if message.get_text("role") != Some("developer") {
        return;
    }
    if let Some(role) = member(message, "role") {
        *role = "system".into();
    }
    if let Tree::Map(members) = message {
        members.retain(|(name, _)| name != "tools");
    }
}

pub(super) fn value(tree: &Tree) -> Value {
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
            tools,
        } => {
            let mut seen = instructions(role, content, form);
            if let Some(name) = name {
                push(&mut seen, "name", name.as_str().into());
            }
            if *role == "developer" {
                push(&mut seen, "tools", tools.clone().unwrap_or(Tree::Null));
            }
            (seen, &None)
        }
        Turn::Other {
            role,
            content,
            name,
        } => (message(role, shown(content, form)), name),
        Turn::User { content, name } => (message("user", shown(content, form)), name),
        Turn::Answer {
            content,
            call_id,
            name,
            of: _,
        } => {
            let text = if form.takes_parts {
                content.joined("\n")
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
    let part = |part: &Part| {
        let mut members = vec![
            ("type".to_owned(), "text".into()),
            ("text".to_owned(), part.text.as_str().into()),
        ];
        members.extend(part.rest.iter().cloned());
        Tree::Map(members)
    };
    Tree::List(content.parts.iter().map(part).collect())
}

fn joined(content: &Content) -> String {
    let texts: Vec<_> = content.texts().filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// A message of the system or the developer; the system's without the line for a provider's accounting.
fn instructions(role: &str, content: &Content, form: TemplateForm) -> Tree {
    if role != "system" {
        return message(role, shown(content, form));
    }
    let kept = content.parts.iter().filter_map(|part| {
        if !part.text.starts_with(BILLING_LINE) {
            return Some(part.clone());
        }
        let (_, text) = part.text.split_once('\n')?;
        (!text.is_empty()).then(|| Part {
            text: text.to_owned(),
            rest: part.rest.clone(),
        })
    });
    let content = Content {
        parts: kept.collect(),
    };
    message(role, shown(&content, form))
}

/// Puts the mark behind the last text of a message and gives that text, if there is one.
pub(super) fn mark(message: &mut Tree) -> Option<String> {
    let mut parts;
    let text = match member(message, "content")? {
        Tree::List(list) => {
            parts = list.iter_mut().rev();
            parts.find_map(|part| member(part, "text"))?
        }
        other => other,
    };
    let Tree::Text(text) = text else {
        return None;
    };
    let before = text.clone();
    text.push_str(CONTINUED);
    Some(before)
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
    let extra = [("strict", &tool.strict), ("defer_loading", &tool.deferred)];
    for (name, value) in extra {
        if let Some(value) = value {
            push(&mut function, name, value.clone());
        }
    }
    let mut shown = Tree::map([("type", "function".into()), ("function", function)]);
    if let Some(deferred) = &tool.outer_deferred {
        push(&mut shown, "defer_loading", deferred.clone());
    }
    shown
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
