//! Reads an answer of `Converse`, and the binary events of `ConverseStream`
//! (<https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html>).
//!
//! An answer names neither itself nor its model: its head and its call do. The usage of a stream comes after its end was told; a stream
//! that is over without it is whole all the same.
//! Not here: errors with a status (`super::read_error`).

use serde::Deserialize;
use serde_json::value::RawValue;
use wire::eventstream::{Kind, Message};
use wire::filter::Stop;

use crate::answer::{Ended, Error, Event, Finish, Reader, Tail, Usage};
use crate::raw::{Text, read_json};
use crate::report::{Count, List, Told, Word};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(borrow)]
    output: Option<Output<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(default)]
    additional_model_response_fields: Told<Fields>,
    #[serde(default)]
    usage: Told<Counts>,
}

#[derive(Deserialize)]
struct Output<'a> {
    #[serde(borrow)]
    message: Option<Said<'a>>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    content: Option<Vec<Block<'a>>>,
}

/// A block of an answer, or of a stream its beginning.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Block<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    tool_use: Option<ToolUse<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Reasoning<'a>>,
    #[serde(borrow)]
    citations_content: Option<Said<'a>>,
    image: Option<serde::de::IgnoredAny>,
    audio: Option<serde::de::IgnoredAny>,
    video: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolUse<'a> {
    #[serde(borrow)]
    tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    /// Of a tool that the provider runs.
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
}

/// What was thought, whole or in pieces.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Reasoning<'a> {
    #[serde(borrow)]
    reasoning_text: Option<Thought<'a>>,
    #[serde(borrow)]
    redacted_content: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Thought<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct End<'a> {
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
    #[serde(default)]
    additional_model_response_fields: Told<Fields>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Fields {
    stop_sequence: Word,
}

/// An event of a block: it begins, has more, or is over.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfBlock<'a> {
    #[serde(default)]
    content_block_index: u32,
    #[serde(borrow)]
    start: Option<Block<'a>>,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    tool_use: Option<Input<'a>>,
    #[serde(borrow)]
    reasoning_content: Option<Reasoning<'a>>,
    image: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow)]
    input: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Reported {
    #[serde(default)]
    usage: Told<Counts>,
}

#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
struct Counts {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_write_input_tokens: Count,
    cache_details: List<Told<Written>>,
}

/// What was written to caches, by how long it is kept.
#[derive(Deserialize, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
struct Written {
    ttl: Word,
    input_tokens: Count,
}

impl Counts {
    fn usage(self) -> Usage {
        // `inputTokens` leaves out what the cache served and stored.
        let (read, written) = (
            self.cache_read_input_tokens.0,
            self.cache_write_input_tokens.0,
        );
        let cached = [read, written].into_iter().flatten();
        let cached = cached.fold(0, u64::saturating_add);
        let details = self.cache_details.0.into_iter();
        let mut details = details.filter_map(|detail| detail.0);
        let hour = details.find(|detail| detail.ttl.0.as_deref() == Some("1h"));
        Usage {
            prompt: self
                .input_tokens
                .0
                .map(|prompt| prompt.saturating_add(cached)),
            cache_read: read,
            cache_written: written,
            cache_written_1h: hour.and_then(|hour| hour.input_tokens.0),
            completion: self.output_tokens.0,
            reasoning: None,
        }
    }
}

/// The state of one answer.
#[derive(Debug)]
pub(crate) struct ConverseReader {
    id: String,
    model: String,
    tail: Tail,
    /// A call has begun of whose input nothing has come.
    has_bare_call: bool,
    /// The block of a tool that the provider runs.
    passed_over: Option<u32>,
}

fn text<'t>(text: &'t Option<Text<'_>>) -> &'t str {
    text.as_ref().map_or("", |text| &text.0)
}

/// A text that says something.
fn some<'t>(said: &'t Option<Text<'_>>) -> Option<&'t str> {
    Some(text(said)).filter(|text| !text.is_empty())
}

impl ConverseReader {
    /// Of the answer of this id, by this model.
    pub(crate) fn new(id: String, model: &str) -> Self {
        Self {
            id,
            model: model.to_owned(),
            tail: Tail::default(),
            has_bare_call: false,
            passed_over: None,
        }
    }

