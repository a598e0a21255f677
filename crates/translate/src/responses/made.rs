//! The items of a response while they are made.

use super::freeform::Freeform;
use super::sealed;
use crate::call::{Alias, AliasKind};
use crate::json::Json;
use crate::raw::Raw;

/// Kinds of content.
pub(super) const TEXT: &str = "output_text";
pub(super) const REFUSAL: &str = "refusal";
pub(super) const REASONING: &str = "reasoning_text";

#[derive(Debug)]
pub(super) struct Item {
    pub(super) id: String,
    pub(super) status: Status,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    InProgress,
    Completed,
    Incomplete,
}

#[derive(Debug)]
pub(super) enum What {
    Message(Vec<Part>),
    Reasoning(Box<Thought>),
    Call(Box<Call>),
}

/// A part of content.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) kind: &'static str,
    pub(super) text: String,
}

#[derive(Debug)]
pub(super) struct Thought {
    part: Option<Part>,
    pub(super) signature: String,
    sealed: Option<String>,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) id: String,
    /// The provider's name of its tool.
    pub(super) called: String,
    /// The client's, where that is another.
    alias: Option<Alias>,
    /// What its tool gets: arguments, or a text.
    pub(super) said: String,
    /// What is left to read of a text.
    freeform: Freeform,
}

impl Item {
    pub(super) fn write(&self, json: &mut Json) {
        json.object(|json| {
            json.say("id", &self.id);
            json.say("type", self.what.kind());
            let status = match self.status {
                Status::InProgress => "in_progress",
                Status::Completed => "completed",
                Status::Incomplete => "incomplete",
            };
            json.say("status", status);
            match &self.what {
                What::Message(parts) => {
                    json.say("role", "assistant");
                    json.key("content")
                        .list(|json| parts.iter().for_each(|part| part.write(json)));
                }
                What::Reasoning(thought) => {
                    json.key("summary").list(|_| {});
                    json.key("content")
                        .list(|json| thought.part.iter().for_each(|part| part.write(json)));
                    if let Some(sealed) = &thought.sealed {
                        json.say("encrypted_content", sealed);
                    }
                }
                What::Call(call) => call.write(json),
            }
        });
    }
}

impl What {
    pub(super) fn reasoning(sealed: Option<String>) -> Self {
        Self::Reasoning(Box::new(Thought {
            part: None,
            signature: String::new(),
            sealed,
        }))
    }

    /// What its ids begin with.
    pub(super) fn prefix(&self) -> &'static str {
        match self {
            Self::Message(_) => "msg",
            Self::Reasoning(_) => "rs",
            Self::Call(call) => match call.kind() {
                AliasKind::Function => "fc",
                AliasKind::Freeform => "ctc",
                AliasKind::Search => "tsc",
            },
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Self::Message(_) => "message",
            Self::Reasoning(_) => "reasoning",
            Self::Call(call) => match call.kind() {
                AliasKind::Function => "function_call",
                AliasKind::Freeform => "custom_tool_call",
                AliasKind::Search => "tool_search_call",
            },
        }
    }

    fn call(&self) -> Option<&Call> {
        match self {
            Self::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Whether nothing of it is missing when another item begins.
    pub(super) fn is_whole(&self) -> bool {
        self.call().is_none_or(Call::is_whole)
    }

    /// Whether an answer that was cut may have cut it.
    pub(super) fn may_be_cut(&self) -> bool {
        self.call().is_none_or(|call| !call.is_whole())
    }

    pub(super) fn parts(&self) -> usize {
        match self {
            Self::Message(parts) => parts.len(),
            Self::Reasoning(thought) => usize::from(thought.part.is_some()),
            Self::Call(_) => 0,
        }
    }

    pub(super) fn last_part(&self) -> Option<&Part> {
        match self {
            Self::Message(parts) => parts.last(),
            Self::Reasoning(thought) => thought.part.as_ref(),
            Self::Call(_) => None,
        }
    }

    pub(super) fn part_mut(&mut self) -> Option<&mut Part> {
        match self {
            Self::Message(parts) => parts.last_mut(),
            Self::Reasoning(thought) => thought.part.as_mut(),
            Self::Call(_) => None,
        }
    }

    pub(super) fn add_part(&mut self, kind: &'static str) {
        match self {
            Self::Message(parts) => parts.push(Part::of(kind)),
            Self::Reasoning(thought) => thought.part = Some(Part::of(kind)),
            Self::Call(_) => {}
        }
    }
}

impl Part {
    pub(super) const fn of(kind: &'static str) -> Self {
        Self {
            kind,
            text: String::new(),
        }
    }

    /// The member that has its text.
    pub(super) fn member(&self) -> &'static str {
        if self.kind == REFUSAL {
            "refusal"
        } else {
            "text"
        }
    }

    pub(super) fn write(&self, json: &mut Json) {
        json.object(|json| {
            json.say("type", self.kind);
            json.say(self.member(), &self.text);
            if self.kind == TEXT {
                json.key("annotations").list(|_| {});
                json.key("logprobs").list(|_| {});
            }
        });
    }
}

