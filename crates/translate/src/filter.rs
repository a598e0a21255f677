//! The filter of a backend that speaks dialects of its own: calls in others are translated, and their answers back.
//!
//! Invariant: a call in a dialect that the backend speaks passes as it came. Of a stream nothing is kept but the event that has not
//! ended and what its writer needs to keep in order; a document is kept whole, since its end may change its beginning.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use wire::dialect::Operation;
use wire::eventstream;
use wire::filter::{
    Answering, Content, Filter, Manner, Prompt, Request, ResponseFilter, Shape, Stop, Unfit,
};
use wire::head::ResponseHead;
use wire::sse::DataReader;

use crate::answer::{Asked, Error, Event, Reader, Writer};
use crate::bound;
use crate::calls::Calls;
use crate::dialect::Dialect;
use crate::embeddings;
use crate::fault::Fault;
use crate::json::Json;
use crate::raw::Raw;
use crate::stored;

/// Of an error's document no more is read.
const ERROR_BYTES: usize = 64 * 1024;
/// No event of an answer is longer.
const EVENT_BYTES: usize = 8 * 1024 * 1024;
/// No answer that is one document is longer, nor one whose stream ends with such a document.
const DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// The filter of one backend.
#[derive(Debug, Clone)]
pub struct Translation {
    /// What the backend speaks; what it is told in where it does not speak the client's comes first.
    speaks: Vec<Dialect>,
}

impl Translation {
    /// Of a backend that speaks these, of which there is at least one; what is translated is made into the first.
    #[must_use]
    pub fn new(first: Dialect, others: &[Dialect]) -> Self {
        let mut speaks = vec![first];
        speaks.extend(others.iter().copied().filter(|other| *other != first));
        Self { speaks }
    }

    /// What calls are made into: the first that they can be.
    fn target(&self) -> Dialect {
        let mut targets = self.speaks.iter().filter(|dialect| dialect.is_target());
        let first = targets.next().or(self.speaks.first());
        first.copied().unwrap_or(Dialect::OpenAi)
    }
}

impl Translation {
    /// The one that has a call as the client says it.
    fn has(&self, asked: Operation) -> Option<Dialect> {
        let mut speaks = self.speaks.iter().copied();
        speaks.find(|dialect| dialect.has(asked))
    }
}

impl Filter for Translation {
    fn applies(&self, asked: Operation) -> bool {
        self.has(asked).is_none_or(|dialect| dialect.moves(asked))
    }

    fn passes(&self, asked: Operation) -> bool {
        self.has(asked).is_some()
    }

    fn operation(&self, asked: Operation) -> Operation {
        match (self.has(asked), asked) {
            (Some(_), _) => asked,
            (None, Operation::Embeddings) => self.target().embeds().unwrap_or(asked),
            (None, _) if Dialect::of(asked).is_some() => self.target().operation(),
            (None, _) => asked,
        }
    }

    fn prompt_to_count(&self, asked: Operation, request: &Request) -> Option<Prompt> {
        // What an engine of OpenAI's dialect is sent is what the gate's own count is held against.
        let target = self.target();
        let is_counted = self.has(asked).is_none() && target.operation() == Operation::Chat;
        let client = Dialect::asking_for_count(asked).filter(|_| is_counted)?;
        let body = body_of(request);
        bound::check(&body).ok()?;
        let raw = client.prompt_asked(Raw::read(&body)?)?;
        let prepared = client.prepare(raw).ok()?;
        let call = client.read_prompt(raw, &prepared, request).ok()?;
        let mut made = Request::default();
        target.write_call(call, &mut made).ok()?;
        Some((target.operation(), made.body))
    }

