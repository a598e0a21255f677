//! A reader of an object that lies whole in memory.
//!
//! Invariant: what it has gone past is good by the grammar. `None` says only that it cannot go on.
//! Not here: objects that arrive in parts, and where a fault is (`scan`).

use std::borrow::Cow;
use std::ops::Range;

use super::capture::KEY_LIMIT_BYTES;
use super::container_stack::ContainerStack;
use super::found::Kind;
use super::marks::Marks;
use super::short::{short_count, word_at};
use super::skip::skip;
use super::state::State;
use super::text::unescape;
use super::token::{is_ascii, kind_of, next_byte, scalar_end, stands};

/// Goes through members one by one.
///
/// ```
/// let mut reader = wire::json::Reader::new(br#"{"prompt_tokens": 3}"#);
/// let mut more = reader.open().ok_or("no object")?;
/// while more {
///     let name = reader.name().ok_or("no name")?;
///     let (kind, raw) = reader.value().ok_or("no value")?;
///     assert_eq!((&*name, kind, raw), (&b"prompt_tokens"[..], wire::json::Kind::Number, &b"3"[..]));
///     more = reader.more().ok_or("neither comma nor brace")?;
/// }
/// assert!(reader.is_at_end());
/// # Ok::<(), &str>(())
/// ```
#[derive(Debug)]
pub struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
    marks: Marks,
}

/// Where a reader was.
#[derive(Debug, Clone, Copy)]
pub struct Spot {
    at: usize,
    depth: u32,
}

