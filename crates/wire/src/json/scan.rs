//! The scanner: one pass over the bytes, a bit per open container, no recursion.
//!
//! Invariant: every decision depends on the bytes so far and never on where a chunk ended. What spans
//! chunks (a key, a kept value) is carried in small bounded buffers.
//! Not here: the skip through a string's plain bytes (`text`).

use super::capture::{Found, Kind};
use super::fault::{JsonFault, JsonFaultKind};
use super::interest::{Interests, Repeat, Want};
use super::text::{is_clean, plain_run, unescape};
use super::{DEPTH_LIMIT, NUMBER_LIMIT_BYTES, STRING_LIMIT_BYTES};

/// Longer keys are never compared: no name of interest can be written in so many bytes.
const KEY_LIMIT_BYTES: usize = 64 * 6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Value,
    FirstElement,
    FirstKey,
    Key,
    Colon,
    After,
    String,
    Escape,
    /// Hexadecimal digits still to come.
    Hex(u8),
    /// The letters still to come, the next one lowest.
    Literal(u32),
    Minus,
    Zero,
    Digits,
    Point,
    Fraction,
    Exponent,
    ExponentSign,
    ExponentDigits,
}

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
    interests: &'static Interests,
    state: State,
    /// Bytes of the chunks before this one.
    base: usize,
    depth: u32,
    /// A bit for each open container, the innermost lowest: it is an object.
    objects: u128,
    /// This chunk holds no control character.
    clean: bool,
    /// The string being read is a key.
    in_key: bool,
    /// That key may be one of interest.
    watch_key: bool,
    key_escaped: bool,
    key_at: usize,
    /// The part of the key that came in earlier chunks.
    key_start: Vec<u8>,
    /// The members whose values are open at depth 1 and 2.
    open: [Option<u8>; 2],
    /// The path of the member whose object is at depth 2 and may hold members of interest.
    parent: Option<&'static str>,
    keeping: Option<Keeping>,
    found: Found,
    fault: Option<JsonFault>,
}

/// A value whose bytes are being kept.
#[derive(Clone, Copy, Debug)]
struct Keeping {
    interest: u8,
    depth: u32,
    bound: usize,
    /// Where in the present chunk the value's next byte is.
    from: usize,
}

impl Scanner {
    /// A scanner for one document.
    pub fn new(interests: &'static Interests) -> Self {
        Self {
            interests,
            state: State::Start,
            base: 0,
            depth: 0,
            objects: 0,
            clean: false,
            in_key: false,
            watch_key: false,
            key_escaped: false,
            key_at: 0,
            key_start: Vec::new(),
            open: [None; 2],
            parent: None,
            keeping: None,
            found: Found::with_room(interests),
            fault: None,
        }
    }

