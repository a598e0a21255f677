//! The APIs that a body can be written for, and what each makes of it.
//!
//! Follows what vLLM 0.32.0 reads from a body (`entrypoints/openai`, `entrypoints/anthropic`), because that is the
//! engine whose count we hold ours against.
//! A body is read for somebody: for a template, which sees what the engine puts together for one, for Harmony, or for
//! the documented overhead of a provider whose template is not public.
//! Not here: prompts without a conversation (`prompt`), rendering (`prompts`, `overhead`).

pub(crate) mod chat;
mod embeddings;
mod item;
mod items;
pub(crate) mod messages;
mod parts;
mod responses;
mod said;

pub(crate) use embeddings::has_messages;

use wire::dialect::Operation;

use prompts::conversation::Conversation;
use prompts::tree::Tree;
use prompts::{Uncountable, wrong};

/// An operation whose body has a prompt to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counted {
    Chat,
    Completions,
    Responses,
    Messages,
    Embeddings,
}

impl Counted {
    /// None of an operation whose body has no prompt that can be counted.
    pub(crate) const fn of(operation: Operation) -> Option<Self> {
        match operation {
            Operation::Chat => Some(Self::Chat),
            Operation::Completions => Some(Self::Completions),
            Operation::Responses => Some(Self::Responses),
            Operation::Messages => Some(Self::Messages),
            Operation::Embeddings => Some(Self::Embeddings),
            Operation::Models
            | Operation::GeminiModels
            | Operation::CountTokens
            | Operation::InputTokens
            | Operation::Moderations
            | Operation::Rerank
            | Operation::Speech
            | Operation::Transcriptions
            | Operation::Images
            | Operation::ImageEdits
            | Operation::GenerateContent
            | Operation::Converse
            | Operation::CohereChat
            | Operation::CohereEmbed
            | Operation::CountContent
            | Operation::EmbedContent
            | Operation::Unread
            | Operation::Http
            | Operation::KeptResponse
            | Operation::Files
            | Operation::Batches
            | Operation::BatchUsage
            | Operation::ResponsesSocket
            | Operation::RealtimeSocket
            | Operation::Realtime
            | Operation::Mcp => None,
        }
    }
}

/// Whether the body of such a call has a prompt to count.
#[must_use]
pub const fn is_counted(operation: Operation) -> bool {
    Counted::of(operation).is_some()
}

/// A flag of a body; `default` where it is not there.
///
/// # Errors
/// When it is none that the engine takes for one.
pub(crate) fn flag(
    body: &Tree<'_>,
    name: &'static str,
    default: bool,
) -> Result<bool, Uncountable> {
    match body.get(name) {
        None => Ok(default),
        Some(value) => value.lax_bool().ok_or(wrong(name, "true or false")),
    }
}

/// Whether a body says that no tool may be called: `none`, which Anthropic's dialect writes as an object.
pub(crate) fn forbids_tools(body: &Tree<'_>) -> bool {
    let choice = body.get("tool_choice");
    let word = choice.and_then(|choice| choice.text().or_else(|| choice.get_text("type")));
    word == Some("none")
}

/// Whether the answer begins with text of the prompt; what the engine may refuse counts as that.
pub(crate) fn echoes(body: &Tree<'_>) -> bool {
    let echo = body.get("echo");
    echo.is_some_and(|echo| echo.lax_bool() != Some(false))
}

/// Whether the answer leaves out reasoning that the model does: a word of vLLM's, and one of `OpenRouter`'s.
pub(crate) fn hides_reasoning(body: &Tree<'_>) -> bool {
    let flag = |value: Option<&Tree<'_>>| value.and_then(Tree::lax_bool);
    let excluded = body.get("reasoning").and_then(|it| it.get("exclude"));
    flag(body.get("include_reasoning")) == Some(false) || flag(excluded) == Some(true)
}

/// For whom a body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    Template {
        /// System messages that stand between others join the first one, in Anthropic's dialect.
        merges_system: bool,
    },
    Harmony,
    Overhead,
}

/// Reads the conversation of a body; of embeddings there may be several.
pub(crate) fn read<'t>(
    operation: Counted,
    body: &'t Tree<'t>,
    reader: Reader,
) -> Result<Vec<Conversation<'t>>, Uncountable> {
    let conversation = match operation {
        Counted::Embeddings => return embeddings::read(body, reader),
        Counted::Responses => responses::read(body, reader),
        Counted::Messages => messages::read(body, reader),
        Counted::Chat | Counted::Completions => chat::read(body, reader),
    };
    conversation.map(|conversation| vec![conversation])
}