impl Thought {
    /// Puts what was thought and its signature where clients send it back from.
    pub(super) fn seal(&mut self, by: &str) {
        if !self.signature.is_empty() {
            let text = self.part.as_ref().map_or("", |part| &part.text);
            self.sealed = Some(sealed::thinking(by, text, &self.signature));
        }
    }
}

impl Call {
    pub(super) fn new(id: String, called: &str, alias: Option<Alias>) -> Self {
        Self {
            id,
            called: called.to_owned(),
            alias,
            said: String::new(),
            freeform: Freeform::default(),
        }
    }

    pub(super) fn kind(&self) -> AliasKind {
        self.alias
            .as_ref()
            .map_or(AliasKind::Function, |alias| alias.kind)
    }

    pub(super) fn is_whole(&self) -> bool {
        match self.kind() {
            AliasKind::Freeform => self.freeform.is_whole(),
            AliasKind::Function | AliasKind::Search => Raw::read(self.said.as_bytes()).is_some(),
        }
    }

    /// Reads more of what the model gives: what its tool gets of it is told.
    pub(super) fn push(&mut self, more: &str) -> String {
        let mut told = String::new();
        match self.kind() {
            AliasKind::Freeform => self.freeform.push(more, &mut told),
            AliasKind::Function | AliasKind::Search => told.push_str(more),
        }
        self.said.push_str(&told);
        told
    }

    /// All has come: what of it is still untold.
    pub(super) fn end(&mut self) -> String {
        let mut told = String::new();
        if self.kind() == AliasKind::Freeform {
            self.freeform.end(&mut told);
        } else if self.said.trim().is_empty() {
            // Clients read a document there, and at least one piece of it.
            told.push_str("{}");
        }
        self.said.push_str(&told);
        told
    }

    /// Bytes that have come and are not told.
    pub(super) fn held(&self) -> usize {
        match self.kind() {
            AliasKind::Function => 0,
            AliasKind::Freeform => self.freeform.held(),
            AliasKind::Search => self.said.len(),
        }
    }

    /// The kinds of its events, where it has some of its own, and the member of the last that has all.
    pub(super) fn events(&self) -> Option<(&'static str, &'static str, &'static str)> {
        match self.kind() {
            AliasKind::Function => Some((
                "response.function_call_arguments.delta",
                "response.function_call_arguments.done",
                "arguments",
            )),
            AliasKind::Freeform => Some((
                "response.custom_tool_call_input.delta",
                "response.custom_tool_call_input.done",
                "input",
            )),
            AliasKind::Search => None,
        }
    }

    fn write(&self, json: &mut Json) {
        json.say("call_id", &self.id);
        if self.kind() == AliasKind::Search {
            json.say("execution", "client");
            let arguments = Raw::read(self.said.as_bytes());
            return match arguments.filter(|arguments| arguments.is_object()) {
                Some(arguments) => json.key("arguments").raw(arguments),
                None if self.said.is_empty() => json.key("arguments").object(|_| {}),
                None => json.say("arguments", &self.said),
            };
        }
        match &self.alias {
            None => json.say("name", &self.called),
            Some(alias) => {
                json.say("name", &alias.name);
                if let Some(namespace) = &alias.namespace {
                    json.say("namespace", namespace);
                }
            }
        }
        if let Some((_, _, member)) = self.events() {
            json.say(member, &self.said);
        }
    }
}
