//! The scanner: one pass over the bytes, a bit per open container, no recursion.
//!
//! It goes byte by byte and can stop anywhere. Where whole tokens lie ahead it takes them whole (`token`),
//! and passes over whole values that nobody asked for (`skip`).
//! Invariant: every decision depends on the bytes so far and never on where a chunk ended. What spans
//! chunks (a key, a kept value) is carried in small bounded buffers.
//! Not here: what is done at members of interest (`capture`).

use super::REQUEST_DEPTH_LIMIT;
use super::container_stack::ContainerStack;
use super::fault::{JsonFault, JsonFaultKind};
use super::found::{Found, Kind};
use super::interest::Interests;
use super::marks::{Marks, string_end};
use super::skip::skip;
use super::state::{Next, State, next_in_number};
use super::token::{kind_of, plain_key_end, scalar_end};

/// Checks a JSON document fed in chunks and finds the members of interest.
///
/// ```
/// use wire::json::{Interest, Interests, Kind, Repeat, Scanner, Want};
/// static ASKED: Interests = Interests::new(&[Interest::new("model", Want::Scalar, Repeat::Refuse)]);
/// let mut scanner = Scanner::new(&ASKED);
/// scanner.push(br#"{"messages":[],"mo"#)?;
/// scanner.push(br#"del":"m1"}"#)?;
/// let found = scanner.finish()?;
/// let model = found.member(0).filter(|m| m.kind == Kind::String);
/// assert_eq!(model.and_then(|m| found.text(m)).as_deref(), Some("m1"));
/// # Ok::<(), wire::json::JsonFault>(())
/// ```
#[derive(Debug)]
pub struct Scanner {
    pub(super) interests: &'static Interests,
    state: State,
    /// Bytes of the chunks before this one.
    pub(super) base: usize,
    pub(super) stack: ContainerStack,
    /// The string being read is a key.
    in_key: bool,
    /// That key may be one of interest.
    pub(super) watch_key: bool,
    pub(super) key_at: usize,
    /// The part of the key that came in earlier chunks.
    pub(super) key_start: Vec<u8>,
    /// The members whose values are open at depth 1 and 2.
    pub(super) open: [Option<u8>; 2],
    /// The member whose object is at depth 2 and may hold members of interest.
    pub(super) parent: Option<u8>,
    pub(super) keeping: Option<Keeping>,
    pub(super) found: Found,
    fault: Option<JsonFault>,
}

/// A value whose bytes are being kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keeping {
    pub(super) interest: u8,
    pub(super) depth: u32,
    pub(super) bound: usize,
    /// Where in the present chunk the value's next byte is.
    pub(super) from: usize,
}

/// A fault and its place in the whole document.
pub(super) type At = (usize, JsonFaultKind);

impl Scanner {
    /// A scanner for one document.
    pub const fn new(interests: &'static Interests) -> Self {
        Self {
            interests,
            state: State::Start,
            base: 0,
            stack: ContainerStack::new(),
            in_key: false,
            watch_key: false,
            key_at: 0,
            key_start: Vec::new(),
            open: [None; 2],
            parent: None,
            keeping: None,
            found: Found::new(),
            fault: None,
        }
    }

    /// One for what a client sends: some levels fewer than an answer may have, which repeats parts of it within others.
    #[must_use]
    pub const fn of_request(mut self) -> Self {
        self.stack.most = REQUEST_DEPTH_LIMIT;
        self
    }