    fn request(
        &self,
        asked: Operation,
        request: &mut Request,
    ) -> Result<Option<Box<dyn Answering>>, Unfit> {
        if let Some(dialect) = self.has(asked) {
            return Ok(dialect.pass(asked, request)?);
        }
        let target = self.target();
        if asked == Operation::Embeddings && target.embeds().is_some() {
            return embed(target, request).map(Some);
        }
        let Some(client) = Dialect::of(asked) else {
            let speaks = target.as_str();
            let what = format!(
                "the backend speaks {speaks}, which has no {} to translate to",
                asked.words()
            );
            return Err(Unfit::new(what));
        };
        let body = body_of(request);
        bound::check(&body)?;
        // What stands in it is read once, where it is taken apart.
        let raw = Raw::unread(&body).ok_or_else(|| Fault::new("the body is not a JSON object"))?;
        let prepared = client.prepare(raw)?;
        let mut call = client.read_call(raw, &prepared, request)?;
        call.bytes = body.len();
        if request.shares_account {
            stored::check(&call, target)?;
        }
        let answering = Translated {
            client,
            backend: target,
            asked: Arc::new(Asked {
                backend: target.as_str(),
                model: target.untold_model(&call),
                wants_usage: call.wants_usage,
                shows_thinking: target.shows_thinking(&call),
                manner: request.manner,
                aliases: std::mem::take(&mut call.aliases),
                echo: std::mem::take(&mut call.echo),
                keeping: request.keeping.clone().filter(|_| call.is_kept),
            }),
        };
        let mut made = Request::default();
        target.write_call(call, &mut made)?;
        put(made, request);
        Ok(Some(Box::new(answering)))
    }
}

/// Puts what was made in the place of the client's.
fn put(mut made: Request, request: &mut Request) {
    request.path = made.path;
    request.query = made.query.or(Some(String::new()));
    match request.headers.is_empty() {
        true => request.headers = made.headers,
        false => request.headers.append(&mut made.headers),
    }
    request.dropped.append(&mut made.dropped);
    request.body = made.body;
}

/// Embeddings of OpenAI's at a backend of another API.
fn embed(backend: Dialect, request: &mut Request) -> Result<Box<dyn Answering>, Unfit> {
    let body = body_of(request);
    bound::check(&body)?;
    let raw = Raw::read(&body).ok_or_else(|| Fault::new("the body is not JSON"))?;
    let call = embeddings::read(raw)?;
    let mut made = Request::default();
    made.dropped.extend(call.dropped);
    let read = backend.write_embeddings(&call, &mut made)?;
    let asked = call.asked();
    put(made, request);
    Ok(Box::new(Embedding {
        backend,
        asked,
        read,
    }))
}

/// Texts that are to be embedded.
#[derive(Debug)]
struct Embedding {
    backend: Dialect,
    asked: embeddings::Asked,
    read: embeddings::Read,
}

impl Answering for Embedding {
    fn response(
        &self,
        head: &ResponseHead,
        content: Content,
        _unix_s: u64,
    ) -> Option<Box<dyn ResponseFilter>> {
        if head.status >= 400 {
            return Some(Box::new(Failure {
                client: Dialect::OpenAi,
                backend: self.backend,
                status: head.status,
                kind: None,
                is_listed: false,
                held: Vec::new(),
            }));
        }
        if content == Content::Other {
            return None;
        }
        let asked = self.asked.clone();
        Some(Box::new(embeddings::Embedded::new(asked, self.read)))
    }
}

/// The body in one piece.
fn body_of(request: &Request) -> Cow<'_, [u8]> {
    match &request.body[..] {
        [one] => Cow::Borrowed(&one[..]),
        several => Cow::Owned(several.concat()),
    }
}

/// A call that was translated, and whose answer is to come.
#[derive(Debug)]
struct Translated {
    client: Dialect,
    backend: Dialect,
    asked: Arc<Asked>,
}

impl Answering for Translated {
    fn response(
        &self,
        head: &ResponseHead,
        content: Content,
        unix_s: u64,
    ) -> Option<Box<dyn ResponseFilter>> {
        let (client, backend) = (self.client, self.backend);
        if head.status >= 400 {
            return Some(Box::new(Failure {
                client,
                backend,
                status: head.status,
                kind: backend.error_of(head).map(str::to_owned),
                is_listed: self.asked.manner == Manner::List,
                held: Vec::new(),
            }));
        }
        // A page, or what says nothing of its type, is no answer of any of these: policy looks elsewhere.
        if content == Content::Other {
            return None;
        }
        let reader = backend.reader(head, &self.asked)?;
        let is_streamed = matches!(content, Content::Events | Content::Frames);
        let writer = client.writer(is_streamed, unix_s, &self.asked)?;
        let pair = Pair {
            reader,
            writer,
            calls: Calls::new(unix_s),
            has_begun: false,
            has_ended: false,
            has_failed: false,
        };
        match content {
            Content::Events => Some(Box::new(Stream {
                pair,
                is_listed: self.asked.manner == Manner::List,
                events: Events::Lines(DataReader::new()),
            })),
            Content::Frames => Some(Box::new(Stream {
                pair,
                is_listed: self.asked.manner == Manner::List,
                events: Events::Frames(eventstream::Reader::default()),
            })),
            Content::Json | Content::Other => Some(Box::new(Document {
                pair,
                held: Vec::new(),
            })),
        }
    }
}

