//! Writes a response, streamed or whole.
//!
//! Invariant: an item is added, told and done under one id and place, and the response at the end repeats it: both are written from the
//! same items. Text and reasoning are done before the next item is added; calls whose arguments come interleaved are done at the end, in
//! the order of their places. A call that was cut is told as incomplete by the response alone: clients do what is done.
//! What a stream keeps for its last event is as much as it has told.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use wire::filter::{Keeping, KeptResponse, Stop};

use super::document::{Document, State};
use super::made::{Call, Item, Status, What, What::*};
use super::{made, sealed};
use crate::answer::{Asked, Error, Event, Finish, Usage, Writer};
use crate::json::Json;

/// Ids of providers are no longer; with what is put before and behind, they stay within what OpenAI takes.
const STEM_BYTES: usize = 48;

/// A response that is being written.
#[derive(Debug)]
pub(crate) struct Response {
    asked: Arc<Asked>,
    is_streamed: bool,
    created: u64,
    has_begun: bool,
    /// What is the same in each of its ids.
    stem: String,
    model: String,
    items: Vec<Item>,
    /// The place of each call, by its number.
    calls: HashMap<u32, usize>,
    /// Bytes that have come of calls which are told as a whole.
    untold: usize,
    /// The number of the next event.
    sequence: Cell<u64>,
    /// Bytes of what was told, which the end repeats.
    kept: usize,
}

impl Response {
    pub(crate) fn new(is_streamed: bool, created: u64, asked: &Arc<Asked>) -> Self {
        Self {
            asked: Arc::clone(asked),
            is_streamed,
            created,
            has_begun: false,
            stem: String::new(),
            model: String::new(),
            items: Vec::new(),
            calls: HashMap::new(),
            untold: 0,
            sequence: Cell::new(0),
            kept: 0,
        }
    }

    fn emit(&self, out: &mut Vec<u8>, kind: &str, members: impl FnOnce(&mut Json)) {
        if !self.is_streamed {
            return;
        }
        let sequence = self.sequence.get();
        self.sequence.set(sequence + 1);
        let mut json = Json::with_capacity(256);
        json.outside("event: ");
        json.outside(kind);
        json.outside("\ndata: ");
        json.object(|json| {
            json.say("type", kind);
            json.key("sequence_number").whole(sequence);
            members(json);
        });
        json.outside("\n\n");
        out.append(&mut json.into_bytes());
    }

    /// An event of the item at this place.
    fn emit_of(&self, at: usize, out: &mut Vec<u8>, kind: &str, members: impl FnOnce(&mut Json)) {
        let Some(item) = self.items.get(at) else {
            return;
        };
        self.emit(out, kind, |json| {
            json.say("item_id", &item.id);
            json.key("output_index").whole(at as u64);
            members(json);
        });
    }

    /// An event of the item's last part of content.
    fn emit_part(&self, at: usize, out: &mut Vec<u8>, kind: &str, members: impl FnOnce(&mut Json)) {
        let parts = self.items.get(at).map_or(0, |item| item.what.parts());
        self.emit_of(at, out, kind, |json| {
            json.key("content_index")
                .whole(parts.saturating_sub(1) as u64);
            members(json);
        });
    }

    fn emit_item(&self, at: usize, out: &mut Vec<u8>, kind: &str) {
        let Some(item) = self.items.get(at) else {
            return;
        };
        self.emit(out, kind, |json| {
            json.key("output_index").whole(at as u64);
            json.key("item");
            item.write(json);
        });
    }

    fn emit_response(&self, out: &mut Vec<u8>, kind: &str, state: &State<'_>) {
        self.emit(out, kind, |json| {
            json.key("response");
            self.write(json, state);
        });
    }

    fn begin(&mut self, id: &str, model: &str, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let mut own = ["chatcmpl-", "msg_", "resp_"].into_iter();
        let id = own.find_map(|own| id.strip_prefix(own)).unwrap_or(id);
        let stem = id.chars().take(STEM_BYTES).map(|c| match c {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '_' => c,
            _ => '_',
        });
        self.stem = stem.collect();
        if let Some(keeping) = &self.asked.keeping {
            let id = &*keeping.id;
            id.strip_prefix("resp_")
                .unwrap_or(id)
                .clone_into(&mut self.stem);
        }
        if self.stem.is_empty() {
            self.stem = format!("{:x}", self.created);
        }
        model.clone_into(&mut self.model);
        self.emit_response(out, "response.created", &State::InProgress);
        self.emit_response(out, "response.in_progress", &State::InProgress);
    }

    /// Adds an item, and gives its place.
    fn add(&mut self, what: What, out: &mut Vec<u8>) -> usize {
        self.settle(out);
        let at = self.items.len();
        let id = format!("{}_{}_{at}", what.prefix(), self.stem);
        self.kept += id.len() + size_of::<Item>();
        self.items.push(Item {
            id,
            status: Status::InProgress,
            what,
        });
        self.emit_item(at, out, "response.output_item.added");
        at
    }

