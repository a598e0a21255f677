//! Reads a chat completion, streamed or whole.
//!
//! Of several choices the first is read: nobody but OpenAI has more, and a call that asks for more is refused.

use serde::Deserialize;
use wire::filter::Stop;

use crate::answer::{Event, Finish, Reader, Usage};
use crate::raw::{Text, read_json};

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    choices: Option<Vec<Choice<'a>>>,
    usage: Option<Counts>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
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

#[derive(Deserialize)]
#[serde(untagged)]
enum Stopped<'a> {
    #[serde(borrow)]
    At(Text<'a>),
    Token(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
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

#[derive(Deserialize)]
struct Call<'a> {
    index: Option<u32>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
    #[serde(borrow)]
    extra_content: Option<Extra<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Extra<'a> {
    #[serde(borrow)]
    google: Option<Google<'a>>,
}

#[derive(Deserialize)]
struct Google<'a> {
    #[serde(borrow)]
    thought_signature: Option<Text<'a>>,
}

#[derive(Deserialize, Clone, Copy)]
struct Counts {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Deserialize, Clone, Copy)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize, Clone, Copy)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

impl From<Counts> for Usage {
    fn from(counts: Counts) -> Self {
        let prompt = counts.prompt_tokens_details;
        Self {
            prompt: counts.prompt_tokens,
            cache_read: prompt.and_then(|details| details.cached_tokens),
            cache_written: prompt.and_then(|details| details.cache_write_tokens),
            cache_written_1h: None,
            completion: counts.completion_tokens,
            reasoning: counts
                .completion_tokens_details
                .and_then(|details| details.reasoning_tokens),
        }
    }
}

/// The state of one answer.
#[derive(Debug, Default)]
pub(crate) struct ChatReader {
    has_begun: bool,
    finish: Option<Finish>,
    has_calls: bool,
    usage: Usage,
    is_over: bool,
}

impl ChatReader {
    fn read(&mut self, json: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        let document: Document<'_> = read_json(json)?;
        if document.error.is_some() {
            let error = super::read_error(200, json).ok_or(Stop::Malformed)?;
            self.is_over = true;
            tell(Event::Error(error));
            return Ok(());
        }
        if !std::mem::replace(&mut self.has_begun, true) {
            let text = |text: &'_ Option<Text<'_>>| {
                text.as_ref().map_or(String::new(), |t| t.0.to_string())
            };
            let (id, model) = (text(&document.id), text(&document.model));
            tell(Event::Begin {
                id: &id,
                model: &model,
            });
        }
        if let Some(counts) = document.usage {
            self.usage = counts.into();
        }
        let choices = document.choices.into_iter().flatten();
        for choice in choices.filter(|choice| choice.index == 0) {
            if let Some(delta) = &choice.delta {
                self.delta(delta, tell);
            }
            if let Some(Text(reason)) = &choice.finish_reason {
                self.finish = Some(match (&**reason, &choice.stop_reason) {
                    ("length", _) => Finish::Length,
                    ("tool_calls" | "function_call", _) => Finish::ToolCalls,
                    ("content_filter", _) => Finish::Refused,
                    // Of a tool that was chosen by name engines say `stop`.
                    _ if self.has_calls => Finish::ToolCalls,
                    (_, Some(Stopped::At(Text(sequence)))) => {
                        Finish::StopSequence(Some(sequence.to_string()))
                    }
                    _ => Finish::Stop,
                });
            }
        }
        Ok(())
    }

    fn delta(&mut self, delta: &Message<'_>, tell: &mut dyn FnMut(Event<'_>)) {
        let said = |text: &Option<Text<'_>>| text.as_ref().is_some_and(|text| !text.0.is_empty());
        for thought in [&delta.reasoning_content, &delta.reasoning] {
            // Some engines say it under both names.
            if let Some(Text(text)) = thought.as_ref().filter(|_| said(thought)) {
                tell(Event::Thinking(text));
                break;
            }
        }
        if let Some(Text(text)) = delta.content.as_ref().filter(|_| said(&delta.content)) {
            tell(Event::Text(text));
        }
        if let Some(Text(text)) = delta.refusal.as_ref().filter(|_| said(&delta.refusal)) {
            tell(Event::Refusal(text));
        }
        let calls = delta.tool_calls.iter().flatten();
        for (at, call) in (0..).zip(calls) {
            self.has_calls = true;
            let nth = call.index.unwrap_or(at);
            let name = call
                .function
                .as_ref()
                .and_then(|function| function.name.as_ref());
            if let Some(Text(name)) = name.filter(|name| !name.0.is_empty()) {
                let signature = call
                    .extra_content
                    .as_ref()
                    .and_then(|extra| extra.google.as_ref());
                let signature = signature.and_then(|google| google.thought_signature.as_ref());
                tell(Event::Call {
                    nth,
                    id: call.id.as_ref().map_or("", |id| &id.0),
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
        if self.is_over {
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
        if self.is_over {
            Ok(())
        } else {
            Err(Stop::Malformed)
        }
    }

    fn over(&mut self, tell: &mut dyn FnMut(Event<'_>)) {
        // Without a reason it is no end, and no success is made up.
        if !self.is_over
            && let Some(finish) = self.finish.take()
        {
            self.is_over = true;
            tell(Event::End(finish, self.usage));
        }
    }
}
