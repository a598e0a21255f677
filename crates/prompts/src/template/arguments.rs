//! A conversation as a template sees it: what vLLM 0.32.0 makes of the request (`renderers/chat_utils.py`,
//! `renderers/hf.py`).
//!
//! Arguments of calls are objects, not text; a developer's message becomes the system's where the template knows no
//! developer, and then all system messages become one. Empty parts of a message leave no line in its text.
//! Not here: rendering (`template`).

use std::borrow::Cow;

use minijinja::Value;
use minijinja::value::Serde;

use crate::Doubt;
use crate::Word;
use crate::conversation::{BILLING_LINE, Call, CallForm, CallId, Conversation, Part, Tool, Turn};
use crate::tree::{Member, Members, Tree};

/// Stands at the end of a message that is to be continued, to find it in the text; a template that trims takes the
/// space off. It is the one of `transformers`: some templates look for it.
pub(super) const CONTINUED: &str = "CONTINUE_FINAL_MESSAGE_TAG ";

/// Parameters of `apply_chat_template` itself, which no template sees.
const NOT_FOR_TEMPLATES: [&str; 9] = [
    "continue_final_message",
    "max_length",
    "padding",
    "return_assistant_tokens_mask",
    "return_dict",
    "return_tensors",
    "tokenize",
    "tokenizer_kwargs",
    "truncation",
];

/// What a template's text says about what it can take.
#[derive(Clone, Copy, Debug)]
pub(super) struct TemplateForm {
    pub(super) takes_parts: bool,
    pub(super) knows_developer: bool,
}

/// What a template is given beside the messages: the body's own arguments, over them what its dialect says, and all of
/// that over the tools and the engine's defaults. Null and `auto` say nothing.
pub(super) fn merged<'t>(
    conversation: &'t Conversation<'t>,
    effort: Option<&'t str>,
    defaults: &[Member<'t>],
) -> Vec<Member<'t>> {
    let mut asked = Members::default();
    for (name, value) in conversation.own_arguments {
        asked.put(name.clone(), value.clone());
    }
    let mut own = conversation.own_arguments.iter();
    let thinks_by_itself = own.any(|(name, _)| name == "enable_thinking");
    for (name, value) in &conversation.said_arguments {
        put_set(&mut asked, Cow::Borrowed(*name), value.clone());
    }
    if let Some(effort) = effort {
        put_set(&mut asked, Cow::Borrowed("reasoning_effort"), effort.into());
        if !thinks_by_itself {
            let thinks = Tree::Bool(effort != "none");
            asked.put(Cow::Borrowed("enable_thinking"), thinks);
        }
    }
    let mut all = Members::default();
    let first = if conversation.keeps_unset && defaults.is_empty() {
        asked.list.as_slice()
    } else {
        defaults
    };
    for (name, value) in first {
        all.put(name.clone(), value.clone());
    }
    if let Some(tools) = &conversation.tools {
        let tools = tools.iter().map(tool).collect();
        all.put(Cow::Borrowed("tools"), Tree::List(tools));
    }
    for (name, value) in asked.list {
        put_set(&mut all, name, value);
    }
    all.list
        .retain(|(name, _)| !NOT_FOR_TEMPLATES.contains(&&**name));
    all.list
}

fn put_set<'t>(all: &mut Members<'t>, name: Cow<'t, str>, value: Tree<'t>) {
    if !matches!(value, Tree::Null) && value.text() != Some("auto") {
        all.put(name, value);
    }
}

/// The messages as the template sees them, and what is doubtful of them.
pub(super) fn messages<'t>(
    conversation: &'t Conversation<'t>,
    form: TemplateForm,
) -> (Vec<Tree<'t>>, Option<Doubt>) {
    let mut doubt = None;
    let messages = all_messages(conversation, form, &mut doubt);
    (messages, doubt)
}