    /// Ends the last item, unless it is a call of which more is to come.
    fn settle(&mut self, out: &mut Vec<u8>) {
        let Some(last) = self.items.last() else {
            return;
        };
        if last.status == Status::InProgress && last.what.is_whole() {
            self.done(self.items.len() - 1, Status::Completed, out);
        }
    }

    /// Ends the item at this place.
    fn done(&mut self, at: usize, status: Status, out: &mut Vec<u8>) {
        self.end_part(at, out);
        let by = self.asked.backend;
        let Some(item) = self.items.get_mut(at) else {
            return;
        };
        item.status = status;
        match &mut item.what {
            Message(_) => {}
            Reasoning(reasoning) => reasoning.seal(by),
            Call(call) => {
                self.untold = self.untold.saturating_sub(call.held());
                let more = call.end();
                self.kept += more.len();
                self.end_call(at, &more, out);
            }
        }
        self.emit_item(at, out, "response.output_item.done");
    }

    /// Tells what is still untold of a call, and that it is all.
    fn end_call(&self, at: usize, more: &str, out: &mut Vec<u8>) {
        let Some(Call(call)) = self.items.get(at).map(|item| &item.what) else {
            return;
        };
        let Some((delta, done, member)) = call.events() else {
            return;
        };
        if !more.is_empty() {
            self.emit_of(at, out, delta, |json| json.say("delta", more));
        }
        self.emit_of(at, out, done, |json| json.say(member, &call.said));
    }

    /// Ends the part of content that is open.
    fn end_part(&self, at: usize, out: &mut Vec<u8>) {
        let Some(part) = self.items.get(at).and_then(|item| item.what.last_part()) else {
            return;
        };
        let kind = match part.kind {
            made::TEXT => "response.output_text.done",
            made::REFUSAL => "response.refusal.done",
            _ => "response.reasoning_text.done",
        };
        self.emit_part(at, out, kind, |json| {
            json.say(part.member(), &part.text);
            if part.kind == made::TEXT {
                json.key("logprobs").list(|_| {});
            }
        });
        self.emit_part(at, out, "response.content_part.done", |json| {
            json.key("part");
            part.write(json);
        });
    }

    /// More of a part of this kind of the item at this place, which is begun where another is open.
    fn part(&mut self, at: usize, kind: &'static str, more: &str, out: &mut Vec<u8>) {
        let open = self.items.get(at).and_then(|item| item.what.last_part());
        if open.is_none_or(|part| part.kind != kind) {
            self.end_part(at, out);
            if let Some(item) = self.items.get_mut(at) {
                item.what.add_part(kind);
            }
            self.emit_part(at, out, "response.content_part.added", |json| {
                json.key("part");
                made::Part::of(kind).write(json);
            });
        }
        self.kept += more.len();
        if let Some(part) = self.items.get_mut(at).and_then(|item| item.what.part_mut()) {
            part.text.push_str(more);
        }
        let event = match kind {
            made::TEXT => "response.output_text.delta",
            made::REFUSAL => "response.refusal.delta",
            _ => "response.reasoning_text.delta",
        };
        self.emit_part(at, out, event, |json| {
            json.say("delta", more);
            if kind == made::TEXT {
                json.key("logprobs").list(|_| {});
            }
        });
    }

    fn say(&mut self, kind: &'static str, more: &str, out: &mut Vec<u8>) {
        let at = match self.items.last() {
            Some(Item {
                what: Message(_),
                status: Status::InProgress,
                ..
            }) => self.items.len() - 1,
            _ => self.add(Message(Vec::new()), out),
        };
        self.part(at, kind, more, out);
    }

    /// The reasoning that is open, or a new one.
    fn reasoning(&mut self, is_signature: bool, out: &mut Vec<u8>) -> usize {
        match self.items.last() {
            Some(Item {
                what: Reasoning(reasoning),
                status: Status::InProgress,
                ..
            }) if is_signature || reasoning.signature.is_empty() => self.items.len() - 1,
            _ => self.add(What::reasoning(None), out),
        }
    }

    /// Reasoning of which nothing can be read.
    fn sealed(&mut self, sealed: String, out: &mut Vec<u8>) {
        self.kept += sealed.len();
        let at = self.add(What::reasoning(Some(sealed)), out);
        self.done(at, Status::Completed, out);
    }

    fn call(&mut self, nth: u32, id: &str, name: &str, signature: Option<&str>, out: &mut Vec<u8>) {
        if let Some(signature) = signature {
            let sealed = sealed::of_call(self.asked.backend, id, signature);
            self.sealed(sealed, out);
        }
        let mut aliases = self.asked.aliases.iter();
        let alias = aliases.find(|alias| alias.called == name).cloned();
        self.kept += id.len() + name.len();
        let at = self.add(Call(Box::new(Call::new(id.to_owned(), name, alias))), out);
        self.calls.insert(nth, at);
    }

