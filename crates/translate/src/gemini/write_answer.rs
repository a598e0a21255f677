//! Writes an answer of `generateContent`, whole, or as those of `streamGenerateContent`, each of which is such an answer of its own.
//!
//! Invariant: a call is told when its arguments are whole, since Google's clients know no pieces of one. One whose arguments are no object
//! is not told, and the reason to stop says so.
//! Not here: errors with a status (`super::write_error`).

use std::collections::VecDeque;
use std::sync::Arc;

use wire::filter::{Manner, Stop};

use super::sealed;
use crate::answer::{Asked, Error, Event, Finish, Usage, Writer};
use crate::calls::Shape;
use crate::json::Json;
use crate::raw::Raw;

/// Writes an answer.
#[derive(Debug)]
pub(crate) struct Generated {
    asked: Arc<Asked>,
    is_streamed: bool,
    id: String,
    model: String,
    /// What was thought since the last signature, where that is wanted again with it.
    thought: String,
    /// The signature of what was thought, which may come in pieces.
    signature: String,
    /// Calls that are not told yet, in their order.
    calls: VecDeque<Made>,
    has_broken_call: bool,
    /// Of an answer that is one document: its parts, as far as they are whole, and the text that goes on.
    parts: Json,
    text: Option<(Kind, String)>,
    /// Whether an item of a list was written.
    has_item: bool,
}

#[derive(Debug)]
struct Made {
    nth: u32,
    id: String,
    name: String,
    arguments: String,
    signature: Option<String>,
    shape: Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Thought,
}

impl Generated {
    pub(crate) fn new(is_streamed: bool, asked: &Arc<Asked>) -> Self {
        Self {
            asked: Arc::clone(asked),
            is_streamed,
            id: String::new(),
            model: String::new(),
            thought: String::new(),
            signature: String::new(),
            calls: VecDeque::new(),
            has_broken_call: false,
            parts: Json::default(),
            text: None,
            has_item: false,
        }
    }

    /// One answer of a stream, with these members.
    fn chunk(&mut self, out: &mut Vec<u8>, members: impl FnOnce(&mut Json)) {
        let is_listed = self.asked.manner == Manner::List;
        let is_first = !std::mem::replace(&mut self.has_item, true);
        out.reserve(192);
        let mut json = Json::onto(out);
        json.outside(match (is_listed, is_first) {
            (false, _) => "data: ",
            (true, true) => "[",
            (true, false) => ",\r\n",
        });
        json.object(members);
        if !is_listed {
            json.outside("\n\n");
        }
        *out = json.into_bytes();
    }

    /// The answer with one part more.
    fn part_chunk(&mut self, out: &mut Vec<u8>, part: impl FnOnce(&mut Json)) {
        let (id, model) = (
            std::mem::take(&mut self.id),
            std::mem::take(&mut self.model),
        );
        self.chunk(out, |json| {
            candidate(json, |json| json.object(part), None);
            head(&id, &model, json);
        });
        (self.id, self.model) = (id, model);
    }

    fn part(&mut self, out: &mut Vec<u8>, part: impl FnOnce(&mut Json)) {
        match self.is_streamed {
            true => self.part_chunk(out, part),
            false => {
                self.end_text();
                self.parts.object(part);
            }
        }
    }

    fn text(&mut self, kind: Kind, more: &str, out: &mut Vec<u8>) {
        if self.is_streamed {
            self.part_chunk(out, |json| text(kind, more, json));
            return;
        }
        match &mut self.text {
            Some((open, text)) if *open == kind => text.push_str(more),
            _ => {
                self.end_text();
                self.text = Some((kind, more.to_owned()));
            }
        }
    }

    fn end_text(&mut self) {
        if let Some((kind, said)) = self.text.take() {
            self.parts.object(|json| text(kind, &said, json));
        }
    }

    /// Tells the signature of what was thought, with the words that belong to it.
    fn sign(&mut self, out: &mut Vec<u8>) {
        let (thought, signature) = (
            std::mem::take(&mut self.thought),
            std::mem::take(&mut self.signature),
        );
        if !signature.is_empty() {
            let sealed = sealed::thinking(self.asked.backend, &thought, &signature);
            self.seal(&sealed, out);
        }
    }

    fn seal(&mut self, sealed: &str, out: &mut Vec<u8>) {
        self.part(out, |json| {
            json.say("text", "");
            json.key("thought").flag(true);
            json.say("thoughtSignature", sealed);
        });
    }

    /// Tells the calls that are whole, up to the first that is not; at the end all of them.
    fn tell_calls(&mut self, is_over: bool, out: &mut Vec<u8>) {
        while let Some(call) = self
            .calls
            .pop_front_if(|call| is_over || call.shape.is_whole())
        {
            let arguments = match call.arguments.trim().is_empty() {
                true => Some(Raw::literal("{}")),
                false => Raw::read_arguments(&call.arguments),
            };
            let Some(arguments) = arguments else {
                self.has_broken_call = true;
                continue;
            };
            let signature = call.signature.as_deref();
            let sealed = signature.map(|signature| sealed::of_call(self.asked.backend, signature));
            self.part(out, |json| {
                json.key("functionCall").object(|json| {
                    json.say("id", &call.id);
                    json.say("name", &call.name);
                    json.key("args").raw(arguments);
                });
                if let Some(sealed) = &sealed {
                    json.say("thoughtSignature", sealed);
                }
            });
        }
    }

