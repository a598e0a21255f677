//! The conversations of the chat dialect and the items of responses, as turns that are rendered.
//!
//! Invariant: a part that is no text has none in the prompt; a template that takes parts is told of it, and Harmony is not.
//! Not here: which messages a body may have (`validate`), rendering (`prompts`).

use std::borrow::Cow;

use prompts::conversation::{
    Call, CallForm, CallId, Content, Conversation as Given, Part, Tool, Turn,
};
use prompts::tree::Tree;
use prompts::{Uncountable, Word};

use super::{Conversation, Effort};

/// Who is to render.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum For {
    Harmony,
    Template,
    /// A template that is given what responses say.
    TemplateOfItems,
}

/// Hands the conversation to who renders it. Says in words what is wrong with it.
pub(super) fn with<T>(
    conversation: &Conversation,
    is_harmony: bool,
    render: impl FnOnce(&Given<'_>) -> Result<T, Uncountable>,
) -> Result<T, String> {
    let arguments = &conversation.arguments;
    let messages: Vec<Tree<'_>> = conversation.messages.iter().map(|one| one.tree()).collect();
    let tools = conversation.tools.as_ref();
    let tools: Option<Vec<Tree<'_>>> =
        tools.map(|tools| tools.iter().map(|tool| tool.whole.tree()).collect());
    let read = tools.iter().flatten().map(Tool::of_chat);
    let read: Vec<Tool<'_>> = read.collect::<Result<_, _>>().map_err(says)?;
    let own = arguments.own.iter();
    let own: Vec<_> = own
        .map(|(name, value)| (Cow::Borrowed(name.as_str()), value.tree()))
        .collect();
    let documents = arguments.documents.as_ref();
    let bytes = |trees: &[Tree<'_>]| trees.iter().map(Tree::bytes).sum::<usize>();
    let body_bytes = bytes(&messages) + tools.as_deref().map_or(0, bytes);
    let reader = match (is_harmony, arguments.keeps_unset) {
        (true, _) => For::Harmony,
        (false, true) => For::TemplateOfItems,
        (false, false) => For::Template,
    };
    let turns = if conversation.of_items {
        items(&messages)?
    } else {
        let turns = messages.iter().map(|message| turn(message, reader));
        turns.collect::<Result<_, _>>()?
    };
    let given = Given {
        body_bytes,
        instructions: conversation.instructions.as_deref(),
        turns,
        tasks: messages.iter().map(|one| one.get_text("task")).collect(),
        tools: tools.is_some().then_some(read),
        effort: match (is_harmony, conversation.effort) {
            (false, _) => arguments.effort.as_deref(),
            (true, Effort::Low) => Some("low"),
            (true, Effort::Medium) => Some("medium"),
            (true, Effort::High) => Some("high"),
        },
        disables_thinking: arguments.disables_thinking,
        continues: arguments.continues,
        own_arguments: &own,
        said_arguments: vec![
            (
                "add_generation_prompt",
                Tree::Bool(arguments.opens_answer()),
            ),
            ("documents", documents.map_or(Tree::Null, |one| one.tree())),
        ],
        keeps_unset: arguments.keeps_unset,
        of_items: conversation.of_items,
        ..Given::default()
    };
    render(&given).map_err(says)
}

/// The template's own words where it refuses.
fn says(error: Uncountable) -> String {
    match error {
        Uncountable::Template(why) => why,
        other => other.to_string(),
    }
}

/// The turn of a message of the chat dialect.
pub(super) fn turn<'t>(message: &'t Tree<'t>, reader: For) -> Result<Turn<'t>, String> {
    let content = content(message.get("content"), reader)?;
    let name = message.get_text("name");
    Ok(match message.get_text("role").unwrap_or_default() {
        role @ ("system" | "developer") => Turn::Instructions {
            role: match role {
                "system" => Word::System,
                _ => Word::Developer,
            },
            content,
            name,
            tools: message.get("tools").filter(|_| role == "developer"),
        },
        "user" => Turn::User { content, name },
        "assistant" => Turn::Assistant {
            content,
            reasoning: message.get_text("reasoning").map(Cow::Borrowed),
            calls: calls(message, reader),
            name,
        },
        "tool" => Turn::Answer {
            content,
            call_id: CallId::read(message.member("tool_call_id")),
            name,
            of: None,
        },
        role => Turn::Other {
            role,
            content,
            name,
        },
    })
}

fn calls<'t>(message: &'t Tree<'t>, reader: For) -> Vec<Call<'t>> {
    let calls = message.get("tool_calls").and_then(Tree::list);
    let call = |call: &'t Tree<'t>| {
        let function = call.get("function").unwrap_or(&Tree::Null);
        let form = match reader {
            For::TemplateOfItems => CallForm::Item,
            For::Harmony | For::Template => CallForm::Chat(call),
        };
        self::call(call.get_text("id"), function, form)
    };
    calls.unwrap_or_default().iter().map(call).collect()
}

fn call<'t>(id: Option<&'t str>, function: &'t Tree<'t>, form: CallForm<'t>) -> Call<'t> {
    let text = |name| function.get_text(name).unwrap_or_default();
    Call {
        id: id.unwrap_or_default(),
        name: text("name").into(),
        arguments: text("arguments").into(),
        form,
    }
}

fn content<'t>(content: Option<&'t Tree<'t>>, reader: For) -> Result<Content<'t>, String> {
    let mut read = Content::default();
    match content {
        Some(Tree::List(parts)) => {
            for one in parts {
                read.parts.extend(part(one, reader)?);
            }
        }
        Some(Tree::Text(text)) => read.parts.push(Part::from(&**text)),
        _ => {}
    }
    Ok(read)
}

/// A part as it is rendered, or none where it says nothing.
fn part<'t>(part: &'t Tree<'t>, reader: For) -> Result<Option<Part<'t>>, String> {
    if let Tree::Text(text) = part {
        return Ok(Some(Part::from(&**text)));
    }
    if reader == For::Harmony {
        return Ok(Some(Part::from(part.get_text("text").unwrap_or_default())));
    }
    let kind = part.get_text("type").ok_or("a content part needs a type")?;
    let members = match part {
        Tree::Map(members) => members.as_slice(),
        _ => &[],
    };
    let medium = |kind: &'static str| Ok(Some(Part::of_medium(kind, members)));
    let text = match kind {
        "text" | "input_text" | "output_text" => part.get_text("text"),
        "refusal" | "thinking" => part.get_text(kind),
        "image_url" | "input_image" => return medium("image"),
        "input_audio" | "audio_url" => return medium("audio"),
        "video_url" => return medium("video"),
        "file" | "input_file" => None,
        "tool_reference" => {
            let name = part.member("name").cloned().unwrap_or(Tree::Null);
            return Ok(Some(Part {
                text: part.get_text("name").unwrap_or_default().into(),
                members: &[],
                medium: Some(Tree::map([("type", kind.into()), ("name", name)])),
            }));
        }
        other => return Err(format!("Unknown part type: {other}")),
    };
    Ok(text.map(|text| Part {
        text: text.into(),
        members,
        medium: None,
    }))
}

fn items<'t>(items: &'t [Tree<'t>]) -> Result<Vec<Turn<'t>>, String> {
    let mut turns = Vec::new();
    for (at, one) in items.iter().enumerate() {
        turns.extend(item(one, &items[..at]).map_err(|why| format!("input[{at}]: {why}"))?);
    }
    Ok(turns)
}

/// What one item says to Harmony; reasoning without content nothing.
fn item<'t>(item: &'t Tree<'t>, before: &'t [Tree<'t>]) -> Result<Option<Turn<'t>>, String> {
    let assistant = |content, reasoning, calls| Turn::Assistant {
        content,
        reasoning,
        calls,
        name: None,
    };
    let kind = |item: &'t Tree<'t>| item.get_text("type").unwrap_or("message");
    let content = |name| content(item.get(name), For::Harmony);
    Ok(Some(match kind(item) {
        "message" if item.get_text("role") == Some("assistant") => {
            assistant(content("content")?, None, Vec::new())
        }
        "message" => turn(item, For::Harmony)?,
        "function_call_output" => {
            let id = item.get_text("call_id");
            let calls = before.iter().filter(|one| kind(one) == "function_call");
            let call = calls
                .rev()
                .find(|call| call.get_text("call_id") == id)
                .ok_or_else(|| format!("No call message found for {}", id.unwrap_or_default()))?;
            Turn::Answer {
                content: content("output")?,
                call_id: CallId::Null,
                name: None,
                of: call.get_text("name"),
            }
        }
        "reasoning" => {
            let thoughts = content("content")?;
            if thoughts.parts.is_empty() {
                return Ok(None);
            }
            let thought = thoughts.into_joined("\n");
            assistant(Content::default(), Some(thought), Vec::new())
        }
        "function_call" => {
            let call = call(item.get_text("call_id"), item, CallForm::Item);
            assistant(Content::default(), None, vec![call])
        }
        other => return Err(format!("Unknown input type: {other}")),
    }))
}