    /// Reads the next bytes. After a fault every call returns that fault.
    ///
    /// # Errors
    /// The first byte that makes this no document, or a member that cannot be read.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), JsonFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if let Err((offset, kind)) = self.run(chunk) {
            let fault = JsonFault { offset, kind };
            self.fault = Some(fault.clone());
            return Err(fault);
        }
        let in_string = matches!(self.state, State::String | State::Escape | State::Hex(_));
        self.carry(chunk, in_string && self.in_key);
        self.base += chunk.len();
        Ok(())
    }

    /// Ends the document.
    ///
    /// # Errors
    /// An earlier fault, or the document is not whole.
    pub fn finish(&mut self) -> Result<&Found, JsonFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if self.stack.depth == 0 && self.state.is_final() {
            self.found.length = self.base;
            return Ok(&self.found);
        }
        let kind = if self.state == State::Start {
            JsonFaultKind::Empty
        } else {
            let wanted = self.state.wanted(self.stack.in_object());
            JsonFaultKind::Ends { wanted }
        };
        Err(JsonFault {
            offset: self.base,
            kind,
        })
    }

    /// What was found in a document behind which something else begins: [`JsonFaultKind::Trailing`] says where.
    pub(crate) const fn found_before_trailing(&self) -> &Found {
        &self.found
    }

    fn run(&mut self, chunk: &[u8]) -> Result<(), At> {
        let mut marks = Marks::new();
        let mut at = 0;
        loop {
            if let Some(floor) = self.unwatched() {
                at = self.skip(chunk, &mut marks, at, floor)?;
            }
            let Some(&byte) = chunk.get(at) else {
                return Ok(());
            };
            at = match self.state {
                State::String => self.string(chunk, at)?,
                State::Escape => self.escape(at, byte)?,
                State::Hex(left) => self.hex(at, byte, left)?,
                State::Literal(rest) => self.literal(chunk, at, byte, rest)?,
                State::After
                | State::Value
                | State::Key
                | State::FirstKey
                | State::FirstElement
                | State::Colon
                | State::Start => match byte {
                    b' ' | b'\n' | b'\r' | b'\t' => at + 1,
                    _ => self.token(chunk, at, byte)?,
                },
                number => match next_in_number(number, byte) {
                    Next::To(state) => {
                        self.state = state;
                        at + 1
                    }
                    Next::End => {
                        self.end_value(chunk, at)?;
                        at
                    }
                    Next::Fault => return Err(self.unexpected(at, byte)),
                },
            };
        }
    }

    /// Whether nothing that comes next is of interest, and up to the end of a value in which container.
    #[inline]
    fn unwatched(&self) -> Option<u32> {
        let floor = 1 + u32::from(self.parent.is_some());
        let free = match self.state {
            State::Value => {
                self.stack.depth > floor
                    || self.stack.depth == floor && self.open_at(floor).is_none()
            }
            State::After => self.stack.depth > floor,
            _ => false,
        };
        free.then_some(floor)
    }

    /// Passes over what is of no interest. Gives where to go on.
    fn skip(
        &mut self,
        chunk: &[u8],
        marks: &mut Marks,
        at: usize,
        floor: u32,
    ) -> Result<usize, At> {
        let skipped = skip(chunk, marks, at, self.state, &mut self.stack, floor);
        self.state = skipped.state;
        if skipped.state == State::String {
            self.in_key = skipped.in_key;
            self.watch_key = false;
        }
        if skipped.state == State::After && self.stack.depth == floor {
            self.end_value(chunk, skipped.at)?;
        }
        Ok(skipped.at)
    }

    /// A byte between values: punctuation, or the first byte of a key or a value.
    #[inline]
    fn token(&mut self, chunk: &[u8], at: usize, byte: u8) -> Result<usize, At> {
        match (self.state, byte) {
            (State::After, _) => self.after_value(chunk, at, byte),
            (State::Key | State::FirstKey, b'"') => self.key(chunk, at),
            (State::Colon, b':') => {
                self.state = State::Value;
                Ok(at + 1)
            }
            (State::FirstKey, b'}') | (State::FirstElement, b']') => self.close(chunk, at),
            (State::Start, 0xef) => Err((self.base + at, JsonFaultKind::ByteOrderMark)),
            (State::Start | State::Value | State::FirstElement, _) => self.value(chunk, at, byte),
            _ => Err(self.unexpected(at, byte)),
        }
    }

    /// A key starts at `at`. One that is plain and whole is read at once.
    #[inline]
    fn key(&mut self, chunk: &[u8], at: usize) -> Result<usize, At> {
        self.start_key(at);
        if !self.watch_key {
            (self.state, self.in_key) = (State::String, true);
            return Ok(at + 1);
        }
        let Some(end) = plain_key_end(chunk, at + 1) else {
            (self.state, self.in_key) = (State::String, true);
            return Ok(at + 1);
        };
        self.match_name(chunk.get(at + 1..end - 1).unwrap_or_default())?;
        if chunk.get(end) == Some(&b':') {
            self.state = State::Value;
            return Ok(end + 1);
        }
        self.state = State::Colon;
        Ok(end)
    }

    /// Reads on in a string.
    fn string(&mut self, chunk: &[u8], from: usize) -> Result<usize, At> {
        let inside = match string_end(chunk, from) {
            Ok(end) if self.in_key => {
                self.state = State::Colon;
                if self.watch_key {
                    self.match_key(chunk, end - 1)?;
                }
                return Ok(end);
            }
            Ok(end) => {
                self.end_value(chunk, end)?;
                return Ok(end);
            }
            Err(inside) => inside,
        };
        match chunk.get(inside) {
            Some(b'\\') => {
                self.state = State::Escape;
                Ok(inside + 1)
            }
            Some(&control) => Err((self.base + inside, JsonFaultKind::Control(control))),
            None => Ok(inside),
        }
    }

    fn escape(&mut self, at: usize, byte: u8) -> Result<usize, At> {
        self.state = match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => State::String,
            b'u' => State::Hex(4),
            _ => return Err((self.base + at, JsonFaultKind::Escape)),
        };
        Ok(at + 1)
    }

    fn hex(&mut self, at: usize, byte: u8, left: u8) -> Result<usize, At> {
        if !byte.is_ascii_hexdigit() {
            return Err((self.base + at, JsonFaultKind::Escape));
        }
        self.state = match left {
            1 => State::String,
            _ => State::Hex(left - 1),
        };
        Ok(at + 1)
    }

    fn literal(&mut self, chunk: &[u8], at: usize, byte: u8, rest: u32) -> Result<usize, At> {
        if u32::from(byte) != rest & 0xff {
            return Err(self.unexpected(at, byte));
        }
        if rest >> 8 == 0 {
            self.end_value(chunk, at + 1)?;
        } else {
            self.state = State::Literal(rest >> 8);
        }
        Ok(at + 1)
    }

    #[inline]
    fn after_value(&mut self, chunk: &[u8], at: usize, byte: u8) -> Result<usize, At> {
        if self.stack.depth == 0 {
            return Err((self.base + at, JsonFaultKind::Trailing));
        }
        match (byte, self.stack.in_object()) {
            (b',', true) => {
                self.state = State::Key;
                if chunk.get(at + 1) == Some(&b'"') {
                    return self.key(chunk, at + 1);
                }
            }
            (b',', false) => self.state = State::Value,
            (b'}', true) | (b']', false) => return self.close(chunk, at),
            _ => return Err(self.unexpected(at, byte)),
        }
        Ok(at + 1)
    }

    /// A value of interest starts at `at`, or the document does. What is plain and whole is read at once.
    fn value(&mut self, chunk: &[u8], at: usize, byte: u8) -> Result<usize, At> {
        let Some(kind) = kind_of(byte) else {
            return Err(self.unexpected(at, byte));
        };
        match kind {
            Kind::String => {
                self.capture_start(at, kind);
                (self.state, self.in_key) = (State::String, false);
                self.string(chunk, at + 1)
            }
            Kind::Object | Kind::Array => self.container(chunk, at, kind),
            Kind::Number | Kind::True | Kind::False | Kind::Null => {
                self.capture_start(at, kind);
                if let Some(end) = scalar_end(chunk, at) {
                    self.end_value(chunk, end)?;
                    return Ok(end);
                }
                self.state = match byte {
                    b'-' => State::Minus,
                    b'0' => State::Zero,
                    b't' => State::Literal(u32::from_le_bytes(*b"rue\0")),
                    b'f' => State::Literal(u32::from_le_bytes(*b"alse")),
                    b'n' => State::Literal(u32::from_le_bytes(*b"ull\0")),
                    _ => State::Digits,
                };
                Ok(at + 1)
            }
        }
    }

    fn container(&mut self, chunk: &[u8], at: usize, kind: Kind) -> Result<usize, At> {
        self.capture_start(at, kind);
        let (mut stack, floor) = (self.stack, self.stack.depth);
        let whole = floor == 2 || floor == 1 && self.parent.is_none();
        if whole && self.open_at(floor).is_some() {
            let skipped = skip(
                chunk,
                &mut Marks::new(),
                at,
                State::Value,
                &mut stack,
                floor,
            );
            if skipped.state == State::After && stack.depth == floor {
                self.capture_content(chunk.get(at + 1..skipped.at).unwrap_or_default());
                self.end_value(chunk, skipped.at)?;
                return Ok(skipped.at);
            }
        }
        let object = kind == Kind::Object;
        if !self.stack.open(object) {
            let most = self.stack.most;
            return Err((self.base + at, JsonFaultKind::TooDeep { most }));
        }
        self.state = if object {
            State::FirstKey
        } else {
            State::FirstElement
        };
        Ok(at + 1)
    }

    /// A value ends before `end`, a place in this chunk.
    #[inline]
    fn end_value(&mut self, chunk: &[u8], end: usize) -> Result<(), At> {
        self.state = State::After;
        if self.stack.depth <= 2 && self.stack.depth > 0 {
            self.capture_end(chunk, end)
        } else {
            Ok(())
        }
    }

    #[inline]
    fn close(&mut self, chunk: &[u8], at: usize) -> Result<usize, At> {
        if self.stack.depth == 2 {
            self.parent = None;
        }
        self.stack.close();
        self.end_value(chunk, at + 1)?;
        Ok(at + 1)
    }

    #[cold]
    fn unexpected(&self, at: usize, found: u8) -> At {
        let wanted = self.state.wanted(self.stack.in_object());
        (self.base + at, JsonFaultKind::Unexpected { found, wanted })
    }
}
