//! Reads a chat completion, streamed or whole.
//!
//! Of several choices the first is read: nobody but OpenAI has more, and a call that asks for more is refused.

mod quick;

use serde::Deserialize;
use wire::filter::Stop;
use wire::json::as_text;

use crate::answer::{Ended, Event, Finish, Reader, Tail, Usage};
use crate::raw::{Text, read_json};
use crate::report::{Count, Told};

#[derive(Deserialize, Debug, Default)]
struct Document<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    usage: Told<Counts>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize, Debug, Default)]
struct Choice<'a> {
    #[serde(default)]
    index: u32,
    /// Of a stream, and of a document.
    #[serde(borrow, alias = "message")]
    delta: Option<Message<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    /// vLLM's: the stop sequence that came, or the number of a token.
    #[serde(borrow)]
    stop_reason: Option<Stopped<'a>>,
}

#[derive(Deserialize, Debug)]
#[serde(untagged)]
enum Stopped<'a> {
    #[serde(borrow)]
    At(Text<'a>),
    Token(serde::de::IgnoredAny),
}

#[derive(Deserialize, Debug, Default)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<Text<'a>>,
    #[serde(borrow)]
    refusal: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Text<'a>>,
    #[serde(borrow)]
    reasoning: Option<Text<'a>>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
}

#[derive(Deserialize, Debug)]
struct Call<'a> {
    index: Option<u32>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    #[serde(borrow)]
    extra_content: Option<Extra<'a>>,
}

#[derive(Deserialize, Debug)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
}

#[derive(Deserialize, Debug)]
struct Extra<'a> {
    #[serde(borrow)]
    google: Option<Google<'a>>,
}

#[derive(Deserialize, Debug)]
struct Google<'a> {
    #[serde(borrow)]
    thought_signature: Option<Text<'a>>,
}

#[derive(Deserialize, Clone, Copy, Debug, Default)]
#[serde(default)]
struct Counts {
    prompt_tokens: Count,
    completion_tokens: Count,
    prompt_tokens_details: Told<PromptDetails>,
    completion_tokens_details: Told<CompletionDetails>,
}

#[derive(Deserialize, Clone, Copy, Debug, Default)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
    cache_write_tokens: Count,
}

#[derive(Deserialize, Clone, Copy, Debug, Default)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

impl From<Counts> for Usage {
    fn from(counts: Counts) -> Self {
        let prompt = counts.prompt_tokens_details.0.unwrap_or_default();
        let completion = counts.completion_tokens_details.0.unwrap_or_default();
        Self {
            prompt: counts.prompt_tokens.0,
            cache_read: prompt.cached_tokens.0,
            cache_written: prompt.cache_write_tokens.0,
            cache_written_1h: None,
            completion: counts.completion_tokens.0,
            reasoning: completion.reasoning_tokens.0,
        }
    }
}

/// The state of one answer.
#[derive(Debug, Default)]
pub(crate) struct ChatReader {
    has_begun: bool,
    has_calls: bool,
    usage: Usage,
    tail: Tail,
}

/// Reads what comes to its place, the quick way where that goes.
fn read<'a>(json: &'a [u8], into: &mut Document<'a>) -> Result<(), Stop> {
    let text = as_text(json).ok_or(Stop::Malformed)?;
    if quick::read(text, into).is_none() {
        *into = read_json(json)?;
    }
    Ok(())
}

fn said<'t>(text: &'t Option<Text<'_>>) -> &'t str {
    text.as_ref().map_or("", |text| &text.0)
}

