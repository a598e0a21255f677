//! The members of answers that hold text, in all dialects at once.
//!
//! Invariant: a member that is missing or null is nothing; one of another kind than any dialect has makes the
//! whole unreadable.
//! Not here: what the text is (`answer`).

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::value::RawValue;

/// A text, copied only where it is written with an escape.
pub(super) struct Text<'a>(Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(TextVisitor).map(Text)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// A whole answer, or one event of one.
#[derive(Deserialize)]
pub(super) struct Document<'a> {
    /// Chat and text completions.
    #[serde(borrow)]
    pub(super) choices: Option<Vec<Choice<'a>>>,
    /// Events of responses and messages.
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'a>>,
    pub(super) index: Option<u32>,
    /// Responses.
    pub(super) output_index: Option<u32>,
    #[serde(borrow)]
    pub(super) item: Option<Item<'a>>,
    #[serde(borrow)]
    pub(super) output: Option<Vec<Item<'a>>>,
    #[serde(borrow)]
    pub(super) response: Option<Response<'a>>,
    #[serde(borrow)]
    pub(super) status: Option<Text<'a>>,
    /// Messages.
    #[serde(borrow)]
    pub(super) content_block: Option<Item<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<Vec<Item<'a>>>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Choice<'a> {
    pub(super) index: Option<u32>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) delta: Option<Message<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Message<'a>>,
    #[serde(borrow)]
    pub(super) finish_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow)]
    pub(super) content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) reasoning: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) tool_calls: Option<Vec<Call<'a>>>,
    /// As calls were told before they were several.
    #[serde(borrow)]
    pub(super) function_call: Option<Function<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Call<'a> {
    pub(super) index: Option<u32>,
    #[serde(borrow)]
    pub(super) function: Option<Function<'a>>,
    /// A call of a tool that takes a text.
    #[serde(borrow)]
    pub(super) custom: Option<Function<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow, alias = "input")]
    pub(super) arguments: Option<Text<'a>>,
}

/// Text in responses, members in messages.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Delta<'a> {
    #[serde(borrow)]
    Text(Text<'a>),
    #[serde(borrow)]
    Fields(DeltaFields<'a>),
}

#[derive(Deserialize)]
pub(super) struct DeltaFields<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) stop_reason: Option<Text<'a>>,
}

/// An item of a response, or a block of a message.
#[derive(Deserialize)]
pub(super) struct Item<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) arguments: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) content: Option<Vec<Part<'a>>>,
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) thinking: Option<Text<'a>>,
    pub(super) input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow)]
    pub(super) text: Option<Text<'a>>,
    #[serde(borrow)]
    pub(super) refusal: Option<Text<'a>>,
}

#[derive(Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow)]
    pub(super) status: Option<Text<'a>>,
}