    /// Reads the next bytes. After a fault every call returns that fault.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), JsonFault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        if let Err((at, kind)) = self.run(chunk) {
            let fault = JsonFault { offset: at, kind };
            self.fault = Some(fault.clone());
            return Err(fault);
        }
        self.carry(chunk);
        self.base += chunk.len();
        Ok(())
    }

    /// Ends the document.
    pub fn finish(mut self) -> Result<Found, JsonFault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let wanted = match self.state {
            State::Zero | State::Digits | State::Fraction | State::ExponentDigits
                if self.depth == 0 =>
            {
                self.found.length = self.base;
                return Ok(self.found);
            }
            State::After if self.depth == 0 => {
                self.found.length = self.base;
                return Ok(self.found);
            }
            State::Start => {
                return Err(JsonFault {
                    offset: self.base,
                    kind: JsonFaultKind::Empty,
                });
            }
            state => self.wanted(state),
        };
        Err(JsonFault {
            offset: self.base,
            kind: JsonFaultKind::Ends { wanted },
        })
    }

    fn run(&mut self, chunk: &[u8]) -> Result<(), (usize, JsonFaultKind)> {
        self.clean = is_clean(chunk);
        let mut at = 0;
        while let Some(&byte) = chunk.get(at) {
            match self.state {
                State::String => {
                    at = self.string(chunk, at)?;
                    continue;
                }
                State::Escape => self.escape(at, byte)?,
                State::Hex(left) => self.hex(at, byte, left)?,
                State::Literal(rest) => {
                    if u32::from(byte) != rest & 0xff {
                        return Err(self.unexpected(at, byte));
                    }
                    if rest >> 8 == 0 {
                        self.end_value(chunk, at + 1)?;
                    } else {
                        self.state = State::Literal(rest >> 8);
                    }
                }
                State::After
                | State::Value
                | State::Key
                | State::FirstKey
                | State::FirstElement
                | State::Colon
                | State::Start => {
                    if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                        self.token(chunk, at, byte)?;
                    }
                }
                number => match next_in_number(number, byte) {
                    Next::To(state) => self.state = state,
                    Next::End => {
                        self.end_value(chunk, at)?;
                        continue;
                    }
                    Next::Fault => return Err(self.unexpected(at, byte)),
                },
            }
            at += 1;
        }
        Ok(())
    }

    /// A byte between values: punctuation, or the first byte of a key or a value.
    #[inline]
    fn token(&mut self, chunk: &[u8], at: usize, byte: u8) -> Result<(), (usize, JsonFaultKind)> {
        match (self.state, byte) {
            (State::After, _) => self.after_value(chunk, at, byte),
            (State::Key | State::FirstKey, b'"') => {
                self.start_key(at);
                Ok(())
            }
            (State::Colon, b':') => {
                self.state = State::Value;
                Ok(())
            }
            (State::FirstKey, b'}') | (State::FirstElement, b']') => self.close(chunk, at),
            (State::Start, 0xef) => Err((self.base + at, JsonFaultKind::ByteOrderMark)),
            (State::Start | State::Value | State::FirstElement, _) => self.start_value(at, byte),
            _ => Err(self.unexpected(at, byte)),
        }
    }

    /// Reads on in a string, and past what commonly follows one. Gives where to go on.
    #[inline]
    fn string(&mut self, chunk: &[u8], from: usize) -> Result<usize, (usize, JsonFaultKind)> {
        let mut at = from;
        loop {
            at += plain_run(chunk.get(at..).unwrap_or_default(), self.clean);
            match chunk.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.key_escaped = true;
                    if let Some(b'n' | b'"' | b'\\' | b't' | b'/' | b'r' | b'b' | b'f') =
                        chunk.get(at + 1)
                    {
                        at += 2;
                        continue;
                    }
                    self.state = State::Escape;
                    return Ok(at + 1);
                }
                Some(&control) => return Err((self.base + at, JsonFaultKind::Control(control))),
                None => return Ok(at),
            }
        }
        if !self.in_key {
            self.end_value(chunk, at + 1)?;
            if let Some([b',', b'"', ..]) = chunk.get(at + 1..)
                && self.in_object()
            {
                self.start_key(at + 2);
                return Ok(at + 3);
            }
            return Ok(at + 1);
        }
        self.end_key(chunk, at)?;
        if let Some([b':', b'"', ..]) = chunk.get(at + 1..) {
            self.start_string(at + 2);
            return Ok(at + 3);
        }
        Ok(at + 1)
    }

    fn escape(&mut self, at: usize, byte: u8) -> Result<(), (usize, JsonFaultKind)> {
        self.state = match byte {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => State::String,
            b'u' => State::Hex(4),
            _ => return Err((self.base + at, JsonFaultKind::Escape)),
        };
        Ok(())
    }

    fn hex(&mut self, at: usize, byte: u8, left: u8) -> Result<(), (usize, JsonFaultKind)> {
        if !byte.is_ascii_hexdigit() {
            return Err((self.base + at, JsonFaultKind::Escape));
        }
        self.state = if left == 1 {
            State::String
        } else {
            State::Hex(left - 1)
        };
        Ok(())
    }

    #[inline]
    fn after_value(
        &mut self,
        chunk: &[u8],
        at: usize,
        byte: u8,
    ) -> Result<(), (usize, JsonFaultKind)> {
        if self.depth == 0 {
            return Err((self.base + at, JsonFaultKind::Trailing));
        }
        match (byte, self.in_object()) {
            (b',', true) => self.state = State::Key,
            (b',', false) => self.state = State::Value,
            (b'}', true) | (b']', false) => self.close(chunk, at)?,
            _ => return Err(self.unexpected(at, byte)),
        }
        Ok(())
    }

    #[inline]
    fn start_string(&mut self, at: usize) {
        if self.depth <= 2 {
            self.note_start(at, Kind::String);
        }
        self.state = State::String;
        self.in_key = false;
    }

    #[inline]
    fn start_value(&mut self, at: usize, byte: u8) -> Result<(), (usize, JsonFaultKind)> {
        if byte == b'"' {
            self.start_string(at);
            return Ok(());
        }
        let (kind, state) = match byte {
            b'{' => (Kind::Object, State::FirstKey),
            b'[' => (Kind::Array, State::FirstElement),
            b'-' => (Kind::Number, State::Minus),
            b'0' => (Kind::Number, State::Zero),
            b'1'..=b'9' => (Kind::Number, State::Digits),
            b't' => (Kind::True, State::Literal(u32::from_le_bytes(*b"rue\0"))),
            b'f' => (Kind::False, State::Literal(u32::from_le_bytes(*b"alse"))),
            b'n' => (Kind::Null, State::Literal(u32::from_le_bytes(*b"ull\0"))),
            _ => return Err(self.unexpected(at, byte)),
        };
        if self.depth <= 2 {
            self.note_start(at, kind);
        }
        self.state = state;
        if matches!(kind, Kind::Object | Kind::Array) {
            if self.depth == DEPTH_LIMIT {
                return Err((self.base + at, JsonFaultKind::TooDeep));
            }
            self.objects = (self.objects << 1) | u128::from(kind == Kind::Object);
            self.depth += 1;
        }
        Ok(())
    }

    /// A value starts directly in the document, or in a member of it.
    #[inline(never)]
    fn note_start(&mut self, at: usize, kind: Kind) {
        if self.depth == 0 {
            self.found.open = (kind == Kind::Object).then_some(self.base + at + 1);
            return;
        }
        if !self.in_object() {
            if let Some(outer) = self.open_at(1).filter(|_| self.depth == 2)
                && let Some(member) = self.found.slot(outer)
            {
                member.empty = false;
            }
            return;
        }
        let Some(interest) = self.open_at(self.depth) else {
            return;
        };
        let Some(asked) = self.interests.list.get(usize::from(interest)) else {
            return;
        };
        self.found.keep_from_here(interest);
        if let Some(member) = self.found.slot(interest) {
            member.kind = kind;
            member.value.start = self.base + at;
        }
        let bound = match (asked.want, kind) {
            (Want::Scalar, Kind::String) => STRING_LIMIT_BYTES + 2,
            (Want::Scalar, Kind::Number) => NUMBER_LIMIT_BYTES,
            (Want::Raw(bound), _) => bound,
            (Want::Scalar | Want::Place, _) => 0,
        };
        if bound > 0 {
            self.keeping = Some(Keeping {
                interest,
                depth: self.depth,
                bound,
                from: at,
            });
        }
        if self.depth == 1 && kind == Kind::Object && self.interests.has_children(asked.path) {
            self.parent = Some(asked.path);
        }
    }

    /// A value ends before `end`, a place in this chunk.
    #[inline]
    fn end_value(&mut self, chunk: &[u8], end: usize) -> Result<(), (usize, JsonFaultKind)> {
        self.state = State::After;
        if self.depth <= 2 && self.depth > 0 {
            self.note_end(chunk, end)
        } else {
            Ok(())
        }
    }

    #[inline(never)]
    fn note_end(&mut self, chunk: &[u8], end: usize) -> Result<(), (usize, JsonFaultKind)> {
        let slot = match self.depth {
            1 => self.open.first_mut(),
            _ if self.in_object() => self.open.last_mut(),
            _ => None,
        };
        let Some(interest) = slot.and_then(Option::take) else {
            return Ok(());
        };
        if let Some(keeping) = self
            .keeping
            .take_if(|k| k.interest == interest && k.depth == self.depth)
        {
            self.found.keep(
                interest,
                chunk.get(keeping.from..end).unwrap_or_default(),
                keeping.bound,
            );
        }
        let asked = self.interests.list.get(usize::from(interest));
        let (Some(asked), Some(member)) = (asked, self.found.slot(interest)) else {
            return Ok(());
        };
        member.value.end = self.base + end;
        if asked.want != Want::Scalar {
            return Ok(());
        }
        let (start, kind, cut) = (member.value.start, member.kind, member.cut);
        if cut {
            let limit = if kind == Kind::String {
                STRING_LIMIT_BYTES
            } else {
                NUMBER_LIMIT_BYTES
            };
            return Err((
                start,
                JsonFaultKind::TooLong {
                    path: asked.path,
                    limit,
                },
            ));
        }
        let found = &self.found;
        let member = found.member(usize::from(interest));
        if kind == Kind::String && member.and_then(|m| found.text(m)).is_none() {
            return Err((
                start,
                JsonFaultKind::Text {
                    path: Some(asked.path),
                },
            ));
        }
        Ok(())
    }

    #[inline]
    fn start_key(&mut self, at: usize) {
        self.state = State::String;
        self.in_key = true;
        if self.depth > 2 {
            self.watch_key = false;
            return;
        }
        self.watch_key = self.depth == 1 || self.parent.is_some();
        if let Some(member) = self
            .open_at(1)
            .filter(|_| self.depth == 2)
            .and_then(|i| self.found.slot(i))
        {
            member.empty = false;
        }
        self.found.empty = false;
        self.key_escaped = false;
        self.key_at = self.base + at;
        self.key_start.clear();
    }

    /// The key's closing quote is at `end` in this chunk.
    #[inline]
    fn end_key(&mut self, chunk: &[u8], end: usize) -> Result<(), (usize, JsonFaultKind)> {
        self.state = State::Colon;
        if self.watch_key {
            self.match_key(chunk, end)
        } else {
            Ok(())
        }
    }

    #[inline(never)]
    fn match_key(&mut self, chunk: &[u8], end: usize) -> Result<(), (usize, JsonFaultKind)> {
        if self.base + end - self.key_at - 1 > KEY_LIMIT_BYTES {
            return Ok(());
        }
        let here = chunk
            .get((self.key_at + 1).saturating_sub(self.base)..end)
            .unwrap_or_default();
        let raw = if self.key_start.is_empty() {
            here
        } else {
            self.key_start.extend_from_slice(here);
            self.key_start.as_slice()
        };
        let parent = if self.depth == 1 { None } else { self.parent };
        let interest = if self.key_escaped || !raw.is_ascii() {
            let text = unescape(raw).ok_or((self.key_at, JsonFaultKind::Text { path: None }))?;
            self.interests.find(parent, text.as_bytes())
        } else {
            self.interests.find(parent, raw)
        };
        let Some(interest) = interest else {
            return Ok(());
        };
        if let Some(asked) = self.interests.list.get(usize::from(interest))
            && asked.repeat == Repeat::Refuse
            && self.found.has(interest)
        {
            return Err((self.key_at, JsonFaultKind::Duplicate { path: asked.path }));
        }
        self.found.enter(self.interests, interest, self.key_at);
        let slot = if self.depth == 1 {
            self.open.first_mut()
        } else {
            self.open.last_mut()
        };
        if let Some(slot) = slot {
            *slot = Some(interest);
        }
        Ok(())
    }

    #[inline]
    fn close(&mut self, chunk: &[u8], at: usize) -> Result<(), (usize, JsonFaultKind)> {
        if self.depth == 2 {
            self.parent = None;
        }
        self.depth -= 1;
        self.objects >>= 1;
        self.end_value(chunk, at + 1)
    }

    /// Copies what is needed of this chunk before it goes.
    fn carry(&mut self, chunk: &[u8]) {
        if let Some(keeping) = &mut self.keeping {
            self.found.keep(
                keeping.interest,
                chunk.get(keeping.from..).unwrap_or_default(),
                keeping.bound,
            );
            keeping.from = 0;
        }
        let inside = matches!(self.state, State::String | State::Escape | State::Hex(_));
        if inside && self.in_key && self.watch_key && self.key_start.len() <= KEY_LIMIT_BYTES {
            let here = chunk
                .get((self.key_at + 1).saturating_sub(self.base)..)
                .unwrap_or_default();
            let room = (KEY_LIMIT_BYTES + 1).saturating_sub(self.key_start.len());
            self.key_start
                .extend_from_slice(here.get(..room).unwrap_or(here));
        }
    }

    #[inline]
    fn in_object(&self) -> bool {
        self.objects & 1 == 1
    }

    fn open_at(&self, depth: u32) -> Option<u8> {
        let slot = if depth == 1 {
            self.open.first()
        } else {
            self.open.last()
        };
        slot.copied().flatten()
    }

    #[cold]
    fn unexpected(&self, at: usize, found: u8) -> (usize, JsonFaultKind) {
        (
            self.base + at,
            JsonFaultKind::Unexpected {
                found,
                wanted: self.wanted(self.state),
            },
        )
    }

    #[cold]
    fn wanted(&self, state: State) -> &'static str {
        match state {
            State::Start | State::Value => "a value",
            State::FirstElement => "a value or `]`",
            State::FirstKey => "a member name or `}`",
            State::Key => "a member name",
            State::Colon => "`:`",
            State::After if self.in_object() => "`,` or `}`",
            State::After => "`,` or `]`",
            State::String => "the end of a string",
            State::Escape | State::Hex(_) => "the rest of an escape",
            State::Literal(_) => "the rest of `true`, `false` or `null`",
            State::Minus | State::Point | State::Exponent | State::ExponentSign => "a digit",
            State::Zero | State::Digits | State::Fraction | State::ExponentDigits
                if self.in_object() =>
            {
                "`,` or `}`"
            }
            State::Zero | State::Digits | State::Fraction | State::ExponentDigits => "`,` or `]`",
        }
    }
}

enum Next {
    To(State),
    End,
    Fault,
}

#[inline]
fn next_in_number(state: State, byte: u8) -> Next {
    match (state, byte) {
        (State::Minus, b'0') => Next::To(State::Zero),
        (State::Minus, b'1'..=b'9') | (State::Digits, b'0'..=b'9') => Next::To(State::Digits),
        (State::Zero | State::Digits, b'.') => Next::To(State::Point),
        (State::Point | State::Fraction, b'0'..=b'9') => Next::To(State::Fraction),
        (State::Zero | State::Digits | State::Fraction, b'e' | b'E') => Next::To(State::Exponent),
        (State::Exponent, b'+' | b'-') => Next::To(State::ExponentSign),
        (State::Exponent | State::ExponentSign | State::ExponentDigits, b'0'..=b'9') => {
            Next::To(State::ExponentDigits)
        }
        (State::Zero | State::Digits | State::Fraction | State::ExponentDigits, _) => Next::End,
        _ => Next::Fault,
    }
}