fn all_messages<'t>(
    conversation: &'t Conversation<'t>,
    form: TemplateForm,
    doubt: &mut Option<Doubt>,
) -> Vec<Tree<'t>> {
    let mut messages: Vec<Tree<'_>> = Vec::new();
    if let Some(text) = conversation.instructions
        && !text.is_empty()
    {
        let prompt = std::iter::once(Part::from(text));
        messages.push(instructions(Word::System, prompt, form));
    }
    for (at, turn) in conversation.turns.iter().enumerate() {
        let mut message = seen(turn, form, doubt);
        if let Some(task) = conversation.tasks.get(at).copied().flatten() {
            push(&mut message, "task", task.into());
        }
        messages.push(message);
    }
    let is_developer = |message: &Tree<'_>| message.get_text("role") == Some("developer");
    if form.knows_developer || !messages.iter().any(is_developer) {
        return messages;
    }
    messages.iter_mut().for_each(as_system);
    // One that stands first stays as it is.
    let is_system = |message: &Tree<'_>| message.get_text("role") == Some("system");
    if messages.iter().skip(1).any(is_system) {
        messages = with_one_system(messages);
    }
    messages
}

/// Makes a developer's message the system's.
fn as_system(message: &mut Tree<'_>) {
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

pub(super) fn value(tree: &Tree<'_>) -> Value {
    Value::from(Serde(tree))
}

fn message<'t>(role: &'t str, content: Tree<'t>) -> Tree<'t> {
    Tree::map([("role", role.into()), ("content", content)])
}

fn seen<'t>(turn: &'t Turn<'t>, form: TemplateForm, doubt: &mut Option<Doubt>) -> Tree<'t> {
    let (mut seen, name) = match turn {
        Turn::Instructions {
            role,
            content,
            name,
            tools,
        } => {
            let mut seen = instructions(*role, content.borrowed(), form);
            if let Some(name) = name {
                push(&mut seen, "name", (*name).into());
            }
            if *role == Word::Developer {
                push(&mut seen, "tools", tools.cloned().unwrap_or(Tree::Null));
            }
            (seen, &None)
        }
        Turn::Other {
            role,
            content,
            name,
        } => (message(role, shown(content.borrowed(), form)), name),
        Turn::User { content, name } => (message("user", shown(content.borrowed(), form)), name),
        Turn::Answer {
            content,
            call_id,
            name,
            of: _,
        } => {
            let has_media = content.parts.iter().any(|part| part.medium.is_some());
            let said = match form.takes_parts {
                true if has_media => shown(content.borrowed(), form),
                true => Tree::Text(content.joined("\n")),
                false => Tree::Text(joined(content.borrowed())),
            };
            let mut answer = message("tool", said);
            match call_id {
                CallId::Absent => {}
                CallId::Null => push(&mut answer, "tool_call_id", Tree::Null),
                CallId::Of(id) => push(&mut answer, "tool_call_id", (*id).into()),
            }
            (answer, name)
        }
        Turn::Assistant {
            content,
            reasoning,
            calls,
            name,
        } => {
            let mut assistant = message("assistant", shown(content.borrowed(), form));
            if !calls.is_empty() {
                let calls = calls.iter().map(|it| call(it, doubt)).collect();
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

fn shown<'t>(parts: impl Iterator<Item = Part<'t>>, form: TemplateForm) -> Tree<'t> {
    if !form.takes_parts {
        return Tree::Text(joined(parts));
    }
    Tree::List(parts.map(part).collect())
}

fn part(part: Part<'_>) -> Tree<'_> {
    if let Some(medium) = part.medium {
        return medium;
    }
    let rest = part.rest();
    let mut members = vec![
        (Cow::Borrowed("type"), "text".into()),
        (Cow::Borrowed("text"), Tree::Text(part.text)),
    ];
    members.extend(rest.cloned());
    Tree::Map(members)
}

/// All that are not empty, a line each.
fn joined<'t>(parts: impl Iterator<Item = Part<'t>>) -> Cow<'t, str> {
    let texts = parts.map(|part| part.text).filter(|text| !text.is_empty());
    let mut texts: Vec<_> = texts.collect();
    match texts.len() {
        1 => texts.pop().unwrap_or_default(),
        _ => texts.join("\n").into(),
    }
}

/// A message of the system or the developer; the system's without the line for a provider's accounting.
fn instructions<'t>(
    role: Word,
    parts: impl Iterator<Item = Part<'t>>,
    form: TemplateForm,
) -> Tree<'t> {
    if role != Word::System {
        return message(role.text(), shown(parts, form));
    }
    let kept = parts.filter_map(|part| {
        if !part.text.starts_with(BILLING_LINE) {
            return Some(part);
        }
        let text = match part.text {
            Cow::Borrowed(text) => Cow::Borrowed(text.split_once('\n')?.1),
            Cow::Owned(text) => Cow::Owned(text.split_once('\n')?.1.to_owned()),
        };
        (!text.is_empty()).then_some(Part { text, ..part })
    });
    message(role.text(), shown(kept, form))
}

