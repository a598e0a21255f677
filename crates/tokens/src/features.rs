//! The features of a body that was read.
//!
//! Invariant: who looks spends less than who renders: each text is passed over once.
//! Not here: what a feature is (`shape`), messages that are remembered (`known_messages`).

use memchr::memchr2_iter;

use crate::dialect::{self, Counted};
use crate::prompt::{self, Kept};
use crate::shape::{Feature, LONG, Shape};
use prompts::Word;
use prompts::conversation::{Content, Conversation, Part, Schema, Tool, Turn};
use prompts::tree::{Member, Tree};

/// What shapes a count where no template is known: all else changes nothing there.
pub(crate) const WITHOUT_TEMPLATE: Shape = Shape::APIS.and(Shape::of(&[
    Feature::History,
    Feature::Tools,
    Feature::Nested,
    Feature::Calls,
    Feature::Answers,
    Feature::System,
    Feature::InlineSystem,
    Feature::Developer,
    Feature::Names,
    Feature::Unicode,
    Feature::Marks,
    Feature::Truncated,
    Feature::Special,
    Feature::Several,
    Feature::Long,
    Feature::Media,
]));

/// How special tokens of the models that are in use begin.
const MARKS: [&str; 26] = [
    "<|",
    "<｜",
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "<pad>",
    "<unk>",
    "<think",
    "</think",
    "<tool",
    "</tool",
    "<start_of",
    "<end_of",
    "[INST]",
    "[/INST]",
    "[TOOL_",
    "[AVAILABLE_",
    "[/AVAILABLE_",
    "[SYSTEM_",
    "[THINK]",
    "[/THINK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "[gMASK]",
];

/// The API of a call.
pub(crate) const fn of_operation(operation: Counted) -> Shape {
    match operation {
        Counted::Completions => Shape::NONE.with(Feature::Text),
        Counted::Responses => Shape::NONE.with(Feature::Responses),
        Counted::Messages => Shape::NONE.with(Feature::Messages),
        Counted::Embeddings => Shape::NONE.with(Feature::Embeddings),
        Counted::Chat => Shape::NONE.with(Feature::Chat),
    }
}

/// What its length says of a prompt.
pub(crate) const fn of_length(tokens: u64) -> Shape {
    Shape::NONE.with_if(tokens >= LONG, Feature::Long)
}

/// A body whose prompt is no conversation.
pub(crate) fn of_plain(operation: Counted, body: &Tree<'_>) -> Shape {
    let adds_none = body.get("add_special_tokens").and_then(Tree::lax_bool) == Some(false);
    let shape = of_operation(operation)
        .with_if(adds_none, Feature::Special)
        .with_if(is_cut(operation, body), Feature::Truncated);
    let of = |prompt: &Tree<'_>| match prompt {
        Tree::Text(text) => of_text(text),
        _ => Shape::NONE.with(Feature::Numbers),
    };
    match body.get(prompt::member(operation)) {
        Some(Tree::List(prompts)) if !prompt::are_numbers(prompts) => prompts
            .iter()
            .fold(shape, |shape, one| shape.and(of(one)))
            .with_if(prompts.len() > 1, Feature::Several),
        Some(one) => shape.and(of(one)),
        None => shape,
    }
}

fn is_cut(operation: Counted, body: &Tree<'_>) -> bool {
    Kept::read(operation, body).is_ok_and(|kept| kept.is_some())
}

/// A conversation; without its length.
pub(crate) fn of_conversation(operation: Counted, conversation: &Conversation<'_>) -> Shape {
    let mut shape =
        of_operation(operation).with_if(conversation.merged_system, Feature::InlineSystem);
    if let Some(text) = conversation.instructions.filter(|text| !text.is_empty()) {
        shape = shape.with(Feature::System).and(of_text(text));
    }
    let is_led = shape.has(Feature::System);
    for (place, turn) in conversation.turns.iter().enumerate() {
        shape = shape.and(placed(of_turn(turn), place == 0 && !is_led));
    }
    for tool in conversation.tools() {
        shape = shape.and(of_tool(tool));
    }
    // The Responses API adds them by itself.
    let adds_special = operation != Counted::Responses && conversation.adds_special_tokens;
    let has_effort = conversation.effort.is_some() || conversation.disables_thinking;
    shape
        .and(of_arguments(operation, conversation))
        .with_if(conversation.tools.is_some(), Feature::Tools)
        .with_if(has_effort, Feature::Effort)
        .with_if(conversation.continues, Feature::Continued)
        .with_if(adds_special, Feature::Special)
}

/// What a template is given beside messages and tools.
fn of_arguments(operation: Counted, conversation: &Conversation<'_>) -> Shape {
    let said = |wanted: &str| {
        let mut all = conversation.said_arguments.iter();
        all.find(|(name, _)| *name == wanted)
            .map(|(_, value)| value)
    };
    // What each API says of it unless a body says otherwise.
    let is_asked_by_itself = operation != Counted::Embeddings;
    let prompts = said("add_generation_prompt")
        .is_none_or(|value| *value == Tree::Bool(is_asked_by_itself) || conversation.continues);
    let has_own = conversation
        .own_arguments
        .iter()
        .any(|(_, value)| is_set(value));
    Shape::NONE
        .with_if(has_own || !prompts, Feature::Arguments)
        .with_if(said("documents").is_some_and(is_set), Feature::Documents)
}

