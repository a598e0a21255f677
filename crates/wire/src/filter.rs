//! Filters: what changes the bytes of a call and of its answer on their way. A translation to another dialect is one, a guard
//! another.
//!
//! A snapshot makes the chain of each route and backend, which is empty for a call that needs none. A request passes it from the client
//! on, an answer the other way round.
//! Invariant: nothing here keeps a call: a filter begins anew with each attempt, so that two attempts of one call can speak two
//! dialects. What is not filtered passes byte for byte.
//! Not here: which filters a call passes (`policy`), sending and forwarding (`proxy`), the text of an answer, which a filter reads
//! with [`crate::answer::Reader`].

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::Arc;

use bytes::Bytes;

use crate::dialect::Operation;
pub use crate::dialect::gemini::Manner;
use crate::eventstream;
use crate::head::{Known, ResponseHead};

/// Filters in the order in which a request passes them.
pub type Chain = Vec<Arc<dyn Filter>>;

/// A request on its way: what is changed of the client's.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Request {
    /// What follows the root of the API, with its slash: `/messages`; the client's where nothing is said.
    pub path: Option<Cow<'static, str>>,
    /// The query, without its `?`; what passes of the client's where nothing is said.
    pub query: Option<String>,
    /// Fields that are added, names in lower case; each takes the place of the client's of that name.
    pub headers: Vec<(Cow<'static, str>, Cow<'static, [u8]>)>,
    /// The model that the upstream is asked for, where the call names one.
    pub model: Option<Arc<str>>,
    /// How the client wants the answer, where its path says it.
    pub manner: Manner,
    /// What follows the API's root in the client's path, with its slash, where the operation alone does not tell that.
    pub below: Box<str>,
    /// The body, in pieces.
    pub body: Vec<Bytes>,
    /// Members of the client's body that are not said on, where their documentation allows that.
    pub dropped: Vec<&'static str>,
    /// Other workloads use the upstream's account: what it keeps must not be named.
    pub shares_account: bool,
    /// Where the response is kept, if its filter makes one that can be.
    pub keeping: Option<Keeping>,
}

/// Where the response to a call of the Responses API is kept, so that its caller can go on from it.
#[derive(Debug, Clone)]
pub struct Keeping {
    /// The id that the response is to have.
    pub id: Arc<str>,
    /// That of the response that the call goes on from.
    pub previous: Option<Arc<str>>,
    /// The call's own input, as its client wrote it.
    pub input: Bytes,
    /// Who keeps it.
    pub keeper: Arc<dyn Keeper>,
}

impl PartialEq for Keeping {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Keeping {}

/// A response that is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptResponse {
    /// Its id.
    pub id: Arc<str>,
    /// That of the response that it goes on from.
    pub previous: Option<Arc<str>>,
    /// The input of its call: a text or a list.
    pub input: Bytes,
    /// Its output: a list.
    pub output: Bytes,
    /// All of it, as its client was told.
    pub document: Bytes,
}

/// Keeps responses of one caller.
pub trait Keeper: Debug + Send + Sync {
    /// Keeps one, where there is room for it.
    fn keep(&self, response: KeptResponse);
}

/// A call cannot pass: it says something for which there is no way on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfit {
    /// What cannot be said, for the client: a member of its body, say.
    pub what: Cow<'static, str>,
    /// It could be said, and would name what the upstream keeps for an account that others use too. Where in the body stands in `what`.
    pub is_of_account: bool,
}

impl Unfit {
    /// That this cannot be said.
    #[must_use]
    pub fn new(what: impl Into<Cow<'static, str>>) -> Self {
        Self {
            what: what.into(),
            is_of_account: false,
        }
    }
}

/// What kind of body a message has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// One JSON document.
    Json,
    /// A stream of events as `text/event-stream` has them.
    Events,
    /// Amazon's stream of binary events.
    Frames,
    /// Anything else, other binary streams among it.
    Other,
}

impl Content {
    /// What a response is, by its content type.
    #[must_use]
    pub fn of(head: &ResponseHead) -> Self {
        let value = head.fields.get(Known::ContentType).unwrap_or_default();
        if value == b"application/json" {
            // As most say it.
            return Self::Json;
        }
        if is_kind(value, b"application/json") {
            Self::Json
        } else if is_kind(value, b"text/event-stream") {
            Self::Events
        } else if is_kind(value, eventstream::CONTENT_TYPE.as_bytes()) {
            Self::Frames
        } else {
            Self::Other
        }
    }
}

/// Whether a content type is this one, whatever its parameters.
fn is_kind(value: &[u8], kind: &[u8]) -> bool {
    let value = value.trim_ascii_start();
    value
        .split_at_checked(kind.len())
        .is_some_and(|(begins, rest)| {
            begins.eq_ignore_ascii_case(kind) && matches!(rest.trim_ascii_start(), [] | [b';', ..])
        })
}