/// Puts the mark behind the last text of a message and gives that text, if there is one.
pub(super) fn mark<'t>(message: &mut Tree<'t>) -> Option<Cow<'t, str>> {
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
    text.to_mut().push_str(CONTINUED);
    Some(before)
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
fn call<'t>(call: &'t Call<'t>, doubt: &mut Option<Doubt>) -> Tree<'t> {
    if call.has_made_up_id() {
        *doubt = Some(Doubt::Id);
    }
    let arguments = match serde_json::from_str(&call.arguments) {
        Ok(object @ Tree::Map(_)) => object,
        Ok(_) => Tree::Map(Vec::new()),
        Err(error) => {
            if python_may_read(&call.arguments, &error) {
                *doubt = Some(Doubt::Arguments);
            }
            Tree::Map(Vec::new())
        }
    };
    let made = |function| {
        Tree::map([
            ("id", call.id.into()),
            ("function", function),
            ("type", "function".into()),
        ])
    };
    let name = ("name", (&*call.name).into());
    let mut tree = match &call.form {
        CallForm::Chat(tree) => {
            let function = tree.get("function").map_or(Tree::Null, |function| {
                in_order(function, &["arguments", "name"], None)
            });
            in_order(tree, &["id", "function", "type"], Some(function))
        }
        CallForm::Item => made(Tree::map([name, ("arguments", Tree::Null)])),
        CallForm::Block => made(Tree::map([("arguments", Tree::Null), name])),
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

/// Whether Python may read what is no JSON here: it has more numbers, takes half a character for one, and goes deeper.
fn python_may_read(json: &str, error: &serde_json::Error) -> bool {
    let why = error.to_string();
    ["NaN", "Infinity", "\\u"]
        .iter()
        .any(|it| json.contains(it))
        || ["number out of range", "recursion limit"]
            .iter()
            .any(|it| why.starts_with(it))
}

/// The members as vLLM's own types put them: those that they know first. `function`, where it is given, stands in for the
/// member of that name.
fn in_order<'t>(tree: &Tree<'t>, known: &[&str], function: Option<Tree<'t>>) -> Tree<'t> {
    let Tree::Map(members) = tree else {
        return tree.clone();
    };
    let is_known = |name: &str| known.contains(&name);
    let first = known
        .iter()
        .filter_map(|known| members.iter().find(|(name, _)| name == known));
    let others = members.iter().filter(|(name, _)| !is_known(name));
    let mut ordered: Vec<_> = first.chain(others).cloned().collect();
    if let Some(function) = function
        && let Some((_, place)) = ordered.iter_mut().find(|(name, _)| name == "function")
    {
        *place = function;
    }
    Tree::Map(ordered)
}

fn tool<'t>(tool: &'t Tool<'t>) -> Tree<'t> {
    let parameters = tool.parameters.as_ref().map(|it| it.tree().clone());
    let mut function = Tree::map([
        ("name", (&*tool.name).into()),
        (
            "description",
            tool.description.map_or(Tree::Null, Tree::from),
        ),
        ("parameters", parameters.unwrap_or(Tree::Null)),
    ]);
    let extra = [("strict", tool.strict), ("defer_loading", tool.deferred)];
    for (name, value) in extra {
        if let Some(value) = value {
            push(&mut function, name, Tree::Bool(value));
        }
    }
    let mut shown = Tree::map([("type", "function".into()), ("function", function)]);
    if let Some(deferred) = tool.outer_deferred {
        push(&mut shown, "defer_loading", Tree::Bool(deferred));
    }
    shown
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
