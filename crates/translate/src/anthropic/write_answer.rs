//! Writes an answer of the Messages API, streamed or whole.
//!
//! Invariant: blocks of a stream do not interleave, and none has a delta before its start or after its stop. Arguments of a call that
//! come while another one's are not whole are kept until they are.

use std::borrow::Cow;
use std::sync::Arc;

use wire::filter::Stop;

use super::sealed;
use crate::answer::{Asked, Error, Event, Finish, Usage, Writer};
use crate::calls::Shape;
use crate::json::Json;
use crate::raw::Raw;

/// Writes the events of a stream.
#[derive(Debug)]
pub(crate) struct Events {
    asked: Arc<Asked>,
    /// The number of the block that is open, or of the next.
    index: u64,
    open: Option<Open>,
    /// Calls that began while another's arguments came, in their order.
    waiting: Vec<Waiting>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Text,
    Thinking,
    Call {
        nth: u32,
        shape: Shape,
        has_said: bool,
    },
}

#[derive(Debug)]
struct Waiting {
    nth: u32,
    id: String,
    name: String,
    arguments: String,
}

fn write(out: &mut Vec<u8>, kind: &'static str, members: impl FnOnce(&mut Json)) {
    out.reserve(192);
    let mut json = Json::onto(out);
    json.outside("event: ");
    json.outside(kind);
    json.outside("\ndata: ");
    json.object(|json| {
        json.key("type").word(kind);
        members(json);
    });
    json.outside("\n\n");
    *out = json.into_bytes();
}

impl Events {
    pub(crate) fn new(asked: &Arc<Asked>) -> Self {
        Self {
            asked: Arc::clone(asked),
            index: 0,
            open: None,
            waiting: Vec::new(),
        }
    }

    fn delta(&self, out: &mut Vec<u8>, kind: &'static str, member: &'static str, text: &str) {
        write(out, "content_block_delta", |json| {
            json.key("index").whole(self.index);
            json.key("delta").object(|json| {
                json.key("type").word(kind);
                json.say(member, text);
            });
        });
    }

    fn start(&self, out: &mut Vec<u8>, block: impl FnOnce(&mut Json)) {
        write(out, "content_block_start", |json| {
            json.key("index").whole(self.index);
            json.key("content_block").object(block);
        });
    }

    /// Ends the block that is open.
    fn stop(&mut self, out: &mut Vec<u8>) {
        let Some(open) = self.open.take() else { return };
        if let Open::Call {
            has_said: false, ..
        } = open
        {
            // A block of a call has at least one delta: clients read its input from them alone.
            self.delta(out, "input_json_delta", "partial_json", "{}");
        }
        write(out, "content_block_stop", |json| {
            json.key("index").whole(self.index)
        });
        self.index += 1;
    }

    /// Ends whatever is open, and the calls that wait.
    fn stop_all(&mut self, out: &mut Vec<u8>) {
        self.stop(out);
        for waiting in std::mem::take(&mut self.waiting) {
            self.begin_call(&waiting, out);
            self.stop(out);
        }
    }

    /// Opens a block of text or thinking, unless it is open.
    fn open(&mut self, kind: Open, out: &mut Vec<u8>) {
        if self.open == Some(kind) {
            return;
        }
        self.stop_all(out);
        let is_text = kind == Open::Text;
        self.start(out, |json| {
            json.say("type", if is_text { "text" } else { "thinking" });
            json.say(if is_text { "text" } else { "thinking" }, "");
            if !is_text {
                json.say("signature", "");
            }
        });
        self.open = Some(kind);
    }

    fn begin_call(&mut self, call: &Waiting, out: &mut Vec<u8>) {
        self.start(out, |json| {
            json.say("type", "tool_use");
            json.say("id", &call.id);
            json.say("name", &call.name);
            json.key("input").object(|_| {});
        });
        self.open = Some(Open::Call {
            nth: call.nth,
            shape: Shape::default(),
            has_said: false,
        });
        if !call.arguments.is_empty() {
            self.arguments(&call.arguments, out);
        }
    }

    /// More of the call that is open.
    fn arguments(&mut self, more: &str, out: &mut Vec<u8>) {
        self.delta(out, "input_json_delta", "partial_json", more);
        if let Some(Open::Call {
            shape, has_said, ..
        }) = &mut self.open
        {
            shape.read(more);
            *has_said = true;
        }
    }

    /// Opens the calls that wait, as long as the one before is whole.
    fn advance(&mut self, out: &mut Vec<u8>) {
        while !self.waiting.is_empty()
            && !matches!(self.open, Some(Open::Call { shape, .. }) if !shape.is_whole())
        {
            let next = self.waiting.remove(0);
            self.stop(out);
            self.begin_call(&next, out);
        }
    }
}