impl ChatReader {
    fn read(&mut self, json: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        let mut document = Document::default();
        read(json, &mut document)?;
        // What has neither may be an error of an engine that puts no object around it.
        let says_nothing = document.choices.is_none() && document.usage.0.is_none();
        let is_error = document.error.is_some();
        if is_error || says_nothing {
            match super::read_error(200, json) {
                Some(error) => {
                    self.tail.close();
                    tell(Event::Error(error));
                    return Ok(());
                }
                None if is_error => return Err(Stop::Malformed),
                None => {}
            }
        }
        // Azure's first chunk tells of its filters alone, and has no id.
        let is_blank =
            said(&document.id).is_empty() && document.choices.as_ref().is_some_and(Vec::is_empty);
        if !is_blank && !std::mem::replace(&mut self.has_begun, true) {
            let text = |text: &'_ Option<Text<'_>>| {
                text.as_ref().map_or(String::new(), |t| t.0.to_string())
            };
            let (id, model) = (text(&document.id), text(&document.model));
            tell(Event::Begin {
                id: &id,
                model: &model,
            });
        }
        if let Some(counts) = document.usage.0 {
            self.usage = counts.into();
        }
        let choices = document.choices.into_iter().flatten();
        for choice in choices.filter(|choice| choice.index == 0) {
            if let Some(delta) = &choice.delta {
                self.delta(delta, tell);
            }
            if let Some(Text(reason)) = &choice.finish_reason {
                let ended = self.ended(reason, &choice.stop_reason);
                self.tail.ends(ended);
            }
        }
        Ok(())
    }

    /// The reasons of OpenAI (<https://platform.openai.com/docs/api-reference/chat/object>), of TGI (`eos_token`), Mistral
    /// (`model_length`) and Together (`eos`). That an engine gave up is none: `abort`, `error`, `insufficient_system_resource`.
    fn ended(&self, reason: &str, stopped: &Option<Stopped<'_>>) -> Ended {
        Ended::Finished(match reason {
            "length" | "model_length" => Finish::Length,
            "tool_calls" | "function_call" => Finish::ToolCalls,
            "content_filter" => Finish::Refused,
            // Of a tool that was chosen by name engines say `stop`.
            "stop" | "eos_token" | "eos" | "stop_sequence" if self.has_calls => Finish::ToolCalls,
            "stop" | "eos_token" | "eos" => match stopped {
                Some(Stopped::At(Text(sequence))) => {
                    Finish::StopSequence(Some(sequence.to_string()))
                }
                _ => Finish::Stop,
            },
            "stop_sequence" => Finish::StopSequence(None),
            other => return Ended::otherwise(other, ""),
        })
    }

    fn delta(&mut self, delta: &Message<'_>, tell: &mut dyn FnMut(Event<'_>)) {
        // Some engines say it under both names.
        let thoughts = [&delta.reasoning_content, &delta.reasoning];
        let thought = thoughts.map(said).into_iter().find(|said| !said.is_empty());
        if let Some(text) = thought {
            tell(Event::Thinking(text));
        }
        match said(&delta.content) {
            "" => {}
            text => tell(Event::Text(text)),
        }
        match said(&delta.refusal) {
            "" => {}
            text => tell(Event::Refusal(text)),
        }
        let calls = delta.tool_calls.iter().flatten();
        for (at, call) in (0..).zip(calls) {
            self.has_calls = true;
            let nth = call.index.unwrap_or(at);
            let name = call
                .function
                .as_ref()
                .and_then(|function| function.name.as_ref());
            let (id, name) = (said(&call.id), name.map_or("", |name| &name.0));
            if !(id.is_empty() && name.is_empty()) {
                let signature = call
                    .extra_content
                    .as_ref()
                    .and_then(|extra| extra.google.as_ref());
                let signature = signature.and_then(|google| google.thought_signature.as_ref());
                tell(Event::Call {
                    nth,
                    id,
                    name,
                    signature: signature.map(|signature| &*signature.0),
                });
            }
            let arguments = call
                .function
                .as_ref()
                .and_then(|function| function.arguments.as_ref());
            if let Some(Text(json)) = arguments.filter(|json| !json.0.is_empty()) {
                tell(Event::Arguments { nth, json });
            }
        }
    }
}

impl Reader for ChatReader {
    fn event(&mut self, data: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        if self.tail.is_over() {
            return Ok(());
        }
        if data.trim_ascii() == b"[DONE]" {
            self.over(tell);
            return Ok(());
        }
        self.read(data, tell)
    }

    fn document(&mut self, json: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        self.read(json, tell)?;
        self.over(tell);
        self.tail.whole()
    }

    fn over(&mut self, tell: &mut dyn FnMut(Event<'_>)) {
        self.tail.tell(self.usage, tell);
    }
}
