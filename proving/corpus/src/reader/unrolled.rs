//! Histories that were unrolled already, back to one session: each message once, each history as places.
//!
//! Invariant: the histories can be had back, message for message, from the session.
//! Not here: formats.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Fault, Tally};
use crate::conversation::{Content, Conversation, Decision, Message, Role};
use crate::json::Json;

/// Histories of one session.
const MAX_HISTORIES: usize = 10_000;

/// A session that grows by histories.
#[derive(Default)]
pub(super) struct Unrolled {
    messages: Vec<Message>,
    places: HashMap<u64, Vec<usize>>,
    decisions: Vec<Decision>,
}

impl Unrolled {
    /// Adds a history that ends in a decision: the messages of the assistant at its end that no earlier history has.
    /// What was decided before, as a thought before the call that follows it, belongs to the prompt.
    pub(super) fn add(&mut self, history: Vec<Message>, tally: &mut Tally) -> Result<(), Fault> {
        if self.decisions.len() == MAX_HISTORIES {
            let says = "has more than 10,000 steps";
            return Err(Fault::broken("too_many_steps", says));
        }
        let known = self.messages.len();
        let mut used = HashMap::new();
        let places: Vec<usize> = history
            .into_iter()
            .map(|message| self.place(message, &mut used))
            .collect();
        let Some(&last) = places.last() else {
            tally.note("empty_history");
            return Ok(());
        };
        let is_new_answer =
            |place: usize| place >= known && self.messages[place].role == Role::Assistant;
        let mut prompt = places.len();
        let mut answer = None;
        if self.messages[last].role == Role::Assistant {
            answer = Some(last);
            prompt -= 1;
            while last >= known && prompt > 0 && is_new_answer(places[prompt - 1]) {
                tally.note("answer_of_several_messages");
                prompt -= 1;
            }
        } else {
            tally.note("history_without_answer");
        }
        self.decisions.push(Decision {
            prompt: places[..prompt].to_vec(),
            answer,
            ..Decision::default()
        });
        Ok(())
    }

    /// The place of a message: that of the next equal one that this history has not used yet, or a new one.
    fn place(&mut self, message: Message, used: &mut HashMap<u64, usize>) -> usize {
        let digest = digest(&message);
        let equals = self.places.entry(digest).or_default();
        let next = used.entry(digest).or_default();
        let rest = equals.get(*next..).unwrap_or_default();
        let found = rest.iter().position(|p| self.messages[*p] == message);
        let at = found.map_or(equals.len(), |at| *next + at);
        if at == equals.len() {
            equals.push(self.messages.len());
            self.messages.push(message);
        }
        *next = at + 1;
        equals[at]
    }

    /// The session.
    pub(super) fn finish(self, id: String, tools: Vec<Json>) -> Result<Conversation, Fault> {
        if self.decisions.is_empty() {
            return Err(Fault::skipped("no_decisions", "has no step"));
        }
        Ok(Conversation {
            id,
            licence: None,
            tools,
            messages: self.messages,
            decisions: self.decisions,
        })
    }
}

/// The same for equal messages.
fn digest(message: &Message) -> u64 {
    let mut hasher = DefaultHasher::new();
    (message.role as u8).hash(&mut hasher);
    message.name.hash(&mut hasher);
    message.tool_call_id.hash(&mut hasher);
    match &message.content {
        None => {}
        Some(Content::Text(text)) => text.hash(&mut hasher),
        Some(Content::Parts(parts)) => parts.len().hash(&mut hasher),
    }
    if let Some(call) = &message.function_call {
        call.name.hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
