//! Writes a chat completion, streamed or whole.

use wire::filter::Stop;

use crate::answer::{Error, Event, Finish, Usage, Writer};
use crate::json::Json;

/// Writes the chunks of a stream.
#[derive(Debug)]
pub(crate) struct Chunks {
    created: u64,
    /// What each chunk begins with, to the list of its choices.
    opening: Vec<u8>,
    wants_usage: bool,
}

/// What follows the opening of a chunk that has a delta, and what ends one after which more comes.
const DELTA: &[u8] = b"[{\"index\":0,\"delta\":{";
const MORE: &[u8] = b"},\"finish_reason\":null}]}\n\n";

impl Chunks {
    pub(crate) fn new(created: u64, wants_usage: bool) -> Self {
        Self {
            created,
            opening: Vec::new(),
            wants_usage,
        }
    }

    fn begin(&mut self, id: &str, model: &str) {
        let mut json = Json::default();
        json.outside("data: ");
        json.open_object();
        write_head(id, "chat.completion.chunk", self.created, model, &mut json);
        json.key("choices");
        self.opening = json.into_bytes();
    }

    /// A chunk of this delta.
    fn chunk(&self, out: &mut Vec<u8>, delta: impl FnOnce(&mut Json)) {
        out.reserve(self.opening.len() + DELTA.len() + MORE.len() + 64);
        out.extend_from_slice(&self.opening);
        out.extend_from_slice(DELTA);
        let mut json = Json::onto(out);
        delta(&mut json);
        *out = json.into_bytes();
        out.extend_from_slice(MORE);
    }

    fn end(&self, finish: &Finish, usage: &Usage, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.opening);
        out.extend_from_slice(DELTA);
        out.extend_from_slice(b"},\"finish_reason\":\"");
        out.extend_from_slice(reason(finish).as_bytes());
        out.extend_from_slice(b"\"}]}\n\n");
        if self.wants_usage {
            out.extend_from_slice(&self.opening);
            let mut json = Json::onto(out);
            json.list(|_| {});
            json.key("usage");
            self::usage(usage, &mut json);
            *out = json.into_bytes();
            out.extend_from_slice(b"}\n\n");
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }
}

/// What every chunk, and every document, says of its answer.
fn write_head(id: &str, object: &'static str, created: u64, model: &str, json: &mut Json) {
    json.say("id", id);
    json.key("object").word(object);
    json.key("created").whole(created);
    json.say("model", model);
}

impl Writer for Chunks {
    fn event(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Result<(), Stop> {
        match event {
            Event::Begin { id, model } => {
                self.begin(id, model);
                self.chunk(out, |json| {
                    json.key("role").word("assistant");
                    json.key("content").word("");
                });
            }
            Event::Text(text) => self.chunk(out, |json| json.say("content", text)),
            Event::Refusal(text) => self.chunk(out, |json| json.say("refusal", text)),
            Event::Thinking(text) => {
                self.chunk(out, |json| json.say("reasoning_content", text));
            }
            // It has no place for what another provider wants to see again.
            Event::Signature(_) | Event::Redacted(_) => {}
            Event::Call {
                nth,
                id,
                name,
                signature,
            } => {
                self.chunk(out, |json| {
                    json.key("tool_calls").list(|json| {
                        json.object(|json| {
                            json.key("index").whole(nth.into());
                            call(id, name, "", signature, json);
                        });
                    });
                });
            }
            Event::Arguments { nth, json: more } => {
                self.chunk(out, |json| {
                    json.key("tool_calls").list(|json| {
                        json.object(|json| {
                            json.key("index").whole(nth.into());
                            json.key("function")
                                .object(|json| json.say("arguments", more));
                        });
                    });
                });
            }
            Event::End(finish, usage) => self.end(&finish, &usage, out),
            Event::Error(error) => write_error_event(&error, out),
        }
        Ok(())
    }

    fn held(&self) -> usize {
        0
    }
}

fn write_error_event(error: &Error, out: &mut Vec<u8>) {
    let mut json = Json::onto(out);
    json.outside("data: ");
    super::write_error(error, &mut json);
    json.outside("\n\n");
    *out = json.into_bytes();
}

/// The members of a call but its number.
fn call(id: &str, name: &str, arguments: &str, signature: Option<&str>, json: &mut Json) {
    json.say("id", id);
    json.say("type", "function");
    json.key("function").object(|json| {
        json.say("name", name);
        json.say("arguments", arguments);
    });
    if let Some(signature) = signature {
        json.key("extra_content").object(|json| {
            json.key("google")
                .object(|json| json.say("thought_signature", signature));
        });
    }
}

const fn reason(finish: &Finish) -> &'static str {
    match finish {
        Finish::Stop | Finish::StopSequence(_) | Finish::Paused => "stop",
        Finish::Length => "length",
        Finish::ToolCalls => "tool_calls",
        Finish::Refused => "content_filter",
    }
}

