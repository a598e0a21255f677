//! Reads an answer of the Messages API, streamed or whole.
//!
//! Not here: its errors with a status (`super::read_error`).

mod quick;

use serde::Deserialize;
use serde_json::value::RawValue;
use wire::filter::Stop;
use wire::json::as_text;

use self::quick::{Of, Piece};
use crate::answer::{Ended, Event, Finish, Reader, Tail, Usage};
use crate::raw::{Text, read_json};
use crate::report::{Count, Told};

#[derive(Deserialize, Debug, Default)]
struct Document<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<Vec<Block<'a>>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    stop_sequence: Option<Text<'a>>,
    #[serde(default)]
    usage: Told<Counts>,
    // Of events.
    #[serde(borrow)]
    message: Option<Begun<'a>>,
    #[serde(default)]
    index: u32,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    error: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize, Debug)]
struct Begun<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(default)]
    usage: Told<Counts>,
}

#[derive(Deserialize, Debug, Default)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    data: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize, Debug, Default)]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(borrow)]
    stop_sequence: Option<Text<'a>>,
}

#[derive(Deserialize, Clone, Copy, Default, Debug)]
#[serde(default)]
struct Counts {
    input_tokens: Count,
    cache_read_input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_creation: Told<Written>,
    output_tokens: Count,
}

#[derive(Deserialize, Clone, Copy, Default, Debug)]
#[serde(default)]
struct Written {
    ephemeral_1h_input_tokens: Count,
}

impl Counts {
    /// Takes what a later event says, member by member.
    fn merge(&mut self, later: Self) {
        let take = |into: &mut Count, later: Count| into.0 = later.0.or(into.0);
        take(&mut self.input_tokens, later.input_tokens);
        take(
            &mut self.cache_read_input_tokens,
            later.cache_read_input_tokens,
        );
        take(
            &mut self.cache_creation_input_tokens,
            later.cache_creation_input_tokens,
        );
        self.cache_creation.0 = later.cache_creation.0.or(self.cache_creation.0);
        take(&mut self.output_tokens, later.output_tokens);
    }

    fn usage(self) -> Usage {
        // `input_tokens` leaves out what the cache served and stored.
        let (read, written) = (
            self.cache_read_input_tokens.0,
            self.cache_creation_input_tokens.0,
        );
        let cached = [read, written].into_iter().flatten();
        let cached = cached.fold(0, u64::saturating_add);
        let of_written = self.cache_creation.0.unwrap_or_default();
        Usage {
            prompt: self
                .input_tokens
                .0
                .map(|prompt| prompt.saturating_add(cached)),
            cache_read: read,
            cache_written: written,
            cache_written_1h: of_written.ephemeral_1h_input_tokens.0,
            completion: self.output_tokens.0,
            reasoning: None,
        }
    }
}

/// The state of one answer.
#[derive(Debug, Default)]
pub(crate) struct MessagesReader {
    usage: Counts,
    tail: Tail,
    /// A call has begun of whose input nothing has come.
    has_bare_call: bool,
}

/// Reads what comes to its place, the quick way where that goes.
fn read<'a>(json: &'a [u8], into: &mut Document<'a>) -> Result<(), Stop> {
    let text = as_text(json).ok_or(Stop::Malformed)?;
    if quick::read(text, into).is_none() {
        *into = read_json(json)?;
    }
    Ok(())
}

fn text<'t>(text: &'t Option<Text<'_>>) -> &'t str {
    text.as_ref().map_or("", |text| &text.0)
}

/// A text that says something.
fn some<'t>(said: &'t Option<Text<'_>>) -> Option<&'t str> {
    Some(text(said)).filter(|text| !text.is_empty())
}

