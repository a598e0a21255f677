//! The APIs that a body can be written for, and what each makes of it.
//!
//! Follows what vLLM 0.32.0 reads from a body (`entrypoints/openai`, `entrypoints/anthropic`), because that is the
//! engine whose count we hold ours against.
//! Not here: prompts without a conversation (`prompt`), rendering (`harmony`, `template`, `overhead`).

mod chat;
mod item;
mod items;
mod messages;
mod parts;
mod responses;

use crate::conversation::Conversation;
use crate::tree::Tree;
use crate::uncountable::Uncountable;

/// The API a body was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `POST /v1/chat/completions`
    Chat,
    /// `POST /v1/completions`
    Completions,
    /// `POST /v1/responses`
    Responses,
    /// Anthropic's `POST /v1/messages`
    Messages,
    /// `POST /v1/embeddings`
    Embeddings,
}

impl Dialect {
    /// Reads the conversation of a body; for a template, as it is put together for one.
    pub(crate) fn read(self, body: &Tree, for_template: bool) -> Result<Conversation, Uncountable> {
        match self {
            Self::Responses => responses::read(body, for_template),
            Self::Messages => messages::read(body),
            Self::Chat | Self::Completions | Self::Embeddings => chat::read(body),
        }
    }
}
