//! The text of an answer, found in what was forwarded, piece by piece as it comes.
//!
//! Chat and text completions, the Responses API and Anthropic's messages are told apart by their own members, in one
//! document or in events.
//! Invariant: any way to cut an answer into chunks gives the same text in each lane; what cannot be read is a
//! fault, never an answer without text.
//! Not here: usage as it was reported (`usage`), what the members look like (`members`), tokens (the host).

mod alike;
mod members;

use crate::sse::{DataReader, holds_more};
use alike::Alike;
use members::{Choice, Delta, Document, Function, Item, Message, Part};

/// Where a piece of text belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// What the model said.
    Content,
    /// Content of a text completion, which has none of a conversation's framing.
    Plain,
    /// Reasoning that was shown.
    Reasoning,
    /// Name of the tool call with this index.
    CallName(u32),
    /// Arguments of the tool call with this index.
    CallArguments(u32),
}

/// What an answer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// The next text of a lane of the choice with this index.
    Text(u32, Lane, &'a str),
    /// A choice ended: the model itself stopped.
    Stopped,
    /// A choice ended: a cap or a fault cut it off.
    Cut,
}

/// Why an answer has no text that can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It, or one event of it, is longer than the bound.
    TooLong,
    /// It is no answer of any dialect.
    Unreadable,
}

/// Reads one answer.
///
/// ```
/// use wire::answer::{Lane, Piece, Reader};
/// let mut reader = Reader::new(true, 1024);
/// let mut text = String::new();
/// let mut take = |piece: Piece<'_>| {
///     if let Piece::Text(0, Lane::Content, more) = piece {
///         text.push_str(more);
///     }
/// };
/// reader.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"He", &mut take);
/// reader.push(b"llo\"}}]}\n\n", &mut take);
/// assert_eq!(reader.finish(true, &mut take), Ok(()));
/// assert_eq!(text, "Hello");
/// ```
#[derive(Debug)]
pub struct Reader {
    form: Form,
    longest: usize,
    fault: Option<Fault>,
}

#[derive(Debug)]
enum Form {
    Document(Vec<u8>),
    Events(DataReader, Alike),
}

impl Reader {
    /// A reader for one answer; of no document, and no event, more than `longest` bytes are kept.
    pub const fn new(streamed: bool, longest: usize) -> Self {
        Self {
            form: if streamed {
                Form::Events(DataReader::new(), Alike::new())
            } else {
                Form::Document(Vec::new())
            },
            longest,
            fault: None,
        }
    }

    /// Whether it keeps what it is given to its end.
    pub const fn holds_all(&self) -> bool {
        matches!(self.form, Form::Document(_))
    }

    /// Takes what was forwarded next.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(Piece<'_>)) {
        if self.fault.is_some() {
            return;
        }
        let held = match &mut self.form {
            Form::Document(document) => {
                document.extend_from_slice(bytes);
                document.len()
            }
            Form::Events(events, alike) => {
                let fault = &mut self.fault;
                events.push(bytes, |data| {
                    if event(data, alike, &mut take).is_none() {
                        *fault = Some(Fault::Unreadable);
                    }
                });
                events.held()
            }
        };
        if held > self.longest {
            self.fault = Some(Fault::TooLong);
        }
    }

    /// Ends it: `whole` says whether the engine's last byte was forwarded.
    ///
    /// # Errors
    /// When what was read is not all of its text.
    pub fn finish(self, whole: bool, mut take: impl FnMut(Piece<'_>)) -> Result<(), Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        match self.form {
            Form::Document(bytes) if whole => document(&bytes, &mut take).ok_or(Fault::Unreadable),
            // Half a document says little, and reads as nothing.
            Form::Document(_) => Err(Fault::Unreadable),
            Form::Events(events, _) => {
                // An event that the end cut off is still read, if it is whole JSON.
                if let Some(data) = events.unfinished() {
                    let _is_whole = document(&data, &mut take);
                }
                Ok(())
            }
        }
    }
}