impl Writer for Events {
    fn event(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Result<(), Stop> {
        match event {
            Event::Begin { id, model } => write(out, "message_start", |json| {
                json.key("message").object(|json| {
                    head(id, model, json);
                    json.key("content").list(|_| {});
                    json.key("stop_reason").null();
                    json.key("stop_sequence").null();
                    // What the prompt came to is told at the end: no other dialect tells it before.
                    json.key("usage")
                        .raw(Raw::literal(r#"{"input_tokens":0,"output_tokens":0}"#));
                });
            }),
            Event::Text(text) | Event::Refusal(text) => {
                self.open(Open::Text, out);
                self.delta(out, "text_delta", "text", text);
            }
            Event::Thinking(text) => {
                self.open(Open::Thinking, out);
                self.delta(out, "thinking_delta", "thinking", text);
            }
            // Who asked for no thoughts sends none again.
            Event::Signature(_) if !self.asked.shows_thinking => {}
            Event::Signature(signature) => {
                self.open(Open::Thinking, out);
                let sealed = sealed::thinking(self.asked.backend, signature);
                self.delta(out, "signature_delta", "signature", &sealed);
            }
            Event::Redacted(data) => {
                self.stop_all(out);
                let sealed = sealed::redacted(self.asked.backend, data);
                self.start(out, |json| {
                    json.say("type", "redacted_thinking");
                    json.say("data", &sealed);
                });
                write(out, "content_block_stop", |json| {
                    json.key("index").whole(self.index)
                });
                self.index += 1;
            }
            Event::Call {
                nth,
                id,
                name,
                signature,
            } => {
                self.waiting.push(Waiting {
                    nth,
                    id: sealed::id(self.asked.backend, id, signature).into_owned(),
                    name: name.to_owned(),
                    arguments: String::new(),
                });
                self.advance(out);
            }
            Event::Arguments { nth, json } => {
                if matches!(self.open, Some(Open::Call { nth: open, .. }) if open == nth) {
                    self.arguments(json, out);
                    self.advance(out);
                } else if let Some(call) = self.waiting.iter_mut().find(|call| call.nth == nth) {
                    call.arguments.push_str(json);
                } else {
                    // Its block ended before something else began, and no block is opened again.
                    return Err(Stop::Malformed);
                }
            }
            Event::End(finish, usage) => {
                self.stop_all(out);
                write(out, "message_delta", |json| {
                    json.key("delta").object(|json| stop_reason(&finish, json));
                    json.key("usage");
                    self::usage(&usage, json);
                });
                write(out, "message_stop", |_| {});
            }
            Event::Error(error) => error_event(&error, out),
        }
        Ok(())
    }

    fn held(&self) -> usize {
        self.waiting.iter().map(|call| call.arguments.len()).sum()
    }
}

fn error_event(error: &Error, out: &mut Vec<u8>) {
    let mut json = Json::onto(out);
    json.outside("event: error\ndata: ");
    super::write_error(error, &mut json);
    json.outside("\n\n");
    *out = json.into_bytes();
}

fn head(id: &str, model: &str, json: &mut Json) {
    json.say("id", &own_id(id));
    json.say("type", "message");
    json.say("role", "assistant");
    json.say("model", model);
}

/// An answer's id in the form that clients of the API know.
fn own_id(id: &str) -> Cow<'_, str> {
    if id.is_empty() || id.starts_with("msg_") {
        return id.into();
    }
    let mut others = ["chatcmpl-", "resp_"].into_iter();
    let stem = others.find_map(|other| id.strip_prefix(other));
    format!("msg_{}", stem.unwrap_or(id)).into()
}

fn stop_reason(finish: &Finish, json: &mut Json) {
    let reason = match finish {
        Finish::Stop => "end_turn",
        Finish::StopSequence(_) => "stop_sequence",
        Finish::Length => "max_tokens",
        Finish::ToolCalls => "tool_use",
        Finish::Refused => "refusal",
        Finish::Paused => "pause_turn",
    };
    json.say("stop_reason", reason);
    match finish {
        Finish::StopSequence(Some(sequence)) => json.say("stop_sequence", sequence),
        _ => json.key("stop_sequence").null(),
    }
}

fn usage(usage: &Usage, json: &mut Json) {
    let (read, written) = (
        usage.cache_read.unwrap_or(0),
        usage.cache_written.unwrap_or(0),
    );
    let prompt = usage.prompt.unwrap_or(0);
    json.object(|json| {
        json.key("input_tokens")
            .whole(prompt.saturating_sub(read).saturating_sub(written));
        json.key("cache_creation_input_tokens").whole(written);
        json.key("cache_read_input_tokens").whole(read);
        json.key("output_tokens")
            .whole(usage.completion.unwrap_or(0));
    });
}

/// Writes an answer that is one document, when it is over.
#[derive(Debug)]
pub(crate) struct Whole {
    asked: Arc<Asked>,
    id: String,
    model: String,
    blocks: Vec<Block>,
}

#[derive(Debug)]
enum Block {
    Text(String),
    Thinking(String, String),
    Redacted(String),
    Call(Waiting),
}

impl Whole {
    pub(crate) fn new(asked: &Arc<Asked>) -> Self {
        Self {
            asked: Arc::clone(asked),
            id: String::new(),
            model: String::new(),
            blocks: Vec::new(),
        }
    }

    fn write(&self, finish: &Finish, usage: &Usage) -> Vec<u8> {
        let mut json = Json::with_capacity(512);
        json.object(|json| {
            head(&self.id, &self.model, json);
            json.key("content")
                .list(|json| self.blocks.iter().for_each(|block| block.write(json)));
            stop_reason(finish, json);
            json.key("usage");
            self::usage(usage, json);
        });
        json.into_bytes()
    }

    /// Whether the arguments of a call are no object: nobody may run it.
    fn has_broken_call(&self) -> bool {
        let mut calls = self.blocks.iter();
        calls.any(|block| match block {
            Block::Call(call) if !call.arguments.trim().is_empty() => {
                !Raw::read(call.arguments.as_bytes()).is_some_and(Raw::is_object)
            }
            _ => false,
        })
    }

    fn text(&mut self, more: &str) {
        match self.blocks.last_mut() {
            Some(Block::Text(text)) => text.push_str(more),
            _ => self.blocks.push(Block::Text(more.to_owned())),
        }
    }

    fn thinking(&mut self, more: &str, signature: &str) {
        match self.blocks.last_mut() {
            Some(Block::Thinking(text, signed)) => {
                text.push_str(more);
                signed.push_str(signature);
            }
            _ => self
                .blocks
                .push(Block::Thinking(more.to_owned(), signature.to_owned())),
        }
    }
}

impl Block {
    fn write(&self, json: &mut Json) {
        json.object(|json| match self {
            Self::Text(text) => {
                json.say("type", "text");
                json.say("text", text);
            }
            Self::Thinking(text, signature) => {
                json.say("type", "thinking");
                json.say("thinking", text);
                json.say("signature", signature);
            }
            Self::Redacted(data) => {
                json.say("type", "redacted_thinking");
                json.say("data", data);
            }
            Self::Call(call) => {
                json.say("type", "tool_use");
                json.say("id", &call.id);
                json.say("name", &call.name);
                let input = Raw::read(call.arguments.as_bytes()).filter(|input| input.is_object());
                match input {
                    Some(input) => json.key("input").raw(input),
                    None if call.arguments.trim().is_empty() => json.key("input").object(|_| {}),
                    // The model was cut off in the middle of it, and `stop_reason` says so.
                    None => json.key("input").object(|_| {}),
                }
            }
        });
    }
}

impl Writer for Whole {
    fn event(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Result<(), Stop> {
        match event {
            Event::Begin { id, model } => {
                self.id = id.to_owned();
                self.model = model.to_owned();
            }
            Event::Text(text) | Event::Refusal(text) => self.text(text),
            Event::Thinking(text) => self.thinking(text, ""),
            Event::Signature(_) if !self.asked.shows_thinking => {}
            Event::Signature(signature) => {
                let sealed = sealed::thinking(self.asked.backend, signature);
                self.thinking("", &sealed);
            }
            Event::Redacted(data) => {
                let sealed = sealed::redacted(self.asked.backend, data);
                self.blocks.push(Block::Redacted(sealed));
            }
            Event::Call {
                nth,
                id,
                name,
                signature,
            } => self.blocks.push(Block::Call(Waiting {
                nth,
                id: sealed::id(self.asked.backend, id, signature).into_owned(),
                name: name.to_owned(),
                arguments: String::new(),
            })),
            Event::Arguments { nth, json } => {
                let calls = self.blocks.iter_mut().rev();
                let mut calls = calls.filter_map(|block| match block {
                    Block::Call(call) => Some(call),
                    _ => None,
                });
                if let Some(call) = calls.find(|call| call.nth == nth) {
                    call.arguments.push_str(json);
                }
            }
            Event::End(finish, usage) => {
                let finish = if self.has_broken_call() {
                    Finish::Length
                } else {
                    finish
                };
                out.append(&mut self.write(&finish, &usage));
            }
            Event::Error(error) => {
                let mut json = Json::default();
                super::write_error(&error, &mut json);
                out.append(&mut json.into_bytes());
            }
        }
        Ok(())
    }

    fn held(&self) -> usize {
        let blocks = self.blocks.iter().map(|block| match block {
            Block::Text(text) | Block::Redacted(text) => text.len(),
            Block::Thinking(text, signature) => text.len() + signature.len(),
            Block::Call(call) => call.arguments.len(),
        });
        blocks.sum()
    }
}
