//! Which answer belongs to which call, prompt by prompt, and where a session has to end.
//!
//! One message may stand in many prompts, so nothing is copied for each of them: a message has a variant for each call
//! that it answers somewhere, and nearly always that is one.
//! Invariant: in every prompt each call is answered once, before the next message that is no tool's; each answer of a
//! tool names a call of the assistant's message before it.
//! Not here: what a message holds (`messages`).

use std::collections::{HashMap, HashSet};

use super::Repairs;
use super::messages::call_ids;
use crate::conversation::{Conversation, Decision, Message, Role};

/// Gives calls their ids and answers theirs, and cuts the session where a call has no answer.
pub(super) fn repair(mut session: Conversation, repairs: &mut Repairs) -> Conversation {
    let before = call_ids(&mut session, repairs);
    let named = before.iter().flatten().flatten().cloned().collect();
    let mut prompts = Prompts {
        messages: &session.messages,
        before: &before,
        named,
        variants: HashMap::new(),
        made: Vec::new(),
        dropped: HashSet::new(),
        repairs,
    };
    let mut decisions = Vec::with_capacity(session.decisions.len());
    let all = session.decisions.len();
    for decision in &session.decisions {
        if decision.prompt.is_empty() {
            prompts.repairs.count("empty_prompt_dropped");
            continue;
        }
        let Some(prompt) = prompts.of(&decision.prompt) else {
            prompts.repairs.count("session_cut");
            break;
        };
        if prompt.is_empty() {
            prompts.repairs.count("empty_prompt_dropped");
            continue;
        }
        let role = |place: &usize| session.messages.get(*place).map(|message| message.role);
        let answer = decision
            .answer
            .filter(|place| role(place) == Some(Role::Assistant));
        let answer = answer.map(|place| prompts.variant(place, Role::Assistant, None));
        decisions.push(Decision {
            prompt,
            answer,
            ..decision.clone()
        });
    }
    let empty = prompts.repairs.of("empty_prompt_dropped");
    let lost = (all - decisions.len()) as u64;
    prompts
        .repairs
        .add("decision_cut", lost.saturating_sub(empty));
    let (messages, places) = prompts.in_order();
    for decision in &mut decisions {
        let all = decision.prompt.iter_mut().chain(&mut decision.answer);
        all.for_each(|place| *place = places[*place]);
    }
    session.messages = messages;
    session.decisions = decisions;
    session
}

struct Prompts<'a> {
    messages: &'a [Message],
    /// The ids that each message's calls had in the source.
    before: &'a [Vec<Option<String>>],
    /// All of them.
    named: HashSet<String>,
    /// A message as a role and with an answered call: where it stands among those that were made.
    variants: HashMap<Variant, usize>,
    made: Vec<Message>,
    dropped: HashSet<usize>,
    repairs: &'a mut Repairs,
}

/// A message, as whom it speaks, and which call it answers.
type Variant = (usize, Role, Option<String>);

/// A prompt whose calls are all answered.
#[derive(Default)]
struct Matched {
    kept: Vec<Variant>,
    /// What has no place in it, and why.
    dropped: Vec<(usize, &'static str)>,
}

/// A call that waits for its answer.
struct Waiting {
    place: usize,
    k: usize,
}

impl Prompts<'_> {
    /// The prompt with matched answers; `None`, and nothing done, where a call has none.
    fn of(&mut self, prompt: &[usize]) -> Option<Vec<usize>> {
        let matched = self.matched(prompt)?;
        for (place, kind) in matched.dropped {
            if self.dropped.insert(place) {
                self.repairs.count(kind);
            }
        }
        let kept = matched.kept.into_iter();
        Some(
            kept.map(|(place, role, id)| self.variant(place, role, id))
                .collect(),
        )
    }

    fn matched(&self, prompt: &[usize]) -> Option<Matched> {
        let mut matched = Matched::default();
        let mut waiting: Vec<Waiting> = Vec::new();
        let mut seen = HashSet::new();
        for &place in prompt {
            if place >= self.messages.len() || !seen.insert(place) {
                matched.dropped.push((place, "place_dropped"));
                continue;
            }
            let message = &self.messages[place];
            if !matches!(message.role, Role::Tool | Role::Function) {
                if !waiting.is_empty() {
                    return None;
                }
                let calls = 0..message.tool_calls.len();
                waiting = calls.map(|k| Waiting { place, k }).collect();
                matched.kept.push((place, message.role, None));
                continue;
            }
            match self.answered(message, &waiting) {
                Some(at) => {
                    let call = waiting.remove(at);
                    let id = self.messages[call.place].tool_calls[call.k].id.clone();
                    matched.kept.push((place, Role::Tool, id));
                }
                None if waiting.is_empty() => matched.kept.push((place, Role::User, None)),
                None => matched.dropped.push((place, "orphan_answer_dropped")),
            }
        }
        waiting.is_empty().then_some(matched)
    }

    /// Which of the waiting calls a message answers: by its id; where that names no call of the session, by the
    /// function's name and then by order.
    fn answered(&self, message: &Message, waiting: &[Waiting]) -> Option<usize> {
        let call = |w: &Waiting| &self.messages[w.place].tool_calls[w.k];
        let id = message.tool_call_id.as_ref();
        if let Some(id) = id.filter(|id| self.named.contains(*id)) {
            return waiting
                .iter()
                .position(|w| self.before[w.place][w.k].as_ref() == Some(id));
        }
        let name = message.name.as_ref();
        let by_name = waiting
            .iter()
            .position(|w| Some(&call(w).function.name) == name);
        by_name.or((!waiting.is_empty()).then_some(0))
    }

    /// Where a message stands among those that were made, as this role and as the answer of this call.
    fn variant(&mut self, place: usize, role: Role, id: Option<String>) -> usize {
        let key = (place, role, id);
        if let Some(&at) = self.variants.get(&key) {
            return at;
        }
        let (_, role, id) = key.clone();
        let source = &self.messages[place];
        self.count(source, role, id.as_ref());
        let is_tool = role == Role::Tool;
        self.made.push(Message {
            role,
            name: source
                .name
                .clone()
                .filter(|_| source.role == role || is_tool),
            tool_call_id: id,
            ..source.clone()
        });
        self.variants.insert(key, self.made.len() - 1);
        self.made.len() - 1
    }

    fn count(&mut self, source: &Message, role: Role, id: Option<&String>) {
        match (source.role, role) {
            (Role::Function, Role::Tool) => self.repairs.count("role_function_to_tool"),
            (Role::Tool | Role::Function, Role::User) => {
                self.repairs.count("orphan_answer_to_user");
            }
            (Role::Tool, Role::Tool) if source.tool_call_id.is_none() => {
                self.repairs.count("answer_id_added");
            }
            (Role::Tool, Role::Tool) if source.tool_call_id.as_ref() != id => {
                self.repairs.count("answer_id_changed");
            }
            _ => {}
        }
    }

    /// What was made in the order of the source, and where each is now.
    fn in_order(self) -> (Vec<Message>, Vec<usize>) {
        let mut keys: Vec<_> = self.variants.into_iter().collect();
        keys.sort_by_key(|((place, ..), at)| (*place, *at));
        let mut places = vec![0; self.made.len()];
        let mut made: Vec<Option<Message>> = self.made.into_iter().map(Some).collect();
        let in_order = keys.iter().enumerate().filter_map(|(new, (_, old))| {
            places[*old] = new;
            made[*old].take()
        });
        (in_order.collect(), places)
    }
}