#[derive(Debug)]
struct Pair {
    reader: Box<dyn Reader>,
    writer: Box<dyn Writer>,
    calls: Calls,
    has_begun: bool,
    has_ended: bool,
    /// It ended with an error.
    has_failed: bool,
}

impl Pair {
    /// What tells the writer, and notes the end.
    fn pass(
        &mut self,
        out: &mut Vec<u8>,
        read: impl FnOnce(&mut dyn Reader, &mut dyn FnMut(Event<'_>)) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let Self {
            reader,
            writer,
            calls,
            ..
        } = self;
        let (has_begun, has_ended) = (&mut self.has_begun, &mut self.has_ended);
        let (has_failed, mut told) = (&mut self.has_failed, Ok(()));
        let mut tell = |event: Event<'_>| {
            if told.is_err() || *has_ended {
                return;
            }
            if *has_begun && event.is_content() {
                // Most of an answer.
                told = writer.event(event, out);
                return;
            }
            let begins = matches!(event, Event::Begin { .. });
            if begins && *has_begun {
                return;
            }
            let fails = matches!(event, Event::Error(_));
            let ends = fails || matches!(event, Event::End(..));
            let mut write = |event: Event<'_>| writer.event(event, out);
            if !begins && !*has_begun && !fails {
                // A stream without its first event: writers count on one.
                let (id, model) = ("", "");
                told = calls.pass(Event::Begin { id, model }, &mut write);
            }
            *has_begun = true;
            told = told.and_then(|()| calls.pass(event, &mut write));
            *has_ended |= ends && told.is_ok();
            *has_failed |= fails;
        };
        read(&mut **reader, &mut tell)?;
        told
    }

    /// Bytes that are kept for later, and those that are kept of what was told.
    fn held(&self) -> (usize, usize) {
        let held = self.writer.held() + self.calls.held();
        (held, self.writer.kept() + self.calls.kept())
    }
}

/// A stream of events.
#[derive(Debug)]
struct Stream {
    pair: Pair,
    /// It is a list to the client, and no events.
    is_listed: bool,
    events: Events,
}

/// How its events come.
#[derive(Debug)]
enum Events {
    Lines(DataReader),
    Frames(eventstream::Reader),
}

impl Events {
    /// Has a pair read what comes.
    fn push(&mut self, piece: &[u8], pair: &mut Pair, made: &mut Vec<u8>) -> Result<(), Stop> {
        let mut result = Ok(());
        match self {
            Self::Lines(lines) => lines.push(piece, |data| {
                if result.is_ok() {
                    result = pair.pass(made, |reader, tell| reader.event(data, tell));
                }
            }),
            Self::Frames(frames) => {
                let read = frames.push(piece, |message| {
                    if result.is_ok() {
                        result = pair.pass(made, |reader, tell| reader.message(message, tell));
                    }
                });
                if read.is_err() && !pair.has_ended {
                    result = Err(Stop::Malformed);
                }
            }
        }
        result
    }

    /// Has it read what the end of the stream cut off: it counts where it is whole.
    fn finish(&mut self, pair: &mut Pair, made: &mut Vec<u8>) -> Result<(), Stop> {
        match self {
            Self::Lines(lines) => {
                if let Some(data) = lines.unfinished() {
                    let _is_whole = pair.pass(made, |reader, tell| reader.event(&data, tell));
                }
                Ok(())
            }
            Self::Frames(frames) if frames.held() == 0 => Ok(()),
            Self::Frames(_) => Err(Stop::Malformed),
        }
    }

    /// Bytes of the event that has not ended.
    fn held(&self) -> usize {
        match self {
            Self::Lines(lines) => lines.held(),
            Self::Frames(frames) => frames.held(),
        }
    }
}

impl Stream {
    /// Tells the client that the stream broke, in its dialect.
    fn broken(&mut self, says: &str, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.pair.has_ended, true) {
            let error = Event::Error(Error::of(502, says));
            let _said = self.pair.writer.event(error, out);
        }
    }
}

impl ResponseFilter for Stream {
    fn shape(&self) -> Option<Shape> {
        if self.is_listed {
            return Some(json_shape());
        }
        Some(Shape {
            content: Content::Events,
            content_type: "text/event-stream".into(),
            headers: Vec::new(),
        })
    }