impl<'a> Reader<'a> {
    /// A reader at the start of this text.
    pub const fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            marks: Marks::new(),
        }
    }

    /// Goes into the object that starts here: whether it has members.
    #[inline]
    pub fn open(&mut self) -> Option<bool> {
        self.take(b'{')?;
        self.depth += 1;
        if self.peek()? == b'}' {
            self.at += 1;
            self.depth -= 1;
            return Some(false);
        }
        Some(true)
    }

    /// Goes into the list that starts here: whether it has items, which [`more_items`](Self::more_items) goes on to.
    #[inline]
    pub fn open_list(&mut self) -> Option<bool> {
        self.take(b'[')?;
        self.depth += 1;
        if self.peek()? == b']' {
            self.at += 1;
            self.depth -= 1;
            return Some(false);
        }
        Some(true)
    }

    /// Goes past a comma, or out of the list: whether another item comes.
    #[inline]
    pub fn more_items(&mut self) -> Option<bool> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b',' => Some(true),
            b']' => {
                self.depth -= 1;
                Some(false)
            }
            _ => None,
        }
    }

    /// The next member's name, without escapes; one too long for anybody to ask for may come empty.
    #[inline(always)]
    pub fn name(&mut self) -> Option<Cow<'a, [u8]>> {
        if self.text.get(self.at) == Some(&b'"') {
            let from = self.at + 1;
            let end = self.marks.next(self.text, from);
            if let Some(name) = self.text.get(from..end)
                && stands(self.text, end, b"\":")
                && is_ascii(name)
            {
                self.at = end + 2;
                return Some(Cow::Borrowed(name));
            }
        }
        self.other_name()
    }

    /// Goes past the next member's name and its colon: where the name is. `None` says that it has escapes or blanks behind it, and leaves
    /// the reader where it is.
    #[inline(always)]
    pub fn plain_name(&mut self) -> Option<Range<usize>> {
        let name = self.plain()?;
        if self.text.get(name.end + 1) != Some(&b':') {
            return None;
        }
        self.at = name.end + 2;
        Some(name)
    }

    /// Goes past the text that starts here: where it is, without its quotes. `None` says that it has escapes or is no text, and leaves the
    /// reader where it is.
    #[inline(always)]
    pub fn plain_text(&mut self) -> Option<Range<usize>> {
        let text = self.plain()?;
        self.at = text.end + 1;
        Some(text)
    }

    /// Goes past what is written just so, where it stands here: members of a known form, which open and close nothing. `None` says nothing,
    /// and leaves the reader where it is.
    #[inline(always)]
    pub fn past(&mut self, written: &str) -> Option<()> {
        let stands = self.text.get(self.at..)?.starts_with(written.as_bytes());
        self.at += if stands { written.len() } else { 0 };
        stands.then_some(())
    }

    /// Where the string is that starts here and has no escapes.
    #[inline(always)]
    fn plain(&mut self) -> Option<Range<usize>> {
        if self.peek()? != b'"' {
            return None;
        }
        let from = self.at + 1;
        let end = self.marks.next(self.text, from);
        (self.text.get(end) == Some(&b'"')).then_some(from..end)
    }

    #[cold]
    fn other_name(&mut self) -> Option<Cow<'a, [u8]>> {
        self.take(b'"')?;
        let from = self.at;
        self.at = self.marks.string_end(self.text, from).ok()?;
        let raw = self.text.get(from..self.at - 1)?;
        self.take(b':')?;
        if raw.len() > KEY_LIMIT_BYTES {
            return Some(Cow::Borrowed(b""));
        }
        Some(match unescape(raw)? {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
            Cow::Owned(text) => Cow::Owned(text.into_bytes()),
        })
    }

    /// Goes past a number that is a few plain digits, right here and with more after it. `None` says nothing,
    /// and leaves the reader where it is.
    #[inline(always)]
    pub fn short_count(&mut self) -> Option<u32> {
        let (count, length) = short_count(word_at(self.text, self.at)?)?;
        self.at += length;
        Some(count)
    }

    /// Goes past the value that starts here: what it is, and its bytes.
    #[inline(always)]
    pub fn value(&mut self) -> Option<(Kind, &'a [u8])> {
        let kind = self.kind()?;
        let from = self.at;
        self.at = match kind {
            Kind::String => self.marks.string_end(self.text, from + 1).ok()?,
            Kind::Object | Kind::Array => self.container_end()?,
            _ => scalar_end(self.text, from)?,
        };
        Some((kind, self.text.get(from..self.at)?))
    }

    /// Goes past the value that starts here, whatever it is.
    #[inline(always)]
    pub fn pass(&mut self) -> Option<()> {
        self.at = match self.peek()? {
            b'"' => self.marks.string_end(self.text, self.at + 1).ok()?,
            b'{' | b'[' => self.container_end()?,
            _ => scalar_end(self.text, self.at)?,
        };
        Some(())
    }

    #[inline(never)]
    fn container_end(&mut self) -> Option<usize> {
        let mut stack = ContainerStack::inside(self.depth);
        let skipped = skip(
            self.text,
            &mut self.marks,
            self.at,
            State::Value,
            &mut stack,
            self.depth,
        );
        (skipped.state == State::After && stack.depth == self.depth).then_some(skipped.at)
    }

    /// What the value is that starts here.
    #[inline(always)]
    pub fn kind(&mut self) -> Option<Kind> {
        kind_of(self.peek()?)
    }

    /// Goes past a comma, or out of the object: whether another member comes.
    #[inline(always)]
    pub fn more(&mut self) -> Option<bool> {
        let byte = self.peek()?;
        self.at += 1;
        match byte {
            b',' => Some(true),
            b'}' => {
                self.depth -= 1;
                Some(false)
            }
            _ => None,
        }
    }

    /// Whether nothing is left.
    pub fn is_at_end(&mut self) -> bool {
        self.depth == 0 && self.peek().is_none()
    }

    /// Where the next byte is.
    #[inline]
    pub const fn place(&self) -> usize {
        self.at
    }

    /// Where it is, to go back to.
    #[inline]
    pub const fn spot(&self) -> Spot {
        Spot {
            at: self.at,
            depth: self.depth,
        }
    }

    /// Goes back to where it was.
    #[inline]
    pub const fn go_back(&mut self, to: Spot) {
        (self.at, self.depth) = (to.at, to.depth);
    }

    /// The next byte that is not blank, and goes to it.
    #[inline(always)]
    pub(super) fn peek(&mut self) -> Option<u8> {
        next_byte(self.text, &mut self.at)
    }

    #[inline(always)]
    fn take(&mut self, wanted: u8) -> Option<()> {
        let found = self.peek()? == wanted;
        self.at += usize::from(found);
        found.then_some(())
    }
}