impl MessagesReader {
    fn block(
        &mut self,
        nth: u32,
        block: &Block<'_>,
        is_whole: bool,
        tell: &mut dyn FnMut(Event<'_>),
    ) {
        match text(&block.kind) {
            "text" => some(&block.text)
                .map(Event::Text)
                .into_iter()
                .for_each(tell),
            "thinking" => {
                some(&block.thinking)
                    .map(Event::Thinking)
                    .into_iter()
                    .for_each(&mut *tell);
                some(&block.signature)
                    .map(Event::Signature)
                    .into_iter()
                    .for_each(&mut *tell);
            }
            "redacted_thinking" => some(&block.data)
                .map(Event::Redacted)
                .into_iter()
                .for_each(tell),
            "tool_use" => {
                tell(Event::Call {
                    nth,
                    id: text(&block.id),
                    name: text(&block.name),
                    signature: None,
                });
                // In a stream the input begins empty, and comes in what follows.
                let input = block.input.map_or("{}", RawValue::get);
                self.has_bare_call = !is_whole && input == "{}";
                if !self.has_bare_call {
                    tell(Event::Arguments { nth, json: input });
                }
            }
            // What the provider does with tools of its own, which no client of another dialect can have asked for.
            _ => {}
        }
    }

    /// A piece of a block.
    fn piece(&mut self, nth: u32, of: Of, text: &str, tell: &mut dyn FnMut(Event<'_>)) {
        if text.is_empty() {
            return;
        }
        tell(match of {
            Of::Text => Event::Text(text),
            Of::Thinking => Event::Thinking(text),
            Of::Signature => Event::Signature(text),
            Of::Arguments => {
                self.has_bare_call = false;
                Event::Arguments { nth, json: text }
            }
        });
    }

    /// The reasons of <https://docs.anthropic.com/en/api/handling-stop-reasons>.
    fn finished(&mut self, reason: &Option<Text<'_>>, sequence: &Option<Text<'_>>) {
        self.tail.ends(match text(reason) {
            "" => return,
            "end_turn" => Ended::Finished(Finish::Stop),
            "max_tokens" | "model_context_window_exceeded" => Ended::Finished(Finish::Length),
            "tool_use" => Ended::Finished(Finish::ToolCalls),
            "stop_sequence" => {
                let sequence = sequence.as_ref().map(|text| text.0.to_string());
                Ended::Finished(Finish::StopSequence(sequence))
            }
            "refusal" => Ended::Finished(Finish::Refused),
            "pause_turn" => Ended::Finished(Finish::Paused),
            other => Ended::otherwise(other, ""),
        });
    }
}

impl Reader for MessagesReader {
    fn event(&mut self, data: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        if self.tail.is_over() {
            return Ok(());
        }
        let piece = as_text(data).and_then(quick::piece);
        if let Some(Piece { nth, of, text }) = piece {
            self.piece(nth, of, &text.0, tell);
            return Ok(());
        }
        let mut event = Document::default();
        read(data, &mut event)?;
        match text(&event.kind) {
            "message_start" => {
                let begun = event.message.as_ref().ok_or(Stop::Malformed)?;
                self.usage.merge(begun.usage.0.unwrap_or_default());
                tell(Event::Begin {
                    id: text(&begun.id),
                    model: text(&begun.model),
                });
            }
            "content_block_start" => {
                if let Some(block) = &event.content_block {
                    self.block(event.index, block, false, tell);
                }
            }
            "content_block_delta" => {
                let delta = event.delta.as_ref().ok_or(Stop::Malformed)?;
                let nth = event.index;
                for (of, said) in [
                    (Of::Text, &delta.text),
                    (Of::Thinking, &delta.thinking),
                    (Of::Signature, &delta.signature),
                    (Of::Arguments, &delta.partial_json),
                ] {
                    self.piece(nth, of, text(said), tell);
                }
            }
            // A call without arguments has no delta, and clients of other dialects read a document there.
            "content_block_stop" if std::mem::take(&mut self.has_bare_call) => {
                tell(Event::Arguments {
                    nth: event.index,
                    json: "{}",
                });
            }
            "message_delta" => {
                self.usage.merge(event.usage.0.unwrap_or_default());
                if let Some(delta) = &event.delta {
                    self.finished(&delta.stop_reason, &delta.stop_sequence);
                }
            }
            "message_stop" => self.over(tell),
            kind if kind == "error" || event.error.is_some() => {
                let error = super::read_error(200, data).ok_or(Stop::Malformed)?;
                self.tail.close();
                tell(Event::Error(error));
            }
            // `ping`, the end of a block, and what is to come.
            _ => {}
        }
        Ok(())
    }

    fn document(&mut self, json: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        let mut document = Document::default();
        read(json, &mut document)?;
        tell(Event::Begin {
            id: text(&document.id),
            model: text(&document.model),
        });
        for (nth, block) in (0..).zip(document.content.iter().flatten()) {
            self.block(nth, block, true, tell);
        }
        self.usage.merge(document.usage.0.unwrap_or_default());
        self.finished(&document.stop_reason, &document.stop_sequence);
        self.over(tell);
        self.tail.whole()
    }

    fn over(&mut self, tell: &mut dyn FnMut(Event<'_>)) {
        self.tail.tell(self.usage.usage(), tell);
    }
}
