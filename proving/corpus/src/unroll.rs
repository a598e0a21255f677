//! One request for each decision of a conversation, in parts that requests share.
//!
//! A request is a head (model and tools, the same for a session), a body (messages) and a tail (how long the answer
//! may be). Prompts mostly go on where the one before ended, so a body is a prefix of the longest prompt of its kind.
//! Invariant: a message is written once, and `head + body + tail` is one JSON object, byte for byte what is sent.
//! Not here: counting tokens (`geometry`), files (`store`), what engines take (`repair`).

use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::conversation::{Arguments, Content, Conversation, FunctionCall, Message, Role};

/// Most requests of one session.
pub const MOST_TURNS: usize = 65_536;
/// Most bytes that the messages of one session may have when they are written.
pub const MOST_BYTES: usize = 256 << 20;

/// How long answers may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// As long as the recorded answer, where there is one.
    #[default]
    Recorded,
    /// As the model likes.
    Free,
    /// So many tokens.
    Tokens(u32),
}

/// A conversation that cannot be unrolled, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnrollError {
    /// Nothing was asked.
    #[error("it has no decision of the assistant")]
    Empty,
    /// A prompt or an answer names a message that there is not.
    #[error("decision {decision} names message {place}, and there are {messages}")]
    NoMessage {
        /// Which decision, from 0.
        decision: usize,
        /// The place it names.
        place: usize,
        /// How many messages there are.
        messages: usize,
    },
    /// More than [`MOST_TURNS`] requests or [`MOST_BYTES`] bytes.
    #[error("it has more than {most} {what}")]
    TooLarge {
        /// Of what.
        what: &'static str,
        /// The bound.
        most: usize,
    },
}

/// A conversation as requests whose answers' lengths are still open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unrolled {
    /// The session's name within its source.
    pub id: String,
    /// The licence of the record.
    pub licence: Option<String>,
    /// The list of tools as JSON, where there are any.
    pub tools: Option<String>,
    /// Every message as JSON.
    pub messages: Vec<String>,
    /// The requests in order; at least one.
    pub turns: Vec<Turn>,
}

/// One request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The messages of its prompt, as places in [`Unrolled::messages`]. Messages that say the same have one place.
    pub prompt: Vec<usize>,
    /// The recorded answer.
    pub answer: Option<usize>,
    /// Between the answer before and this request.
    pub think: Option<Duration>,
    /// Tokens of the answer, where the source counts them.
    pub answer_tokens: Option<u32>,
}

/// The bodies of a session, one after the other, and which part of them each request has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bodies {
    /// Messages with commas between them.
    pub bytes: Vec<u8>,
    /// Of each request its part of `bytes`, and whether it goes on where the request before ended.
    pub turns: Vec<(Range<usize>, bool)>,
}

impl Unrolled {
    /// Unrolls a conversation.
    ///
    /// # Errors
    /// When it asks nothing, names what is not there, or is beyond the bounds of a session.
    pub fn new(conversation: &Conversation) -> Result<Self, UnrollError> {
        if conversation.decisions.is_empty() {
            return Err(UnrollError::Empty);
        }
        if conversation.decisions.len() > MOST_TURNS {
            let (what, most) = ("requests", MOST_TURNS);
            return Err(UnrollError::TooLarge { what, most });
        }
        let messages: Vec<String> = conversation.messages.iter().map(written).collect();
        let first = first_places(&messages);
        let known = |decision: usize, place: usize| {
            first.get(place).copied().ok_or(UnrollError::NoMessage {
                decision,
                place,
                messages: messages.len(),
            })
        };
        let mut turns = Vec::with_capacity(conversation.decisions.len());
        for (i, decision) in conversation.decisions.iter().enumerate() {
            let prompt = decision.prompt.iter().map(|&place| known(i, place));
            turns.push(Turn {
                prompt: prompt.collect::<Result<_, _>>()?,
                answer: decision.answer.map(|place| known(i, place)).transpose()?,
                think: decision.think,
                answer_tokens: decision.answer_tokens,
            });
        }
        Ok(Self {
            id: conversation.id.clone(),
            licence: conversation.licence.clone(),
            tools: (!conversation.tools.is_empty())
                .then(|| serde_json::to_string(&conversation.tools).unwrap_or_default()),
            messages,
            turns,
        })
    }

