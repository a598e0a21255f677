//! The APIs that a body can be written for, and what each makes of it.
//!
//! Follows what vLLM 0.32.0 reads from a body (`entrypoints/openai`, `entrypoints/anthropic`), because that is the
//! engine whose count we hold ours against.
//! A body is read for somebody: for a template, which sees what the engine puts together for one, for Harmony, or for
//! the documented overhead of a provider whose template is not public.
//! Not here: prompts without a conversation (`prompt`), rendering (`harmony`, `template`, `overhead`).

pub(crate) mod chat;
mod embeddings;
mod item;
mod items;
pub(crate) mod messages;
mod parts;
mod responses;

pub(crate) use embeddings::has_messages;

use wire::dialect::Operation;

use crate::conversation::Conversation;
use crate::tree::Tree;
use crate::uncountable::Uncountable;

/// Whether the body of such a call has a prompt to count.
#[must_use]
pub const fn is_counted(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Chat
            | Operation::Completions
            | Operation::Responses
            | Operation::Messages
            | Operation::Embeddings
    )
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
    operation: Operation,
    body: &'t Tree<'t>,
    reader: Reader,
) -> Result<Vec<Conversation<'t>>, Uncountable> {
    let conversation = match operation {
        Operation::Embeddings => return embeddings::read(body, reader),
        Operation::Responses => responses::read(body, reader),
        Operation::Messages => messages::read(body, reader),
        _ => chat::read(body, reader),
    };
    conversation.map(|conversation| vec![conversation])
}
