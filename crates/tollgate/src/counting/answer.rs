//! The text of an answer, found in what was forwarded and counted as it comes.
//!
//! Chat and text completions, the Responses API and Anthropic's messages are told apart by their own members, in one
//! document or in events.
//! Invariant: any way to cut an answer into batches gives the same count; what cannot be read is never counted as
//! nothing.
//! Not here: usage as it was reported (`wire::usage`), what the members look like (`members`).

mod lines;
mod members;

use std::sync::Arc;

use tokens::{Count, Counter, Ending, Lane, OutputCount, OutputCounter};

use super::Missed;
use lines::Lines;
use members::{Choice, Delta, Document, Item, Message, Part};

/// An answer on its way.
pub(super) struct Answer {
    form: Form,
    text: Text,
    longest: usize,
}

enum Form {
    Document(Vec<u8>),
    Events(Lines),
}

/// What of it is counted.
struct Text {
    counter: OutputCounter<Arc<Counter>>,
    /// Choices that the model itself ended.
    stops: u64,
    was_cut: bool,
    /// Plain text, without the framing of a conversation.
    is_plain: bool,
    missed: Option<Missed>,
}

/// What an answer came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Output {
    /// All of it: what is held against the engine's report.
    pub(super) count: Count,
    /// Tokens of reasoning that was shown.
    pub(super) reasoning: u64,
}

impl Answer {
    pub(super) fn new(counter: Arc<Counter>, streamed: bool, longest: usize) -> Self {
        Self {
            form: if streamed {
                Form::Events(Lines::default())
            } else {
                Form::Document(Vec::new())
            },
            text: Text {
                counter: counter.output_of(),
                stops: 0,
                was_cut: false,
                is_plain: false,
                missed: None,
            },
            longest,
        }
    }

    /// Whether it keeps what it is given to its end.
    pub(super) const fn holds_all(&self) -> bool {
        matches!(self.form, Form::Document(_))
    }

    /// Takes what was forwarded next.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.text.missed.is_some() {
            return;
        }
        let held = match &mut self.form {
            Form::Document(document) => {
                document.extend_from_slice(bytes);
                document.len()
            }
            Form::Events(lines) => {
                let text = &mut self.text;
                lines.push(bytes, |data| text.event(data));
                lines.held()
            }
        };
        if held > self.longest {
            self.text.missed = Some(Missed::Long);
        }
    }

    /// Ends it: `whole` says whether the engine's last byte was forwarded.
    pub(super) fn finish(mut self, whole: bool) -> Result<Output, Missed> {
        match self.form {
            Form::Document(document) if whole => self.text.document(&document),
            // Half a document says little, and reads as nothing.
            Form::Document(_) => return Err(Missed::Unreadable),
            Form::Events(mut lines) => {
                // An event that the end cut off is still read, if it is whole JSON.
                if let Some(data) = lines.rest()
                    && let Ok(document) = serde_json::from_slice(data)
                {
                    self.text.take(document);
                }
            }
        }
        self.text.finish()
    }
}

impl Text {
    fn event(&mut self, data: &[u8]) {
        if data.trim_ascii() != b"[DONE]" {
            self.document(data);
        }
    }

    fn document(&mut self, json: &[u8]) {
        match serde_json::from_slice(json) {
            Ok(document) => self.take(document),
            Err(_) => self.missed = Some(Missed::Unreadable),
        }
    }

    fn take(&mut self, document: Document) {
        for choice in document.choices.into_iter().flatten() {
            self.choice(choice);
        }
        let place = document.output_index.or(document.index).unwrap_or(0);
        match document.delta {
            Some(Delta::Text(text)) => self.response_delta(document.kind.as_deref(), place, &text),
            Some(Delta::Fields(fields)) => {
                self.say(0, Lane::Content, fields.text);
                self.say(0, Lane::Reasoning, fields.thinking);
                self.say(0, Lane::CallArguments(place), fields.partial_json);
                self.ended(fields.stop_reason.as_deref());
            }
            None => {}
        }
        // A call's name stands where it begins, the text in what follows.
        let begun = document.item.or(document.content_block);
        if let Some(item) = begun
            && document.kind.as_deref() != Some("response.output_item.done")
        {
            self.say(0, Lane::CallName(place), item.name);
        }
        for (item, place) in document.output.into_iter().flatten().zip(0..) {
            self.item(item, place);
        }
        for (item, place) in document.content.into_iter().flatten().zip(0..) {
            self.item(item, place);
        }
        let response = document.response.and_then(|response| response.status);
        self.ended(document.stop_reason.as_deref());
        self.ended(response.or(document.status).as_deref());
    }