/// What a body says that no message does.
pub(crate) fn of_body(operation: Counted, body: &Tree<'_>) -> Shape {
    let has_tools = body
        .get("tools")
        .and_then(Tree::list)
        .is_some_and(|list| !list.is_empty());
    Shape::NONE
        .with_if(
            has_tools && dialect::forbids_tools(body),
            Feature::Forbidden,
        )
        .with_if(is_cut(operation, body), Feature::Truncated)
}

fn is_set(value: &Tree<'_>) -> bool {
    *value != Tree::Null
}

/// The shape of a message, which is the first one or stands behind others.
pub(crate) const fn placed(message: Shape, is_first: bool) -> Shape {
    message.with_if(
        message.has(Feature::System) && !is_first,
        Feature::InlineSystem,
    )
}

/// One message.
pub(crate) fn of_turn(turn: &Turn<'_>) -> Shape {
    let (shape, content, name) = match turn {
        Turn::Instructions {
            role,
            content,
            name,
            tools,
        } => {
            let feature = match role {
                Word::Developer => Feature::Developer,
                _ => Feature::System,
            };
            let shape = Shape::NONE.with(feature);
            (
                shape.with_if(tools.is_some(), Feature::Tools),
                content,
                name,
            )
        }
        Turn::User { content, name } => (Shape::NONE, content, name),
        Turn::Assistant {
            content,
            reasoning,
            calls,
            name,
        } => {
            let shape = Shape::NONE
                .with(Feature::History)
                .with_if(reasoning.is_some(), Feature::Reasoning)
                .with_if(!calls.is_empty(), Feature::Calls);
            let texts = reasoning.iter().map(|text| &**text);
            let texts = texts.chain(calls.iter().map(|call| &*call.arguments));
            (shape.and(of_texts(texts)), content, name)
        }
        Turn::Answer { content, name, .. } => (Shape::NONE.with(Feature::Answers), content, name),
        Turn::Other {
            content,
            name,
            role,
        } => {
            let shape = Shape::NONE.with(Feature::Roles);
            (shape.and(of_text(role)), content, name)
        }
    };
    let says_more = shape.has(Feature::Calls) || shape.has(Feature::Reasoning);
    shape
        .and(of_content(content, says_more))
        .with_if(name.is_some(), Feature::Names)
}

fn of_content(content: &Content<'_>, says_more: bool) -> Shape {
    let is_more_than_text = |part: &Part<'_>| part.rest().next().is_some();
    let parts = content.parts.as_slice();
    of_texts(content.texts())
        .with_if(
            parts.len() > 1 || parts.iter().any(is_more_than_text),
            Feature::Parts,
        )
        .with_if(
            !says_more && content.texts().all(str::is_empty),
            Feature::Empty,
        )
}

/// One tool.
pub(crate) fn of_tool(tool: &Tool<'_>) -> Shape {
    let shape = Shape::NONE
        .with(Feature::Tools)
        .and(of_texts(tool.description.into_iter().chain([&*tool.name])));
    let Some(schema) = tool.parameters.as_ref().map(Schema::tree) else {
        return shape;
    };
    shape
        .and(of_tree(schema))
        .with_if(is_nested(schema), Feature::Nested)
}

/// Whether a schema's members are more than a type and a description.
fn is_nested(schema: &Tree<'_>) -> bool {
    let Tree::Map(members) = schema else {
        return false;
    };
    let is_plain = |(name, value): &Member<'_>| match (&**name, value) {
        ("properties", Tree::Map(properties)) => properties.iter().all(|(_, one)| match one {
            Tree::Map(members) => members.iter().all(|(_, value)| !is_made_of_others(value)),
            _ => false,
        }),
        ("required", _) => true,
        (_, value) => !is_made_of_others(value),
    };
    !members.iter().all(is_plain)
}

const fn is_made_of_others(value: &Tree<'_>) -> bool {
    matches!(value, Tree::Map(_) | Tree::List(_))
}

/// All texts in it.
fn of_tree(tree: &Tree<'_>) -> Shape {
    match tree {
        Tree::Null | Tree::Bool(_) | Tree::Number(_) => Shape::NONE,
        Tree::Text(text) => of_text(text),
        Tree::List(items) => items
            .iter()
            .fold(Shape::NONE, |shape, item| shape.and(of_tree(item))),
        Tree::Map(members) => members.iter().fold(Shape::NONE, |shape, (name, value)| {
            shape.and(of_text(name)).and(of_tree(value))
        }),
    }
}

fn of_texts<'t>(texts: impl Iterator<Item = &'t str>) -> Shape {
    texts.fold(Shape::NONE, |shape, text| shape.and(of_text(text)))
}

/// A text by itself.
pub(crate) fn of_text(text: &str) -> Shape {
    Shape::NONE
        .with_if(!text.is_ascii(), Feature::Unicode)
        .with_if(has_marks(text), Feature::Marks)
}

/// Whether something in it looks like a special token.
fn has_marks(text: &str) -> bool {
    memchr2_iter(b'<', b'[', text.as_bytes()).any(|at| {
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        MARKS.iter().any(|mark| rest.starts_with(mark.as_bytes()))
    })
}

#[cfg(test)]
mod tests;