/// The response that a filter makes, as far as its head says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// What its body is.
    pub content: Content,
    /// Its content type.
    pub content_type: Cow<'static, str>,
    /// Fields that are added, names in lower case; each takes the place of the upstream's of that name.
    pub headers: Vec<(Box<str>, Box<[u8]>)>,
}

impl Shape {
    /// Whether a field of the upstream's gives way to one of these.
    #[must_use]
    pub fn replaces(&self, name: &[u8]) -> bool {
        let mut headers = self.headers.iter();
        name == b"content-type" || headers.any(|(own, _)| own.as_bytes() == name)
    }
}

/// One filter, for the calls of a route or to a backend.
pub trait Filter: Debug + Send + Sync {
    /// Whether it changes anything of such a call, or of its answer. A call that no filter applies to passes as if there were none.
    fn applies(&self, asked: Operation) -> bool {
        let _any = asked;
        true
    }

    /// Whether the body of such a call passes as it came, wherever it goes.
    fn passes(&self, asked: Operation) -> bool {
        !self.applies(asked)
    }

    /// What the upstream is asked for where a client asks for this: its response is metered as one of that.
    fn operation(&self, asked: Operation) -> Operation {
        asked
    }

    /// The prompt that this call asks the count of, as the upstream would be sent it, where the filter has no way to ask for that count.
    fn prompt_to_count(&self, asked: Operation, request: &Request) -> Option<Prompt> {
        let _nothing = (asked, request);
        None
    }

    /// Changes the request of one attempt. Its body has the model that the upstream is asked for. What it gives filters the response.
    ///
    /// # Errors
    /// There is no way to say it.
    fn request(
        &self,
        asked: Operation,
        request: &mut Request,
    ) -> Result<Option<Box<dyn Answering>>, Unfit>;
}

/// A prompt that an upstream would be sent: the call that it is of, and its body.
pub type Prompt = (Operation, Vec<Bytes>);

/// What an attempt's request leaves behind for its response.
pub trait Answering: Debug + Send {
    /// What filters the response that begins with this head, where it is filtered. `content` is what comes: the upstream's, or what
    /// the filter before this one makes of it. `unix_s` is the time.
    fn response(
        &self,
        head: &ResponseHead,
        content: Content,
        unix_s: u64,
    ) -> Option<Box<dyn ResponseFilter>>;
}

/// Why a response goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// What came is not what its head said.
    Malformed,
    /// It must not be passed on; the code of why.
    Refused(&'static str),
    /// There is no room for what has to be kept of it.
    NoRoom,
    /// There is no room for what was made of it until its client takes it.
    Untaken,
}

/// Filters one response while it passes.
pub trait ResponseFilter: Debug + Send {
    /// What it makes of it; `None` where head and content are as they came.
    fn shape(&self) -> Option<Shape> {
        None
    }

    /// Reads a piece of the body; what goes on for it goes to `out`. `is_over`: it is the last one.
    ///
    /// # Errors
    /// The response goes no further. What is in `out` still does.
    fn pass(&mut self, piece: &[u8], is_over: bool, out: &mut Vec<Bytes>) -> Result<(), Stop>;

    /// Bytes that it holds back now. More than its route permits end the response.
    fn held(&self) -> usize {
        0
    }

    /// Bytes that it keeps until it can read them, or to repeat them later. They count as what a worker keeps of bodies.
    fn kept(&self) -> usize {
        0
    }

    /// It has made the last of the response, though more may come of which it makes nothing.
    fn has_ended(&self) -> bool {
        false
    }

    /// The response broke off: what is held back of it and may go on goes to `out`.
    fn release(&mut self, out: &mut Vec<Bytes>) {
        let _nothing_is_held = out;
    }
}

/// The filters of one response, from the upstream to the client. Of one that has none, nothing is kept.
#[derive(Debug, Default)]
pub struct Pipe(Option<Box<Filters>>);

#[derive(Debug, Default)]
struct Filters {
    filters: Vec<Box<dyn ResponseFilter>>,
    /// How many filters the response passes before it is metered.
    metered_after: usize,
    /// What the client gets, where it is not what came.
    shape: Option<Shape>,
}

impl Pipe {
    /// What filters this response, of what its request left, in the order of that. It is metered as it comes, or behind the first
    /// filter that makes of it what a meter can read.
    #[must_use]
    #[cold]
    pub fn of(answering: &[Box<dyn Answering>], head: &ResponseHead, unix_s: u64) -> Self {
        let mut content = Content::of(head);
        let mut made = Filters::default();
        for answering in answering.iter().rev() {
            let Some(filter) = answering.response(head, content, unix_s) else {
                continue;
            };
            if let Some(mut shape) = filter.shape() {
                let is_read = content != Content::Other || made.metered_after > 0;
                if !is_read && shape.content != Content::Other {
                    made.metered_after = made.filters.len() + 1;
                }
                content = shape.content;
                if let Some(before) = made.shape.take() {
                    let headers = before.headers.into_iter();
                    let mut kept: Vec<_> = headers
                        .filter(|(name, _)| !shape.replaces(name.as_bytes()))
                        .collect();
                    shape.headers.append(&mut kept);
                }
                made.shape = Some(shape);
            }
            made.filters.push(filter);
        }
        let is_empty = made.filters.is_empty();
        Self((!is_empty).then(|| Box::new(made)))
    }

