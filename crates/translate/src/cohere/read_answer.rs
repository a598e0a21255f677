//! Reads an answer of Cohere's chat, streamed or whole.
//!
//! Invariant: an answer without a reason to stop is no answer. What it cites is left: the text says it, and no other dialect has a place.
//! Not here: its errors with a status (`super::read_error`).

use serde::Deserialize;
use serde_json::value::RawValue;
use wire::filter::Stop;

use crate::answer::{Ended, Event, Finish, Reader, Tail, Usage};
use crate::raw::{Text, read_json};
use crate::report::{Count, Told};

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Said<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    #[serde(default)]
    usage: Told<Used>,
}

#[derive(Deserialize)]
struct Streamed<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(default)]
    index: u32,
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    message: Option<Said<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Text<'a>>,
    #[serde(borrow)]
    error: Option<Text<'a>>,
    #[serde(default)]
    usage: Told<Used>,
}

/// A message, or a piece of one, where each list is one item.
#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_plan: Option<Text<'a>>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Called<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    function: Option<Function<'a>>,
}

#[derive(Deserialize)]
struct Function<'a> {
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    arguments: Option<Text<'a>>,
}

#[derive(Deserialize, Clone, Copy, Default, Debug)]
#[serde(default)]
struct Used {
    billed_units: Told<Units>,
    tokens: Told<Units>,
    cached_tokens: Count,
}

#[derive(Deserialize, Clone, Copy, Default, Debug)]
#[serde(default)]
struct Units {
    input_tokens: Count,
    output_tokens: Count,
}

impl Used {
    /// What was read and made counts before what of it is billed.
    fn usage(self) -> Usage {
        let (read, billed) = (self.tokens.0, self.billed_units.0);
        let (read, billed) = (read.unwrap_or_default(), billed.unwrap_or_default());
        Usage {
            prompt: read.input_tokens.0.or(billed.input_tokens.0),
            completion: read.output_tokens.0.or(billed.output_tokens.0),
            cache_read: self.cached_tokens.0,
            ..Usage::default()
        }
    }
}

/// The state of one answer.
#[derive(Debug)]
pub(crate) struct ChatReader {
    /// The model that was asked for: an answer does not tell it.
    model: String,
    usage: Used,
    tail: Tail,
}

fn text<'t>(text: &'t Option<Text<'_>>) -> &'t str {
    text.as_ref().map_or("", |text| &text.0)
}

/// Tells a text that says something.
fn told<'t>(
    said: &'t Option<Text<'_>>,
    event: fn(&'t str) -> Event<'t>,
    tell: &mut dyn FnMut(Event<'_>),
) {
    let said = text(said);
    if !said.is_empty() {
        tell(event(said));
    }
}

/// The items of a list, or the one that stands alone.
fn items<'a, T: Deserialize<'a>>(json: Option<&'a RawValue>) -> Result<Vec<T>, Stop> {
    match json.map(RawValue::get) {
        None | Some("null") => Ok(Vec::new()),
        Some(list) if list.starts_with('[') => read_json(list.as_bytes()),
        Some(one) => Ok(vec![read_json(one.as_bytes())?]),
    }
}

impl ChatReader {
    pub(crate) fn new(model: &str) -> Self {
        Self {
            model: model.to_owned(),
            usage: Used::default(),
            tail: Tail::default(),
        }
    }

    fn said(
        &mut self,
        first: u32,
        said: &Said<'_>,
        tell: &mut dyn FnMut(Event<'_>),
    ) -> Result<(), Stop> {
        told(&said.tool_plan, Event::Thinking, tell);
        for part in items::<Part<'_>>(said.content)? {
            told(&part.thinking, Event::Thinking, tell);
            told(&part.text, Event::Text, tell);
        }
        for (nth, called) in (first..).zip(items::<Called<'_>>(said.tool_calls)?) {
            let function = called.function.as_ref();
            let name = function.map_or("", |function| text(&function.name));
            let id = text(&called.id);
            if !name.is_empty() || !id.is_empty() {
                tell(Event::Call {
                    nth,
                    id,
                    name,
                    signature: None,
                });
            }
            let json = function.map_or("", |function| text(&function.arguments));
            if !json.is_empty() {
                tell(Event::Arguments { nth, json });
            }
        }
        Ok(())
    }

    /// The reasons of the documentation's list.
    fn finished(&mut self, reason: &Option<Text<'_>>, error: &Option<Text<'_>>) {
        self.tail.ends(match text(reason) {
            "" => return,
            "COMPLETE" => Ended::Finished(Finish::Stop),
            "STOP_SEQUENCE" => Ended::Finished(Finish::StopSequence(None)),
            "MAX_TOKENS" => Ended::Finished(Finish::Length),
            "TOOL_CALL" => Ended::Finished(Finish::ToolCalls),
            other => Ended::otherwise(other, text(error)),
        });
    }
}

impl Reader for ChatReader {
    fn event(&mut self, data: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        if self.tail.is_over() || data == b"[DONE]" {
            return Ok(());
        }
        let event: Streamed<'_> = read_json(data)?;
        let said = event
            .delta
            .as_ref()
            .and_then(|delta| delta.message.as_ref());
        match (text(&event.kind), said) {
            ("message-start", _) => {
                let (id, model) = (text(&event.id), &*self.model);
                tell(Event::Begin { id, model });
            }
            ("message-end", _) => {
                let delta = event.delta.as_ref().ok_or(Stop::Malformed)?;
                self.usage = delta.usage.0.unwrap_or_default();
                self.finished(&delta.finish_reason, &delta.error);
                self.over(tell);
            }
            (
                "content-start" | "content-delta" | "tool-plan-delta" | "tool-call-start"
                | "tool-call-delta",
                Some(said),
            ) => self.said(event.index, said, tell)?,
            // Ends of parts, what is cited, and what is to come.
            _ => {}
        }
        Ok(())
    }

    fn document(&mut self, json: &[u8], tell: &mut dyn FnMut(Event<'_>)) -> Result<(), Stop> {
        let document: Document<'_> = read_json(json)?;
        let (id, model) = (text(&document.id), &*self.model);
        tell(Event::Begin { id, model });
        if let Some(said) = &document.message {
            self.said(0, said, tell)?;
        }
        self.usage = document.usage.0.unwrap_or_default();
        self.finished(&document.finish_reason, &None);
        self.over(tell);
        self.tail.whole()
    }

    fn over(&mut self, tell: &mut dyn FnMut(Event<'_>)) {
        self.tail.tell(self.usage.usage(), tell);
    }
}