    /// What all requests begin with, for a model of that name; a `stream` ends with its usage.
    #[must_use]
    pub fn head(&self, model: &str, stream: bool) -> Vec<u8> {
        let mut head = format!("{{\"model\":{},", json!(model));
        if stream {
            head.push_str("\"stream\":true,\"stream_options\":{\"include_usage\":true},");
        }
        if let Some(tools) = &self.tools {
            head.push_str("\"tools\":");
            head.push_str(tools);
            head.push(',');
        }
        head.push_str("\"messages\":[");
        head.into_bytes()
    }

    /// The bodies. A prompt that begins with the one before, or with a part of its body, shares that body; any other
    /// starts one of its own.
    ///
    /// # Errors
    /// When there would be more than [`MOST_BYTES`].
    pub fn bodies(&self) -> Result<Bodies, UnrollError> {
        let mut bodies = Bodies::default();
        // The body that is being written: where it starts, its messages, and where each ends.
        let mut start = 0;
        let mut body: Vec<(usize, usize)> = Vec::new();
        let mut before: &[usize] = &[];
        for turn in &self.turns {
            let shared = body.iter().zip(&turn.prompt);
            let shared = shared.take_while(|((a, _), b)| a == *b).count();
            if shared < body.len().min(turn.prompt.len()) {
                (start, body) = (bodies.bytes.len(), Vec::new());
            }
            for &place in turn.prompt.get(body.len()..).unwrap_or_default() {
                if !body.is_empty() {
                    bodies.bytes.push(b',');
                }
                bodies
                    .bytes
                    .extend_from_slice(self.messages[place].as_bytes());
                body.push((place, bodies.bytes.len()));
                if bodies.bytes.len() > MOST_BYTES {
                    let (what, most) = ("bytes of messages", MOST_BYTES);
                    return Err(UnrollError::TooLarge { what, most });
                }
            }
            let end = turn.prompt.len().checked_sub(1);
            let end = end.map_or(start, |last| body[last].1);
            bodies
                .turns
                .push((start..end, turn.prompt.starts_with(before)));
            before = &turn.prompt;
        }
        Ok(bodies)
    }
}

/// What a request ends with: how many tokens its answer may have, and whether it must have that many.
#[must_use]
pub fn tail(max_tokens: Option<u32>, ignore_eos: bool) -> Vec<u8> {
    match (max_tokens, ignore_eos) {
        (None, _) => b"]}".to_vec(),
        (Some(n), false) => format!("],\"max_tokens\":{n}}}").into_bytes(),
        (Some(n), true) => format!("],\"max_tokens\":{n},\"ignore_eos\":true}}").into_bytes(),
    }
}

/// For each message the first place that says the same.
fn first_places(messages: &[String]) -> Vec<usize> {
    let mut seen = HashMap::with_capacity(messages.len());
    let places = messages.iter().enumerate();
    places
        .map(|(place, text)| *seen.entry(text.as_str()).or_insert(place))
        .collect()
}

/// A message as the API has it.
fn written(message: &Message) -> String {
    // A map of strings and values always serialises.
    serde_json::to_string(&Written(message)).unwrap_or_default()
}

/// Members in this order, those that are null left out.
struct Written<'a>(&'a Message);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", role(message.role))?;
        match &message.content {
            Some(Content::Text(text)) => map.serialize_entry("content", text)?,
            Some(Content::Parts(parts)) => map.serialize_entry("content", parts)?,
            None => {}
        }
        if let Some(name) = &message.name {
            map.serialize_entry("name", name)?;
        }
        if let Some(reasoning) = &message.reasoning {
            map.serialize_entry("reasoning", reasoning)?;
        }
        if !message.tool_calls.is_empty() {
            let calls = message.tool_calls.iter().map(|call| Call {
                id: call.id.as_deref(),
                kind: "function",
                function: Called::from(&call.function),
            });
            map.serialize_entry("tool_calls", &calls.collect::<Vec<_>>())?;
        }
        if let Some(call) = &message.function_call {
            map.serialize_entry("function_call", &Called::from(call))?;
        }
        if let Some(id) = &message.tool_call_id {
            map.serialize_entry("tool_call_id", id)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Called<'a>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    arguments: std::borrow::Cow<'a, str>,
}

impl<'a> From<&'a FunctionCall> for Called<'a> {
    fn from(call: &'a FunctionCall) -> Self {
        Self {
            name: &call.name,
            arguments: match &call.arguments {
                Arguments::Text(text) => text.into(),
                Arguments::Object(value) => value.to_string().into(),
            },
        }
    }
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::Function => "function",
    }
}

#[cfg(test)]
mod tests;