/// Tells of an event's text; `None` where it cannot be read, or is not all that the event holds of an answer.
fn event(data: &[u8], alike: &mut Alike, take: &mut impl FnMut(Piece<'_>)) -> Option<()> {
    if data.trim_ascii() == b"[DONE]" || alike.read(data, take).is_some() {
        return Some(());
    }
    let (mut pieces, mut text, mut told) = (0, None, 0);
    document(data, &mut |piece| {
        pieces += 1;
        if let Piece::Text(choice, lane, said) = piece {
            told += said.len() as u64;
            text = alike::place(data, said).map(|place| (choice, lane, place));
        }
        take(piece);
    })?;
    if holds_more(data, told) {
        return None;
    }
    if let (1, Some((choice, lane, place))) = (pieces, text) {
        alike.learn(data, choice, lane, place);
    }
    Some(())
}

/// Tells of a document's text, or of an event's; `None` where it cannot be read.
fn document(json: &[u8], take: &mut impl FnMut(Piece<'_>)) -> Option<()> {
    let document: Document<'_> = serde_json::from_slice(json).ok()?;
    for choice in document.choices.iter().flatten() {
        of_choice(choice, take);
    }
    let kind = document.kind.as_deref();
    let place = document.output_index.or(document.index).unwrap_or(0);
    match &document.delta {
        Some(Delta::Text(text)) => {
            if let Some(lane) = lane_of_delta(kind, place) {
                take(Piece::Text(0, lane, text));
            }
        }
        Some(Delta::Fields(fields)) => {
            say(0, Lane::Content, fields.text.as_deref(), take);
            say(0, Lane::Reasoning, fields.thinking.as_deref(), take);
            say(
                0,
                Lane::CallArguments(place),
                fields.partial_json.as_deref(),
                take,
            );
            ended(fields.stop_reason.as_deref(), take);
        }
        None => {}
    }
    // A call's name stands where it begins, the text in what follows.
    let begun = document.item.as_ref().or(document.content_block.as_ref());
    if let Some(item) = begun
        && kind != Some("response.output_item.done")
    {
        say(0, Lane::CallName(place), item.name.as_deref(), take);
    }
    for items in [&document.output, &document.content] {
        for (item, place) in items.iter().flatten().zip(0..) {
            of_item(item, place, take);
        }
    }
    ended(document.stop_reason.as_deref(), take);
    let response = document.response.and_then(|response| response.status);
    ended(response.or(document.status).as_deref(), take);
    Some(())
}

fn of_choice(choice: &Choice<'_>, take: &mut impl FnMut(Piece<'_>)) {
    let index = choice.index.unwrap_or(0);
    say(index, Lane::Plain, choice.text.as_deref(), take);
    if let Some(message) = choice.delta.as_ref().or(choice.message.as_ref()) {
        of_message(index, message, take);
    }
    ended(choice.finish_reason.as_deref(), take);
}

fn of_message(choice: u32, message: &Message<'_>, take: &mut impl FnMut(Piece<'_>)) {
    say(choice, Lane::Content, message.content.as_deref(), take);
    say(choice, Lane::Content, message.refusal.as_deref(), take);
    // Engines that renamed the member send both for a while.
    let reasoning = message.reasoning.as_deref();
    let reasoning = reasoning.or(message.reasoning_content.as_deref());
    say(choice, Lane::Reasoning, reasoning, take);
    let calls = message.tool_calls.iter().flatten().zip(0..);
    let calls = calls.map(|(call, place)| {
        let function = call.function.as_ref().or(call.custom.as_ref());
        (call.index.unwrap_or(place), function)
    });
    for (place, function) in calls.chain([(0, message.function_call.as_ref())]) {
        if let Some(Function { name, arguments }) = function {
            say(choice, Lane::CallName(place), name.as_deref(), take);
            let arguments = arguments.as_deref();
            say(choice, Lane::CallArguments(place), arguments, take);
        }
    }
}

/// Where an event of the Responses API has its text.
fn lane_of_delta(kind: Option<&str>, place: u32) -> Option<Lane> {
    match kind? {
        "response.output_text.delta" | "response.refusal.delta" => Some(Lane::Content),
        "response.reasoning_text.delta" => Some(Lane::Reasoning),
        "response.function_call_arguments.delta"
        | "response.mcp_call_arguments.delta"
        | "response.custom_tool_call_input.delta" => Some(Lane::CallArguments(place)),
        // A summary is not what the model wrote first.
        _ => None,
    }
}

/// One of a document's items: of a response, or a block of a message.
fn of_item(item: &Item<'_>, place: u32, take: &mut impl FnMut(Piece<'_>)) {
    let lane = if item.kind.as_deref() == Some("reasoning") {
        Lane::Reasoning
    } else {
        Lane::Content
    };
    for Part { text, refusal } in item.content.iter().flatten() {
        say(0, lane, text.as_deref().or(refusal.as_deref()), take);
    }
    say(0, Lane::Content, item.text.as_deref(), take);
    say(0, Lane::Reasoning, item.thinking.as_deref(), take);
    say(0, Lane::CallName(place), item.name.as_deref(), take);
    let input = item.input.as_ref().map(|input| input.get());
    let arguments = item.arguments.as_deref().or(input);
    say(0, Lane::CallArguments(place), arguments, take);
}

fn say(choice: u32, lane: Lane, text: Option<&str>, take: &mut impl FnMut(Piece<'_>)) {
    if let Some(text) = text {
        take(Piece::Text(choice, lane, text));
    }
}

/// Why a choice ended, in any dialect's word.
fn ended(why: Option<&str>, take: &mut impl FnMut(Piece<'_>)) {
    match why {
        None | Some("in_progress" | "queued") => {}
        Some("length" | "max_tokens" | "incomplete" | "failed" | "cancelled") => take(Piece::Cut),
        Some(_) => take(Piece::Stopped),
    }
}

#[cfg(test)]
mod tests;
