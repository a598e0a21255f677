//! The members of answers that hold text, in all dialects at once.
//!
//! Invariant: a member that is missing or null is nothing; one of another kind than any dialect has makes the
//! whole unreadable.
//! Not here: what the text is (`answer`).

use serde::Deserialize;
use serde_json::value::RawValue;

/// A whole answer, or one event of one.
#[derive(Deserialize)]
pub(super) struct Document {
    /// Chat and text completions.
    pub(super) choices: Option<Vec<Choice>>,
    /// Events of responses and messages.
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) delta: Option<Delta>,
    pub(super) index: Option<u32>,
    /// Responses.
    pub(super) output_index: Option<u32>,
    pub(super) item: Option<Item>,
    pub(super) output: Option<Vec<Item>>,
    pub(super) response: Option<Response>,
    pub(super) status: Option<String>,
    /// Messages.
    pub(super) content_block: Option<Item>,
    pub(super) content: Option<Vec<Item>>,
    pub(super) stop_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Choice {
    pub(super) index: Option<u32>,
    pub(super) text: Option<String>,
    pub(super) delta: Option<Message>,
    pub(super) message: Option<Message>,
    pub(super) finish_reason: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Message {
    pub(super) content: Option<String>,
    pub(super) reasoning: Option<String>,
    pub(super) reasoning_content: Option<String>,
    pub(super) refusal: Option<String>,
    pub(super) tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
pub(super) struct Call {
    pub(super) index: Option<u32>,
    pub(super) function: Option<Function>,
}

#[derive(Deserialize)]
pub(super) struct Function {
    pub(super) name: Option<String>,
    pub(super) arguments: Option<String>,
}

/// Text in responses, members in messages.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Delta {
    Text(String),
    Fields(DeltaFields),
}

#[derive(Deserialize)]
pub(super) struct DeltaFields {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) partial_json: Option<String>,
    pub(super) stop_reason: Option<String>,
}

/// An item of a response, or a block of a message.
#[derive(Deserialize)]
pub(super) struct Item {
    #[serde(rename = "type")]
    pub(super) kind: Option<String>,
    pub(super) name: Option<String>,
    pub(super) arguments: Option<String>,
    pub(super) content: Option<Vec<Part>>,
    pub(super) text: Option<String>,
    pub(super) thinking: Option<String>,
    pub(super) input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct Part {
    pub(super) text: Option<String>,
    pub(super) refusal: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Response {
    pub(super) status: Option<String>,
}
