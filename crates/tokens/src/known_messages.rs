//! Messages that were counted before, found by their JSON: what is known is not read again.
//!
//! Without a template a message counts the same wherever it stands, and so does a tool.
//! Invariant: a count from here is the one that the whole body, read into a tree, would have. A message is kept once it was
//! read whole and counted, under a hash of its bytes and its kind, so one that is known is JSON, and a message. All else of
//! the body is read as for a tree. Whatever is out of the ordinary (a member that stands twice, another API, a fault of any
//! kind) is left to the tree, which knows what to say.
//! Not here: renderings in which a message depends on its neighbours (`harmony`, `template`).

use std::fmt;
use std::sync::Arc;

use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use wire::dialect::Operation;

use crate::counter::Counter;
use crate::dialect::{chat, messages};
use crate::memo::Memo;
use crate::overhead;
use crate::tree::{Name, Tree};
use crate::uncountable::{Uncountable, wrong};

/// How deep a message may be: the parser takes 127 levels, and the body and the list are two.
const LEVELS: usize = 125;

/// What is remembered of one vocabulary.
pub(crate) struct KnownMessages {
    memo: Arc<Memo>,
    chat: Kinds,
    messages: Kinds,
}

/// The numbers of what has counts of its own.
struct Kinds {
    message: u64,
    tool: u64,
}

impl KnownMessages {
    pub(crate) fn new(memo: Arc<Memo>) -> Self {
        let kinds = || Kinds {
            message: memo.number(),
            tool: memo.number(),
        };
        Self {
            chat: kinds(),
            messages: kinds(),
            memo,
        }
    }

    /// The tokens of a prompt; none where the tree is to say.
    pub(crate) fn count(
        &self,
        operation: Operation,
        body: &[u8],
        counter: &Counter,
    ) -> Option<u64> {
        let kinds = match operation {
            Operation::Chat => &self.chat,
            Operation::Messages => &self.messages,
            _ => return None,
        };
        let body = Body::read(body).ok()?;
        self.count_body(&body, operation, kinds, counter).ok()
    }

    fn count_body(
        &self,
        body: &Body<'_>,
        operation: Operation,
        kinds: &Kinds,
        counter: &Counter,
    ) -> Result<u64, Uncountable> {
        let is_chat = operation == Operation::Chat;
        if is_chat && body.has_functions {
            return Err(wrong("functions", "given as `tools`"));
        }
        let mut tokens = overhead::PRIMING;
        if !is_chat && let Some(turn) = messages::system_prompt(body.system.as_ref())? {
            tokens += overhead::count_turn(&turn, counter)?;
        }
        for message in body.messages.iter().flatten() {
            tokens += self.memo.remembered(kinds.message, message.get(), || {
                let message = read(message)?;
                if is_chat {
                    return overhead::count_turn(&chat::turn(&message)?, counter);
                }
                let mut turns = Vec::new();
                messages::turns(&message, &mut turns)?;
                turns.iter().try_fold(
                    0,
                    |sum, turn| Ok(sum + overhead::count_turn(turn, counter)?),
                )
            })?;
        }
        let tools = body.tools.as_deref().unwrap_or_default();
        tokens += overhead::for_tools(tools.len());
        for tool in tools {
            tokens += self.memo.remembered(kinds.tool, tool.get(), || {
                let tool = read(tool)?;
                let tool = if is_chat {
                    chat::tool(&tool)?
                } else {
                    messages::tool(&tool)?
                };
                overhead::count_tool(&tool, &counter.vocabulary)
            })?;
        }
        Ok(tokens)
    }
}

fn read(json: &RawValue) -> Result<Tree<'_>, Uncountable> {
    Tree::read(json.get(), LEVELS).map_err(|error| Uncountable::NotJson(error.to_string()))
}

/// A body whose messages and tools are not read.
#[derive(Default)]
struct Body<'a> {
    messages: Option<Vec<&'a RawValue>>,
    /// Missing and null are none.
    tools: Option<Vec<&'a RawValue>>,
    system: Option<Tree<'a>>,
    has_functions: bool,
}

impl<'a> Body<'a> {
    fn read(body: &'a [u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(body)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Body<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Bodily)
    }
}

struct Bodily;

impl<'de> Visitor<'de> for Bodily {
    type Value = Body<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a body")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Body<'de>, A::Error> {
        let mut body = Body::default();
        let mut seen = [false; 4];
        let mut once = |at: usize| match seen.get_mut(at) {
            Some(seen) if !*seen => {
                *seen = true;
                Ok(())
            }
            _ => Err(A::Error::custom("a member that stands twice")),
        };
        while let Some(Name(name)) = members.next_key()? {
            match &*name {
                "messages" => {
                    once(0)?;
                    body.messages = Some(members.next_value()?);
                }
                "tools" => {
                    once(1)?;
                    body.tools = members.next_value()?;
                }
                "system" => {
                    once(2)?;
                    body.system = Some(members.next_value()?).filter(|it| *it != Tree::Null);
                }
                "functions" => {
                    once(3)?;
                    body.has_functions = members.next_value::<Tree<'_>>()? != Tree::Null;
                }
                _ => {
                    members.next_value::<Checked>()?;
                }
            }
        }
        if body.messages.is_none() {
            return Err(A::Error::missing_field("messages"));
        }
        Ok(body)
    }
}

/// A value that is read as a tree would be, faults included, and not kept.
struct Checked;

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Checking)
    }
}

struct Checking;

impl<'de> Visitor<'de> for Checking {
    type Value = Checked;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_str<E>(self, _: &str) -> Result<Checked, E> {
        Ok(Checked)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Checked, A::Error> {
        while items.next_element::<Checked>()?.is_some() {}
        Ok(Checked)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Checked, A::Error> {
        while members.next_key::<Name<'_>>()?.is_some() {
            members.next_value::<Checked>()?;
        }
        Ok(Checked)
    }
}

#[cfg(test)]
mod tests;