    fn choice(&mut self, choice: Choice) {
        let index = choice.index.unwrap_or(0);
        if let Some(text) = choice.text {
            self.is_plain = true;
            self.say(index, Lane::Content, Some(text));
        }
        if let Some(message) = choice.delta.or(choice.message) {
            self.message(index, message);
        }
        self.ended(choice.finish_reason.as_deref());
    }

    fn message(&mut self, choice: u32, message: Message) {
        self.say(choice, Lane::Content, message.content);
        self.say(choice, Lane::Content, message.refusal);
        // Engines that renamed the member send both for a while.
        let reasoning = message.reasoning.or(message.reasoning_content);
        self.say(choice, Lane::Reasoning, reasoning);
        for (call, place) in message.tool_calls.into_iter().flatten().zip(0..) {
            let place = call.index.unwrap_or(place);
            let function = call.function.unwrap_or_default();
            self.say(choice, Lane::CallName(place), function.name);
            self.say(choice, Lane::CallArguments(place), function.arguments);
        }
    }

    fn response_delta(&mut self, kind: Option<&str>, place: u32, text: &str) {
        let lane = match kind {
            Some("response.output_text.delta" | "response.refusal.delta") => Lane::Content,
            Some("response.reasoning_text.delta") => Lane::Reasoning,
            Some("response.function_call_arguments.delta") => Lane::CallArguments(place),
            // A summary is not what the model wrote first.
            _ => return,
        };
        self.say(0, lane, Some(text.to_owned()));
    }

    /// One of a document's items: of a response, or a block of a message.
    fn item(&mut self, item: Item, place: u32) {
        let is_reasoning = item.kind.as_deref() == Some("reasoning");
        let lane = if is_reasoning {
            Lane::Reasoning
        } else {
            Lane::Content
        };
        for Part { text, refusal } in item.content.into_iter().flatten() {
            self.say(0, lane, text.or(refusal));
        }
        self.say(0, Lane::Content, item.text);
        self.say(0, Lane::Reasoning, item.thinking);
        self.say(0, Lane::CallName(place), item.name);
        let input = item.input.map(|input| input.to_string());
        self.say(0, Lane::CallArguments(place), item.arguments.or(input));
    }

    fn say(&mut self, choice: u32, lane: Lane, text: Option<String>) {
        if let Some(text) = text
            && self.counter.push(choice, lane, &text).is_err()
        {
            self.missed = Some(Missed::Unreadable);
        }
    }

    /// Why a choice ended, in any dialect's word.
    fn ended(&mut self, why: Option<&str>) {
        match why {
            None | Some("in_progress" | "queued") => {}
            Some("length" | "max_tokens" | "incomplete" | "failed" | "cancelled") => {
                self.was_cut = true;
            }
            Some(_) => self.stops += 1,
        }
    }

    fn finish(self) -> Result<Output, Missed> {
        if let Some(missed) = self.missed {
            return Err(missed);
        }
        let ending = if self.stops > 0 && !self.was_cut {
            Ending::Stop
        } else {
            Ending::Cut
        };
        let counted = self.counter.finish(ending);
        let counted = counted.map_err(|_| Missed::Unreadable)?;
        let framing = if self.is_plain {
            self.stops
        } else {
            counted.framing
        };
        let counted = OutputCount { framing, ..counted };
        Ok(Output {
            count: counted.total(),
            reasoning: counted.reasoning,
        })
    }
}

#[cfg(test)]
mod tests;