    fn begin(&self, tell: &mut dyn FnMut(Event<'_>)) {
        tell(Event::Begin {
            id: &self.id,
            model: &self.model,
        });
    }

    fn event(
        &mut self,
        name: &str,
        payload: &[u8],
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Stop> {
        match name {
            "messageStart" => self.begin(tell),
            "contentBlockStart" => {
                let event: OfBlock<'_> = read_json(payload)?;
                if let Some(block) = &event.start {
                    self.block(event.content_block_index, block, false, tell)?;
                }
            }
            "contentBlockDelta" => {
                let event: OfBlock<'_> = read_json(payload)?;
                let delta = event.delta.as_ref().ok_or(Stop::Malformed)?;
                self.delta(event.content_block_index, delta, tell)?;
            }
            // A call without arguments has no delta, and clients of other dialects read a document there.
            "contentBlockStop" if std::mem::take(&mut self.has_bare_call) => {
                let event: OfBlock<'_> = read_json(payload)?;
                tell(Event::Arguments {
                    nth: event.content_block_index,
                    json: "{}",
                });
            }
            "messageStop" => {
                let end: End<'_> = read_json(payload)?;
                self.finished(&end.stop_reason, end.additional_model_response_fields);
            }
            "metadata" => {
                let reported: Reported = read_json(payload)?;
                self.end(reported.usage.0.unwrap_or_default().usage(), tell);
            }
            // What is to come.
            _ => {}
        }
        Ok(())
    }

    fn block(
        &mut self,
        nth: u32,
        block: &Block<'_>,
        is_whole: bool,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Stop> {
        if block.image.is_some() || block.audio.is_some() || block.video.is_some() {
            // Nobody could ask for an image or sound, and an answer without it is another one.
            return Err(Stop::Malformed);
        }
        let cited = block.citations_content.iter();
        let cited = cited.flat_map(|cited| cited.content.iter().flatten());
        let texts = [&block.text].into_iter();
        for said in texts.chain(cited.map(|cited| &cited.text)) {
            some(said).map(Event::Text).into_iter().for_each(&mut *tell);
        }
        if let Some(reasoning) = &block.reasoning_content {
            thinking(reasoning, tell);
        }
        match &block.tool_use {
            Some(tool) if tool.kind.is_some() => self.passed_over = Some(nth),
            Some(tool) => self.call(nth, tool, is_whole, tell),
            None => {}
        }
        Ok(())
    }

    fn call(
        &mut self,
        nth: u32,
        tool: &ToolUse<'_>,
        is_whole: bool,
        tell: &mut dyn FnMut(Event<'_>),
    ) {
        tell(Event::Call {
            nth,
            id: text(&tool.tool_use_id),
            name: text(&tool.name),
            signature: None,
        });
        // In a stream the input comes in what follows.
        self.has_bare_call = !is_whole;
        if is_whole {
            let json = tool.input.map_or("{}", RawValue::get);
            tell(Event::Arguments { nth, json });
        }
    }

    fn delta(
        &mut self,
        nth: u32,
        delta: &Delta<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Stop> {
        if delta.image.is_some() {
            return Err(Stop::Malformed);
        }
        some(&delta.text)
            .map(Event::Text)
            .into_iter()
            .for_each(&mut *tell);
        if let Some(reasoning) = &delta.reasoning_content {
            thinking(reasoning, tell);
        }
        let input = delta.tool_use.as_ref().map(|tool| text(&tool.input));
        let is_passed_over = self.passed_over == Some(nth);
        if let Some(json) = input.filter(|json| !json.is_empty() && !is_passed_over) {
            self.has_bare_call = false;
            tell(Event::Arguments { nth, json });
        }
        Ok(())
    }

    /// The reasons of <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_MessageStopEvent.html>.
    fn finished(&mut self, reason: &Option<Text<'_>>, fields: Told<Fields>) {
        let finish = match text(reason) {
            "" => return,
            "end_turn" => Finish::Stop,
            "max_tokens" | "model_context_window_exceeded" => Finish::Length,
            "tool_use" => Finish::ToolCalls,
            "stop_sequence" => {
                Finish::StopSequence(fields.0.and_then(|fields| fields.stop_sequence.0))
            }
            "guardrail_intervened" | "content_filtered" => Finish::Refused,
            // Output that the model did not get right, and what is to come: no success is made of it.
            other => {
                self.tail.ends(Ended::otherwise(other, ""));
                return;
            }
        };
        self.tail.ends(Ended::Finished(finish));
    }

    /// Tells the end, where a reason for it was told.
    fn end(&mut self, usage: Usage, tell: &mut dyn FnMut(Event<'_>)) {
        self.tail.tell(usage, tell);
    }
}

fn thinking(reasoning: &Reasoning<'_>, tell: &mut dyn FnMut(Event<'_>)) {
    let (text, signature) = match &reasoning.reasoning_text {
        Some(whole) => (&whole.text, &whole.signature),
        None => (&reasoning.text, &reasoning.signature),
    };
    let told = [
        some(text).map(Event::Thinking),
        some(signature).map(Event::Signature),
        some(&reasoning.redacted_content).map(Event::Redacted),
    ];
    told.into_iter().flatten().for_each(tell);
}

/// A failure in the middle of a stream.
fn failure(kind: &str, payload: &[u8]) -> Error {
    let read = super::read_error(0, payload);
    let error = read.unwrap_or_else(|| Error::of(0, format!("the backend failed with {kind}")));
    super::named(error, kind)
}

impl Reader for ConverseReader {
    fn event(&mut self, _: &[u8], _: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        // Its events are binary.
        Err(Stop::Malformed)
    }

    fn message(
        &mut self,
        message: Message<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Stop> {
        if self.tail.is_over() {
            return Ok(());
        }
        let error = match message.kind {
            Kind::Event(name) => return self.event(name, message.payload, tell),
            Kind::Exception(kind) => failure(kind, message.payload),
            Kind::Error { code, message } => super::named(Error::of(0, message), code),
        };
        self.tail.close();
        tell(Event::Error(error));
        Ok(())
    }

    fn document(&mut self, json: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        let document: Document<'_> = read_json(json)?;
        self.begin(tell);
        let message = document.output.as_ref();
        let message = message.and_then(|output| output.message.as_ref());
        let blocks = message.and_then(|message| message.content.as_ref());
        for (nth, block) in (0..).zip(blocks.into_iter().flatten()) {
            self.block(nth, block, true, tell)?;
        }
        let fields = document.additional_model_response_fields;
        self.finished(&document.stop_reason, fields);
        self.end(document.usage.0.unwrap_or_default().usage(), tell);
        self.tail.whole()
    }

    fn over(&mut self, tell: &mut dyn FnMut(Event<'_>)) {
        self.end(Usage::default(), tell);
    }
}