    /// The call of this number that is not done, and its place.
    fn open_call(&mut self, nth: u32) -> Option<(usize, &mut Call)> {
        let at = *self.calls.get(&nth)?;
        let item = self.items.get_mut(at)?;
        match (&mut item.what, item.status) {
            (Call(call), Status::InProgress) => Some((at, call)),
            _ => None,
        }
    }

    fn arguments(&mut self, nth: u32, more: &str, out: &mut Vec<u8>) -> Result<(), Stop> {
        // What is done is not opened again.
        let (at, call) = self.open_call(nth).ok_or(Stop::Malformed)?;
        let before = call.held();
        let told = call.push(more);
        let (events, held) = (call.events(), call.held());
        self.untold = (self.untold + held).saturating_sub(before);
        self.kept += told.len();
        if let Some((delta, ..)) = events.filter(|_| !told.is_empty()) {
            self.emit_of(at, out, delta, |json| json.say("delta", &told));
        }
        Ok(())
    }

    fn end(&mut self, finish: &Finish, usage: &Usage, out: &mut Vec<u8>) {
        let is_cut = matches!(finish, Finish::Length | Finish::Refused);
        for at in 0..self.items.len() {
            let Some(item) = self.items.get(at) else {
                break;
            };
            if item.status != Status::InProgress {
                continue;
            }
            let is_cut = is_cut && item.what.may_be_cut();
            match item.what {
                // Nobody shall do half of what was meant: a call that was cut is not done.
                Call(_) if is_cut => self.cut(at),
                _ if is_cut => self.done(at, Status::Incomplete, out),
                _ => self.done(at, Status::Completed, out),
            }
        }
        let kind = match is_cut {
            true => "response.incomplete",
            false => "response.completed",
        };
        let over = State::Over(finish, usage);
        self.last(kind, &over, out);
        if let Some(keeping) = &self.asked.keeping {
            self.keep(keeping, &over);
        }
    }

    /// Has it kept as it stands.
    #[cold]
    fn keep(&self, keeping: &Keeping, state: &State<'_>) {
        let (mut document, mut output) = (Json::default(), Json::default());
        self.write(&mut document, state);
        output.list(|json| self.items.iter().for_each(|item| item.write(json)));
        keeping.keeper.keep(KeptResponse {
            id: Arc::clone(&keeping.id),
            previous: keeping.previous.clone(),
            input: keeping.input.clone(),
            output: output.into_bytes().into(),
            document: document.into_bytes().into(),
        });
    }

    /// The item at this place stays as it is, unless it is done.
    fn cut(&mut self, at: usize) {
        let open = self.items.get_mut(at);
        if let Some(item) = open.filter(|item| item.status == Status::InProgress) {
            item.status = Status::Incomplete;
        }
    }

    /// The last event, or the document.
    fn last(&self, kind: &str, state: &State<'_>, out: &mut Vec<u8>) {
        if self.is_streamed {
            return self.emit_response(out, kind, state);
        }
        let mut json = Json::with_capacity(1024 + self.kept);
        self.write(&mut json, state);
        out.append(&mut json.into_bytes());
    }

    fn fail(&mut self, error: &Error, out: &mut Vec<u8>) {
        self.begin("", "", out);
        for at in 0..self.items.len() {
            self.cut(at);
        }
        self.last("response.failed", &State::Failed(error), out);
    }

    /// The response as it stands.
    fn write(&self, json: &mut Json, state: &State<'_>) {
        let document = Document {
            stem: &self.stem,
            created: self.created,
            model: &self.model,
            items: &self.items,
            echo: &self.asked.echo,
        };
        document.write(state, json);
    }
}

impl Writer for Response {
    fn event(&mut self, event: Event<'_>, out: &mut Vec<u8>) -> Result<(), Stop> {
        match event {
            Event::Begin { id, model } => self.begin(id, model, out),
            Event::Text(text) => self.say(made::TEXT, text, out),
            Event::Refusal(text) => self.say(made::REFUSAL, text, out),
            Event::Thinking(text) => {
                let at = self.reasoning(false, out);
                self.part(at, made::REASONING, text, out);
            }
            Event::Signature(more) => {
                let at = self.reasoning(true, out);
                self.kept += more.len();
                if let Some(Reasoning(reasoning)) =
                    self.items.get_mut(at).map(|item| &mut item.what)
                {
                    reasoning.signature.push_str(more);
                }
            }
            Event::Redacted(data) => self.sealed(sealed::redacted(self.asked.backend, data), out),
            Event::Call {
                nth,
                id,
                name,
                signature,
            } => self.call(nth, id, name, signature, out),
            Event::Arguments { nth, json } => self.arguments(nth, json, out)?,
            Event::End(finish, usage) => self.end(&finish, &usage, out),
            Event::Error(error) => self.fail(&error, out),
        }
        Ok(())
    }

    fn held(&self) -> usize {
        self.untold
    }

    fn kept(&self) -> usize {
        self.kept
    }
}
