//! The APIs that a body can be written for, and what each makes of it.
//!
//! Follows what vLLM 0.32.0 reads from a body (`entrypoints/openai`, `entrypoints/anthropic`), because that is the
//! engine whose count we hold ours against.
//! Not here: prompts without a conversation (`prompt`), rendering (`harmony`, `template`, `overhead`).

pub(crate) mod chat;
mod item;
mod items;
pub(crate) mod messages;
mod parts;
mod responses;

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

/// Reads the conversation of a body; for a template, as it is put together for one.
pub(crate) fn read<'t>(
    operation: Operation,
    body: &'t Tree<'t>,
    for_template: bool,
) -> Result<Conversation<'t>, Uncountable> {
    match operation {
        Operation::Responses => responses::read(body, for_template),
        Operation::Messages => messages::read(body),
        _ => chat::read(body),
    }
}
