//! Neighbours of one role as one message, for chat templates that want roles in turn.
//!
//! Invariant: no prompt has neighbours of one role but tools' answers. What was said stays, in its order.
//! Not here: whether that is wanted.

use std::collections::BTreeMap;

use super::Repairs;
use crate::conversation::{Content, Conversation, Decision, Message, Role};
use crate::json::Json;

/// Stands between the texts of two messages.
const BETWEEN: &str = "\n\n";

pub(super) fn repair(session: Conversation, repairs: &mut Repairs) -> Conversation {
    let mut merged = Merged {
        from: &session.messages,
        made: Vec::new(),
        places: BTreeMap::new(),
        repairs,
    };
    let decisions = session.decisions.iter().map(|decision| {
        let mut prompt: Vec<usize> = Vec::new();
        let mut rest = decision.prompt.as_slice();
        while !rest.is_empty() {
            let (group, after) = rest.split_at(merged.group(rest));
            prompt.push(merged.place(group));
            rest = after;
        }
        Decision {
            prompt,
            answer: decision.answer.map(|place| merged.place(&[place])),
            ..decision.clone()
        }
    });
    let mut decisions: Vec<Decision> = decisions.collect();
    let (messages, places) = merged.in_order();
    for decision in &mut decisions {
        let all = decision.prompt.iter_mut().chain(&mut decision.answer);
        all.for_each(|place| *place = places[*place]);
    }
    Conversation {
        decisions,
        messages,
        ..session
    }
}

struct Merged<'a> {
    from: &'a [Message],
    made: Vec<Message>,
    places: BTreeMap<Vec<usize>, usize>,
    repairs: &'a mut Repairs,
}

impl Merged<'_> {
    /// How many messages at the start become one.
    fn group(&self, prompt: &[usize]) -> usize {
        let role = |at: usize| self.from[prompt[at]].role;
        let mut length = 1;
        while length < prompt.len()
            && role(length) == role(0)
            && !matches!(role(0), Role::Tool | Role::Function)
            && self.from[prompt[length - 1]].tool_calls.is_empty()
        {
            length += 1;
        }
        length
    }

    fn place(&mut self, group: &[usize]) -> usize {
        if let Some(&place) = self.places.get(group) {
            return place;
        }
        let mut whole = self.from[group[0]].clone();
        for &next in &group[1..] {
            self.repairs.count("same_role_merged");
            append(&mut whole, &self.from[next]);
        }
        self.made.push(whole);
        self.places.insert(group.to_vec(), self.made.len() - 1);
        self.made.len() - 1
    }

    /// What was made in the order of the source, and where each is now.
    fn in_order(self) -> (Vec<Message>, Vec<usize>) {
        let mut places = vec![0; self.made.len()];
        let mut made: Vec<Option<Message>> = self.made.into_iter().map(Some).collect();
        let in_order = self.places.values().enumerate().filter_map(|(new, old)| {
            places[*old] = new;
            made[*old].take()
        });
        (in_order.collect(), places)
    }
}

fn append(whole: &mut Message, next: &Message) {
    if whole.name != next.name {
        whole.name = None;
    }
    whole.tool_calls.extend(next.tool_calls.iter().cloned());
    whole.reasoning = match (whole.reasoning.take(), next.reasoning.clone()) {
        (Some(first), Some(second)) => Some(first + BETWEEN + &second),
        (first, second) => first.or(second),
    };
    whole.content = match (whole.content.take(), next.content.clone()) {
        (Some(first), Some(second)) => Some(both(first, second)),
        (first, second) => first.or(second),
    };
}

fn both(first: Content, second: Content) -> Content {
    match (first, second) {
        (Content::Text(first), Content::Text(second)) => {
            let between = if first.is_empty() || second.is_empty() {
                ""
            } else {
                BETWEEN
            };
            Content::Text(first + between + &second)
        }
        (first, second) => {
            let mut parts = parts(first);
            parts.extend(self::parts(second));
            Content::Parts(parts)
        }
    }
}

fn parts(content: Content) -> Vec<Json> {
    match content {
        Content::Parts(parts) => parts,
        Content::Text(text) => vec![Json::object([
            ("type", Json::from("text")),
            ("text", Json::String(text)),
        ])],
    }
}