    fn end(&mut self, finish: &Finish, usage: &Usage, out: &mut Vec<u8>) {
        self.sign(out);
        self.tell_calls(true, out);
        self.end_text();
        let reason = match finish {
            Finish::Length => "MAX_TOKENS",
            Finish::Refused => "SAFETY",
            _ if self.has_broken_call => "MALFORMED_FUNCTION_CALL",
            Finish::Stop | Finish::StopSequence(_) | Finish::ToolCalls => "STOP",
            Finish::Paused => "OTHER",
        };
        let (id, model) = (
            std::mem::take(&mut self.id),
            std::mem::take(&mut self.model),
        );
        let parts = std::mem::take(&mut self.parts).into_bytes();
        let parts = String::from_utf8(parts).unwrap_or_default();
        let members = |json: &mut Json| {
            let write = |json: &mut Json| match parts.is_empty() {
                // A content without parts is none to Google's clients, and with it the turn.
                true => json.object(|json| json.say("text", "")),
                false => json.members(&parts),
            };
            candidate(json, write, Some(reason));
            json.key("usageMetadata");
            self::usage(usage, json);
            head(&id, &model, json);
        };
        if self.is_streamed {
            self.chunk(out, members);
            self.close(out);
            return;
        }
        let mut json = Json::onto(out);
        json.object(members);
        *out = json.into_bytes();
    }

    fn close(&self, out: &mut Vec<u8>) {
        if self.asked.manner == Manner::List {
            out.push(b']');
        }
    }

    fn error(&mut self, error: &Error, out: &mut Vec<u8>) {
        if self.is_streamed {
            self.chunk(out, |json| super::write_error_members(error, json));
            self.close(out);
            return;
        }
        let mut json = Json::onto(out);
        super::write_error(error, &mut json);
        *out = json.into_bytes();
    }
}

fn text(kind: Kind, said: &str, json: &mut Json) {
    json.say("text", said);
    if kind == Kind::Thought {
        json.key("thought").flag(true);
    }
}

fn candidate(json: &mut Json, parts: impl FnOnce(&mut Json), reason: Option<&'static str>) {
    json.key("candidates").list(|json| {
        json.object(|json| {
            json.key("content").object(|json| {
                json.key("role").word("model");
                json.key("parts").list(parts);
            });
            if let Some(reason) = reason {
                json.key("finishReason").word(reason);
            }
            json.key("index").whole(0);
        });
    });
}

fn head(id: &str, model: &str, json: &mut Json) {
    json.say("modelVersion", model);
    json.say("responseId", id);
}

fn usage(usage: &Usage, json: &mut Json) {
    let (prompt, completion) = (usage.prompt.unwrap_or(0), usage.completion.unwrap_or(0));
    let thoughts = usage.reasoning.unwrap_or(0);
    json.object(|json| {
        json.key("promptTokenCount").whole(prompt);
        if let Some(cached) = usage.cache_read {
            json.key("cachedContentTokenCount").whole(cached);
        }
        json.key("candidatesTokenCount")
            .whole(completion.saturating_sub(thoughts));
        if usage.reasoning.is_some() {
            json.key("thoughtsTokenCount").whole(thoughts);
        }
        json.key("totalTokenCount")
            .whole(prompt.saturating_add(completion));
    });
}

impl Writer for Generated {
    fn event(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Result<(), Stop> {
        match event {
            Event::Begin { id, model } => {
                self.id = id.to_owned();
                self.model = model.to_owned();
            }
            Event::Text(said) | Event::Refusal(said) => {
                self.sign(out);
                self.tell_calls(true, out);
                self.text(Kind::Text, said, out);
            }
            Event::Thinking(said) => {
                if !self.signature.is_empty() {
                    self.sign(out);
                }
                self.tell_calls(true, out);
                self.thought.push_str(said);
                if self.asked.shows_thinking {
                    self.text(Kind::Thought, said, out);
                }
            }
            Event::Signature(more) => self.signature.push_str(more),
            Event::Redacted(data) => {
                self.sign(out);
                self.tell_calls(true, out);
                let sealed = sealed::redacted(self.asked.backend, data);
                self.seal(&sealed, out);
            }
            Event::Call {
                nth,
                id,
                name,
                signature,
            } => {
                self.sign(out);
                self.calls.push_back(Made {
                    nth,
                    id: id.to_owned(),
                    name: name.to_owned(),
                    arguments: String::new(),
                    signature: signature.map(str::to_owned),
                    shape: Shape::default(),
                });
            }
            Event::Arguments { nth, json } => {
                let Some(call) = self.calls.iter_mut().find(|call| call.nth == nth) else {
                    // It was told as one that is whole.
                    return Err(Stop::Malformed);
                };
                call.arguments.push_str(json);
                call.shape.read(json);
                self.tell_calls(false, out);
            }
            Event::End(finish, usage) => self.end(&finish, &usage, out),
            Event::Error(error) => self.error(&error, out),
        }
        Ok(())
    }

    fn held(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.arguments.len());
        let text = self.text.as_ref().map_or(0, |(_, text)| text.len());
        calls.sum::<usize>() + text + self.parts.len() + self.signature.len()
    }

    fn kept(&self) -> usize {
        self.thought.len()
    }
}