    fn pass(&mut self, piece: &[u8], is_over: bool, out: &mut Vec<Bytes>) -> Result<(), Stop> {
        let mut made = Vec::new();
        let (events, pair) = (&mut self.events, &mut self.pair);
        let mut result = events.push(piece, pair, &mut made);
        // It is no matter of the route's, which knows filters that hold text back; the worker counts it.
        let (held, kept) = pair.held();
        let is_too_long = events.held() + held > EVENT_BYTES || kept > DOCUMENT_BYTES;
        if result.is_ok() && is_too_long {
            result = Err(Stop::Malformed);
        }
        if is_over && result.is_ok() {
            if !self.pair.has_ended {
                result = self.events.finish(&mut self.pair, &mut made);
            }
            let over = |reader: &mut dyn Reader, tell: &mut dyn FnMut(Event<'_>)| {
                reader.over(tell);
                Ok(())
            };
            result = result.and_then(|()| self.pair.pass(&mut made, over));
            if !self.pair.has_ended {
                result = Err(Stop::Malformed);
            }
        }
        if result.is_err() {
            self.broken(
                "the backend's stream ended without its end, or could not be read",
                &mut made,
            );
        }
        if !made.is_empty() {
            out.push(made.into());
        }
        result
    }

    fn kept(&self) -> usize {
        let (held, kept) = self.pair.held();
        self.events.held() + held + kept
    }

    fn has_ended(&self) -> bool {
        self.pair.has_ended
    }

    fn release(&mut self, out: &mut Vec<Bytes>) {
        let mut made = Vec::new();
        self.broken("the backend's stream broke off", &mut made);
        if !made.is_empty() {
            out.push(made.into());
        }
    }
}

/// An answer that is one document.
#[derive(Debug)]
struct Document {
    pair: Pair,
    held: Vec<u8>,
}

impl ResponseFilter for Document {
    fn shape(&self) -> Option<Shape> {
        Some(json_shape())
    }

    fn pass(&mut self, piece: &[u8], is_over: bool, out: &mut Vec<Bytes>) -> Result<(), Stop> {
        if self.held.len() + piece.len() > DOCUMENT_BYTES {
            return Err(Stop::Malformed);
        }
        // One that came in one piece is read where it is.
        let is_whole = is_over && self.held.is_empty();
        if !is_whole {
            self.held.extend_from_slice(piece);
        }
        if is_over {
            let held = std::mem::take(&mut self.held);
            let document: &[u8] = if is_whole { piece } else { &held };
            let mut made = Vec::new();
            self.pair
                .pass(&mut made, |reader, tell| reader.document(document, tell))?;
            if self.pair.has_failed {
                // Its status says that it is an answer, and it is none.
                return Err(Stop::Malformed);
            }
            out.push(made.into());
        }
        Ok(())
    }

    fn kept(&self) -> usize {
        self.held.len()
    }
}

fn json_shape() -> Shape {
    Shape {
        content: Content::Json,
        content_type: "application/json".into(),
        headers: Vec::new(),
    }
}

/// An error of the backend's.
#[derive(Debug)]
struct Failure {
    client: Dialect,
    backend: Dialect,
    status: u16,
    /// Which error it is, where its head says that.
    kind: Option<String>,
    /// The client gets a list.
    is_listed: bool,
    held: Vec<u8>,
}

impl ResponseFilter for Failure {
    fn shape(&self) -> Option<Shape> {
        Some(json_shape())
    }

    fn pass(&mut self, piece: &[u8], is_over: bool, out: &mut Vec<Bytes>) -> Result<(), Stop> {
        let room = ERROR_BYTES.saturating_sub(self.held.len());
        self.held
            .extend_from_slice(piece.get(..room).unwrap_or(piece));
        if is_over {
            let read = self.backend.read_error(self.status, &self.held);
            let error = read.unwrap_or_else(|| {
                Error::of(
                    self.status,
                    format!(
                        "the backend answered {} without an error that can be read",
                        self.status
                    ),
                )
            });
            let error = match &self.kind {
                Some(kind) => self.backend.named(error, kind),
                None => error,
            };
            let mut json = Json::default();
            match self.is_listed {
                true => json.list(|json| self.client.write_error(&error, json)),
                false => self.client.write_error(&error, &mut json),
            }
            out.push(json.into_bytes().into());
        }
        Ok(())
    }

    fn kept(&self) -> usize {
        self.held.len()
    }
}
