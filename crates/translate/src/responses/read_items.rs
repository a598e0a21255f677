//! Reads the items of an input into messages.
//!
//! What a model made in one turn (reasoning, text, calls) is one message, and the outputs of its calls follow it at once, wherever the
//! client says them: backends take them there alone. As at OpenAI, a call without its output and an output without its call are refused.

use std::borrow::Cow;
use std::collections::HashMap;

use super::item::{self, Item};
use super::read_tools::{self, Offered};
use crate::call::{Call, Message, Part, Role, Said, Signature, ToolResult};
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::Raw;

/// Reads an input into the call.
pub(super) fn read<'a>(input: Raw<'a>, call: &mut Call<'a>, offered: &mut Offered) -> Result<()> {
    if input.is_text() {
        call.messages.push(Message {
            role: Role::User,
            nth: 0,
            parts: vec![Part::of(Said::Text(input.text()?))],
        });
        return Ok(());
    }
    let mut turns = Turns::default();
    let mut items = Vec::new();
    input.each(|nth, value| {
        let item = match item::read(value)? {
            Item::Found(id, tools) => {
                let names = read_tools::found(tools, call, offered);
                let names = names.map_err(|fault| fault.within("tools"))?;
                found(id, &names)
            }
            Item::Tools(tools) => {
                let read = read_tools::read(tools, call, offered);
                read.map_err(|fault| fault.within("tools"))?;
                Item::Told
            }
            item => item,
        };
        items.push(turns.keep(nth, item)?);
        Ok(())
    })?;
    for (nth, item) in items.into_iter().enumerate() {
        match item {
            Item::Message(Role::Assistant, parts) => turns.say(nth, parts),
            Item::Message(role, parts) => {
                turns.end(call)?;
                call.messages.push(Message { role, nth, parts });
            }
            Item::OfAgent(parts) => {
                turns.end(call)?;
                call.dropped.push("input.author");
                call.messages.push(Message {
                    role: Role::User,
                    nth,
                    parts,
                });
            }
            Item::Thought(said) => turns.say(nth, vec![Part::of(said)]),
            Item::Signature(id, signature) => drop(turns.signatures.insert(id, signature)),
            Item::Foreign(dropped) => call.dropped.push(dropped),
            Item::Call(mut tool) => {
                tool.signature = turns.signatures.remove(&tool.id);
                turns.calls.push((nth, tool.id.clone()));
                turns.say(nth, vec![Part::of(Said::Call(tool))]);
            }
            Item::Output(_) => turns.end(call)?,
            Item::Found(..) | Item::Tools(_) | Item::Told => {}
        }
    }
    turns.end(call)?;
    turns.all_told()
}

/// What a search is told: the names of what it found, which the backend is told with the other tools.
fn found<'a>(id: Option<Cow<'a, str>>, names: &[String]) -> Item<'a> {
    let Some(id) = id else {
        return Item::Foreign("input.tool_search_output");
    };
    let mut json = Json::default();
    json.list(|json| names.iter().for_each(|name| json.text(name)));
    let text = String::from_utf8(json.into_bytes()).unwrap_or_default();
    Item::Output(ToolResult {
        id,
        is_error: false,
        parts: vec![Part::of(Said::Text(text.into()))],
    })
}

/// A model's turn that is being read, and what tools gave.
#[derive(Default)]
struct Turns<'a> {
    /// The number of its first item, and all that it says.
    turn: Option<(usize, Vec<Part<'a>>)>,
    calls: Vec<(usize, Cow<'a, str>)>,
    signatures: HashMap<Cow<'a, str>, Signature<'a>>,
    outputs: HashMap<Cow<'a, str>, (usize, ToolResult<'a>)>,
}

impl<'a> Turns<'a> {
    /// Keeps an output until its call is told; its item says that the turn is over.
    fn keep(&mut self, nth: usize, item: Item<'a>) -> Result<Item<'a>> {
        let Item::Output(result) = item else {
            return Ok(item);
        };
        let over = Item::Output(ToolResult {
            id: Cow::Borrowed(""),
            is_error: false,
            parts: Vec::new(),
        });
        match self.outputs.insert(result.id.clone(), (nth, result)) {
            None => Ok(over),
            Some((earlier, _)) => {
                let says = format!("the output of this call stands at input[{earlier}] already");
                Err(Fault::new(says).within("call_id"))
            }
        }
    }

    fn say(&mut self, nth: usize, mut parts: Vec<Part<'a>>) {
        let (_, turn) = self.turn.get_or_insert((nth, Vec::new()));
        turn.append(&mut parts);
    }

    /// The turn is over: it and the outputs of its calls are told.
    fn end(&mut self, call: &mut Call<'a>) -> Result<()> {
        let Some((nth, parts)) = self.turn.take() else {
            return Ok(());
        };
        if parts.iter().all(|part| part.said.is_thinking()) {
            // A thought that led to nothing: no message says it.
            call.dropped.push("input.reasoning");
            return Ok(());
        }
        call.messages.push(Message {
            role: Role::Assistant,
            nth,
            parts,
        });
        for (nth, id) in std::mem::take(&mut self.calls) {
            let Some((nth, result)) = self.outputs.remove(&id) else {
                let says = "no output of this call stands in the input";
                return Err(Fault::new(says).within("call_id").item(nth));
            };
            call.messages.push(Message {
                role: Role::User,
                nth,
                parts: vec![Part::of(Said::Result(result))],
            });
        }
        Ok(())
    }

    /// Each output was one of a call.
    fn all_told(self) -> Result<()> {
        let first = self.outputs.into_values().map(|(nth, _)| nth).min();
        match first {
            None => Ok(()),
            Some(nth) => {
                let says = "no call of this id stands in the input";
                Err(Fault::new(says).within("call_id").item(nth))
            }
        }
    }
}
