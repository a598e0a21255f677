//! A conversation as a template sees it: what vLLM 0.32.0 makes of the request (`renderers/chat_utils.py`,
//! `renderers/hf.py`).
//!
//! Arguments of calls are objects, not text; a developer's message becomes the system's where the template knows no
//! developer, and then all system messages become one. Empty parts of a message leave no line in its text.
//! Not here: rendering (`template`).

use std::borrow::Cow;

use minijinja::Value;
use minijinja::value::Serde;

use crate::conversation::{BILLING_LINE, Call, Content, Conversation, Tool, Turn};
use crate::tree::Tree;
use crate::words::Word;

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
    conversation: &Conversation<'_>,
    effort: Option<&str>,
    form: TemplateForm,
) -> Vec<(String, Value)> {
    let mut messages: Vec<Tree<'_>> = Vec::new();
    let prompt = conversation.instructions.map(Content::of);
    if let Some(prompt) = &prompt
        && prompt.parts.iter().any(|text| !text.is_empty())
    {
        messages.push(instructions(Word::System, prompt, form));
    }
    messages.extend(conversation.turns.iter().map(|turn| seen(turn, form)));
    let is_developer = |message: &Tree<'_>| message.get_text("role") == Some("developer");
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
    arguments.extend(given.map(|(name, tree)| ((*name).to_owned(), value(tree))));
    arguments
}

fn value(tree: &Tree<'_>) -> Value {
    Value::from(Serde(tree))
}

fn message<'t>(role: &'t str, content: Tree<'t>) -> Tree<'t> {
    Tree::map([("role", role.into()), ("content", content)])
}

fn seen<'t>(turn: &'t Turn<'t>, form: TemplateForm) -> Tree<'t> {
    let (mut seen, name) = match turn {
        Turn::Instructions {
            role,
            content,
            name,
        } => (instructions(*role, content, form), name),
        Turn::User { content, name } => (message("user", shown(content, form)), name),
        Turn::Answer {
            content,
            call_id,
            name,
        } => {
            let text = if form.takes_parts {
                content.parts.join("\n").into()
            } else {
                joined(content)
            };
            let mut answer = message("tool", Tree::Text(text));
            push(&mut answer, "tool_call_id", (*call_id).into());
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
                push(&mut assistant, "reasoning", (&**text).into());
                push(&mut assistant, "reasoning_content", (&**text).into());
            }
            (assistant, name)
        }
    };
    if let Some(name) = name {
        push(&mut seen, "name", (*name).into());
    }
    seen
}

fn push<'t>(tree: &mut Tree<'t>, name: &'t str, member: Tree<'t>) {
    if let Tree::Map(members) = tree {
        members.push((Cow::Borrowed(name), member));
    }
}

fn shown<'t>(content: &'t Content<'t>, form: TemplateForm) -> Tree<'t> {
    if !form.takes_parts {
        return Tree::Text(joined(content));
    }
    Tree::List(content.parts.iter().map(|text| part(text)).collect())
}

fn part(text: &str) -> Tree<'_> {
    Tree::map([("type", "text".into()), ("text", text.into())])
}

fn joined<'t>(content: &'t Content<'t>) -> Cow<'t, str> {
    join(content.parts.iter().map(|part| &**part))
}

/// All that are not empty, a line each.
fn join<'t>(parts: impl Iterator<Item = &'t str>) -> Cow<'t, str> {
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [one] => Cow::Borrowed(one),
        parts => parts.join("\n").into(),
    }
}

/// A message of the system or the developer; the system's without the line for a provider's accounting.
fn instructions<'t>(role: Word, content: &'t Content<'t>, form: TemplateForm) -> Tree<'t> {
    if role != Word::System {
        return message(role.text(), shown(content, form));
    }
    let kept = content.parts.iter().filter_map(|part| {
        if !part.starts_with(BILLING_LINE) {
            return Some(&**part);
        }
        let (_, rest) = part.split_once('\n')?;
        (!rest.is_empty()).then_some(rest)
    });
    let shown = if form.takes_parts {
        Tree::List(kept.map(part).collect())
    } else {
        Tree::Text(join(kept))
    };
    message(role.text(), shown)
}

/// Puts the mark behind the last text of a message.
fn mark(message: &mut Tree<'_>) {
    match member(message, "content") {
        Some(Tree::Text(text)) => text.to_mut().push_str(CONTINUED),
        Some(Tree::List(parts)) => {
            if let Some(Tree::Text(text)) = parts.last_mut().and_then(|part| member(part, "text")) {
                text.to_mut().push_str(CONTINUED);
            }
        }
        _ => {}
    }
}

fn member<'a, 't>(tree: &'a mut Tree<'t>, name: &str) -> Option<&'a mut Tree<'t>> {
    let Tree::Map(members) = tree else {
        return None;
    };
    members
        .iter_mut()
        .find_map(|(other, member)| (other == name).then_some(member))
}

/// The call with its arguments read; what is no object becomes an empty one.
fn call<'t>(call: &'t Call<'t>) -> Tree<'t> {
    let arguments = match serde_json::from_str(&call.arguments) {
        Ok(object @ Tree::Map(_)) => object,
        _ => Tree::Map(Vec::new()),
    };
    let mut tree = match call.tree {
        Some(tree) => tree.clone(),
        None => Tree::map([
            ("id", call.id.into()),
            ("type", "function".into()),
            ("function", Tree::map([("name", call.name.into())])),
        ]),
    };
    if let Tree::Map(members) = &mut tree
        && let Some((_, Tree::Map(function))) =
            members.iter_mut().find(|(name, _)| name == "function")
    {
        match function.iter_mut().find(|(name, _)| name == "arguments") {
            Some((_, place)) => *place = arguments,
            None => function.push((Cow::Borrowed("arguments"), arguments)),
        }
    }
    tree
}

fn tool<'t>(tool: &Tool<'t>) -> Tree<'t> {
    let tree = |tree: Option<&Tree<'t>>| tree.cloned().unwrap_or(Tree::Null);
    let mut function = Tree::map([
        ("name", tool.name.into()),
        (
            "description",
            tool.description.map_or(Tree::Null, Tree::from),
        ),
        ("parameters", tree(tool.parameters)),
    ]);
    if let Some(strict) = tool.strict {
        push(&mut function, "strict", strict.clone());
    }
    Tree::map([("type", "function".into()), ("function", function)])
}

fn with_one_system(messages: Vec<Tree<'_>>) -> Vec<Tree<'_>> {
    let is_system =
        |message: &Tree<'_>| matches!(message.get_text("role"), Some("system" | "developer"));
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
    others.insert(0, message("system", Tree::Text(texts.join("\n\n").into())));
    others
}