    /// Whether the response passes as it comes.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the response is metered as it comes.
    #[must_use]
    #[inline]
    pub fn meters_what_comes(&self) -> bool {
        self.0.as_ref().is_none_or(|made| made.metered_after == 0)
    }

    /// What the client gets, where it is not what came.
    #[must_use]
    #[inline]
    pub fn shape(&self) -> Option<&Shape> {
        self.0.as_ref()?.shape.as_ref()
    }

    /// Passes pieces through all of it, to `out`; `meter` reads what is metered, unless that is what comes.
    ///
    /// # Errors
    /// The response goes no further; what is in `out` still does.
    pub fn pass(
        &mut self,
        pieces: Vec<Bytes>,
        is_over: bool,
        out: &mut Vec<Bytes>,
        meter: impl FnMut(&[u8], bool),
    ) -> Result<(), Stop> {
        match &mut self.0 {
            Some(made) => made.pass(pieces, is_over, out, meter),
            None => {
                out.extend(pieces);
                Ok(())
            }
        }
    }

    /// The same of one piece as it came, which is not copied.
    ///
    /// # Errors
    /// As [`pass`](Self::pass).
    pub fn pass_piece(
        &mut self,
        piece: &[u8],
        is_over: bool,
        out: &mut Vec<Bytes>,
        mut meter: impl FnMut(&[u8], bool),
    ) -> Result<(), Stop> {
        if let Some(made) = &mut self.0
            && let [only] = made.filters.as_mut_slice()
        {
            let from = out.len();
            let result = only.pass(piece, is_over, out);
            if made.metered_after == 1 {
                tell(out.get(from..).unwrap_or_default(), is_over, &mut meter);
            }
            return result;
        }
        let pieces = vec![Bytes::copy_from_slice(piece)];
        self.pass(pieces, is_over, out, meter)
    }

    /// Bytes that its filters hold back now.
    #[must_use]
    pub fn held(&self) -> usize {
        let filters = self.0.as_ref().map_or(&[][..], |made| &made.filters);
        filters.iter().map(|filter| filter.held()).sum()
    }

    /// Bytes that its filters keep now besides.
    #[must_use]
    pub fn kept(&self) -> usize {
        let filters = self.0.as_ref().map_or(&[][..], |made| &made.filters);
        filters.iter().map(|filter| filter.kept()).sum()
    }

    /// Whether the client was made the last of the response.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let filters = self.0.as_ref().map_or(&[][..], |made| &made.filters);
        filters.iter().any(|filter| filter.has_ended()) && self.held() == 0
    }

    /// The response broke off: what may go on of what is held back, to `out`.
    pub fn release(&mut self, out: &mut Vec<Bytes>) {
        let Some(made) = &mut self.0 else { return };
        let mut pieces: Vec<Bytes> = Vec::new();
        for filter in &mut made.filters {
            let mut passed = Vec::new();
            if pass_all(&mut **filter, &pieces, false, &mut passed).is_err() {
                return;
            }
            filter.release(&mut passed);
            pieces = passed;
        }
        out.append(&mut pieces);
    }
}

impl Filters {
    fn pass(
        &mut self,
        mut pieces: Vec<Bytes>,
        is_over: bool,
        out: &mut Vec<Bytes>,
        mut meter: impl FnMut(&[u8], bool),
    ) -> Result<(), Stop> {
        let many = self.filters.len();
        for (at, filter) in self.filters.iter_mut().enumerate() {
            let mut passed = Vec::new();
            let result = pass_all(&mut **filter, &pieces, is_over, &mut passed);
            if at + 1 == self.metered_after {
                tell(&passed, is_over, &mut meter);
            }
            pieces = passed;
            // What a filter further up made before it stopped would be unfiltered by those below.
            if let Err(stop) = result {
                if at + 1 == many {
                    out.append(&mut pieces);
                }
                return Err(stop);
            }
        }
        out.append(&mut pieces);
        Ok(())
    }
}

/// Has a meter read what a filter made.
fn tell(made: &[Bytes], is_over: bool, meter: &mut impl FnMut(&[u8], bool)) {
    made.iter().for_each(|piece| meter(piece, false));
    if is_over {
        meter(b"", true);
    }
}

/// Has a filter read pieces, the last of which may be the last of all.
fn pass_all(
    filter: &mut dyn ResponseFilter,
    pieces: &[Bytes],
    is_over: bool,
    out: &mut Vec<Bytes>,
) -> Result<(), Stop> {
    let Some((last, before)) = pieces.split_last() else {
        return if is_over {
            filter.pass(b"", true, out)
        } else {
            Ok(())
        };
    };
    for piece in before {
        filter.pass(piece, false, out)?;
    }
    filter.pass(last, is_over, out)
}