fn usage(usage: &Usage, json: &mut Json) {
    let (prompt, completion) = (usage.prompt.unwrap_or(0), usage.completion.unwrap_or(0));
    json.object(|json| {
        json.key("prompt_tokens").whole(prompt);
        json.key("completion_tokens").whole(completion);
        json.key("total_tokens")
            .whole(prompt.saturating_add(completion));
        if usage.cache_read.is_some() || usage.cache_written.is_some() {
            json.key("prompt_tokens_details").object(|json| {
                json.key("cached_tokens")
                    .whole(usage.cache_read.unwrap_or(0));
                if let Some(written) = usage.cache_written {
                    json.key("cache_write_tokens").whole(written);
                }
            });
        }
        if let Some(reasoning) = usage.reasoning {
            json.key("completion_tokens_details").object(|json| {
                json.key("reasoning_tokens").whole(reasoning);
            });
        }
    });
}

/// Writes an answer that is one document, when it is over.
#[derive(Debug)]
pub(crate) struct Whole {
    created: u64,
    /// It, to its head's end.
    json: Json,
    text: String,
    refusal: String,
    thinking: String,
    calls: Vec<Made>,
}

#[derive(Debug)]
struct Made {
    id: String,
    name: String,
    arguments: String,
    signature: Option<String>,
}

impl Whole {
    pub(crate) fn new(created: u64) -> Self {
        Self {
            created,
            json: Json::default(),
            text: String::new(),
            refusal: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
        }
    }

    fn begin(&mut self, id: &str, model: &str) {
        self.json = Json::with_capacity(1024);
        self.json.open_object();
        write_head(id, "chat.completion", self.created, model, &mut self.json);
    }

    fn end(&mut self, finish: &Finish, usage: &Usage) -> Vec<u8> {
        let mut json = std::mem::take(&mut self.json);
        json.lead(r#""choices":[{"index":0,"message":{"#);
        self.message(&mut json);
        json.trail("}");
        json.key("finish_reason").word(reason(finish));
        json.trail("}]");
        json.key("usage");
        self::usage(usage, &mut json);
        json.trail("}");
        json.into_bytes()
    }

    fn message(&self, json: &mut Json) {
        json.key("role").word("assistant");
        match self.text.is_empty() && !(self.calls.is_empty() && self.refusal.is_empty()) {
            true => json.key("content").null(),
            false => json.say("content", &self.text),
        }
        match self.refusal.is_empty() {
            true => json.key("refusal").null(),
            false => json.say("refusal", &self.refusal),
        }
        if !self.thinking.is_empty() {
            json.say("reasoning_content", &self.thinking);
        }
        if !self.calls.is_empty() {
            json.key("tool_calls").list(|json| {
                for made in &self.calls {
                    let signature = made.signature.as_deref();
                    json.object(|json| {
                        call(&made.id, &made.name, &made.arguments, signature, json)
                    });
                }
            });
        }
    }
}

impl Writer for Whole {
    fn event(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Result<(), Stop> {
        match event {
            Event::Begin { id, model } => self.begin(id, model),
            Event::Text(text) => self.text.push_str(text),
            Event::Refusal(text) => self.refusal.push_str(text),
            Event::Thinking(text) => self.thinking.push_str(text),
            Event::Signature(_) | Event::Redacted(_) => {}
            Event::Call {
                id,
                name,
                signature,
                ..
            } => self.calls.push(Made {
                id: id.to_owned(),
                name: name.to_owned(),
                arguments: String::new(),
                signature: signature.map(str::to_owned),
            }),
            Event::Arguments { nth, json } => {
                if let Some(call) = self.calls.get_mut(nth as usize) {
                    call.arguments.push_str(json);
                }
            }
            Event::End(finish, usage) => *out = self.end(&finish, &usage),
            Event::Error(error) => {
                let mut json = Json::default();
                super::write_error(&error, &mut json);
                *out = json.into_bytes();
            }
        }
        Ok(())
    }

    fn held(&self) -> usize {
        let calls = self.calls.iter().map(|call| call.arguments.len());
        self.text.len() + self.refusal.len() + self.thinking.len() + calls.sum::<usize>()
    }
}
