//! Message heads: one representation for HTTP/1.1 and HTTP/2.
//!
//! Everything that policy checks and everything that is forwarded comes from the same parsed object,
//! so a check and its use can never see different bytes.
//! Invariant: every stored name is a lower-case token; no stored value holds CR, LF or NUL,
//! or begins or ends with a blank.
//! Not here: reading heads from a connection (`http1`; HTTP/2 frames belong to the host), and what to do with a field (`policy`).
#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)]

mod fault;
mod known;
mod lower;
mod request;
mod response;
mod target;

pub use fault::{HeadFault, HeadFaultKind};
pub use known::{Known, KnownSet};
pub use request::{Method, RequestHead, Version};
pub use response::ResponseHead;
#[cfg(test)]
pub(crate) use target::ID_BEGINS;
pub use target::{check_authority, check_path, percent_decoded};

use std::ops::Deref;

use lower::write_lower;

/// The fields of one message, in arrival order. Reusable: `clear` keeps the memory.
#[derive(Debug, Default, Clone)]
pub struct Head {
    buf: Vec<u8>,
    fields: Vec<Field>,
    /// A bit for each kind of which there is a field.
    present: u64,
    /// The same of those of which there are several.
    repeated: u64,
}

#[derive(Debug, Clone, Copy)]
struct Field {
    name: u32,
    value: u32,
    value_len: u32,
    name_len: u16,
    known: Known,
}

/// One field as seen by a reader of a `Head`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldRef<'a> {
    /// Which well-known field this is.
    pub known: Known,
    /// The name, lower-case.
    pub name: &'a [u8],
    /// The value, without surrounding blanks.
    pub value: &'a [u8],
}

/// Whether a value may be a list: most are a few bytes, so that eight are looked at together.
#[inline]
#[must_use]
pub fn has_comma(value: &[u8]) -> bool {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let (words, rest) = value.as_chunks();
    let has = |word: &[u8; 8]| {
        // A comma becomes 0, whose highest bit alone is set by taking one away.
        let word = u64::from_le_bytes(*word) ^ (ONES * u64::from(b','));
        word.wrapping_sub(ONES) & !word & (ONES << 7) != 0
    };
    words.iter().any(has) || rest.contains(&b',')
}

/// The name of a field that is looked for in many heads: what it is among the known ones is found once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldName {
    lower: Box<str>,
    known: Known,
}

impl From<&str> for FieldName {
    fn from(name: &str) -> Self {
        let lower: Box<str> = name.to_ascii_lowercase().into();
        let known = Known::of(lower.as_bytes());
        Self { lower, known }
    }
}

impl Deref for FieldName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.lower
    }
}

/// A field that may appear once appeared more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("field {} is repeated", .0.name())]
pub struct Repeated(pub Known);

impl Head {
    /// An empty head that holds no memory yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets every field and keeps the memory.
    pub fn clear(&mut self) {
        self.buf.clear();
        self.fields.clear();
        (self.present, self.repeated) = (0, 0);
    }

    /// Adds a field. The name may be in any case and is stored lower-case; blanks around the value are dropped.
    ///
    /// # Errors
    /// A name that is not a token, or a value with a control character.
    pub fn push(&mut self, name: &[u8], value: &[u8]) -> Result<(), HeadFault> {
        if name.is_empty() || !name.iter().all(|&b| is_token(b)) {
            return Err(HeadFaultKind::FieldName.into());
        }
        if !value.iter().all(|&b| is_value_byte(b)) {
            return Err(HeadFaultKind::FieldValue.into());
        }
        let value = trim_blanks(value);
        let start = self.buf.len();
        self.buf.extend_from_slice(name);
        self.buf.extend_from_slice(value);
        self.add(name, start, start + name.len(), value.len())
    }

    /// Puts a field in place of all that it has of this name.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub fn replace(&mut self, known: Known, value: &[u8]) -> Result<(), HeadFault> {
        self.fields.retain(|field| field.known != known);
        self.present &= !known.bit();
        self.repeated &= !known.bit();
        self.push(known.name().as_bytes(), value)
    }

    /// Forgets every field and takes a copy of a whole head, whose fields are then named by `add`.
    pub(crate) fn load(&mut self, head: &[u8], fields: usize) {
        self.clear();
        self.buf.extend_from_slice(head);
        self.fields.reserve(fields);
    }

    /// Adds a field whose valid name and trimmed, valid value lie in the buffer at these places.
    #[inline]
    pub(crate) fn add(
        &mut self,
        token: &[u8],
        name: usize,
        value: usize,
        value_len: usize,
    ) -> Result<(), HeadFault> {
        let known = Known::of(token);
        if known.is_many() {
            let to = self.buf.get_mut(name..name + token.len());
            to.unwrap_or_default().make_ascii_lowercase();
        }
        let places = [name, token.len(), value, value_len].map(|at| u32::try_from(at).ok());
        let indexed = match places {
            [Some(name), Some(name_len), Some(value), Some(value_len)] => {
                self.index(known, name, name_len, value, value_len)
            }
            _ => None,
        };
        indexed.ok_or_else(|| HeadFaultKind::HeadTooLarge.into())
    }

    /// Adds a field whose valid name and trimmed, valid value lie at these places of the buffer, or of a
    /// head that `fill` takes later. `None` where they are too far or too long.
    #[inline]
    pub(crate) fn index(
        &mut self,
        known: Known,
        name: u32,
        name_len: u32,
        value: u32,
        value_len: u32,
    ) -> Option<()> {
        self.fields.push(Field {
            name,
            value,
            value_len,
            name_len: name_len.try_into().ok()?,
            known,
        });
        self.repeated |= self.present & known.bit();
        self.present |= known.bit();
        Some(())
    }

    /// Takes a copy of the head in which all fields were indexed. False where one does not lie in it.
    pub(crate) fn fill(&mut self, head: &[u8]) -> bool {
        self.buf.clear();
        self.buf.extend_from_slice(head);
        let named = Known::Other.bit() | Known::Amz.bit();
        self.present & named == 0 || self.lower_names(head)
    }

    /// Writes the names that are read from the buffer in lower case. False where one does not lie in it.
    fn lower_names(&mut self, head: &[u8]) -> bool {
        let mut named = self.fields.iter().filter(|field| field.known.is_many());
        named.all(|field| {
            let name = field.name as usize..field.name as usize + usize::from(field.name_len);
            match (self.buf.get_mut(name.clone()), head.get(name)) {
                (Some(to), Some(name)) => {
                    write_lower(to, name);
                    true
                }
                _ => false,
            }
        })
    }

    /// The number of fields.
    #[must_use]
    pub fn len(&self) -> usize {
        self.fields.len()
    }

    /// Whether there is no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Every field in arrival order.
    pub fn iter(&self) -> impl Iterator<Item = FieldRef<'_>> {
        self.fields.iter().map(|field| self.view(field))
    }

    /// How many fields are of this kind.
    #[must_use]
    pub fn count(&self, known: Known) -> usize {
        self.of(known).count()
    }

    /// The first value of this kind.
    #[must_use]
    pub fn get(&self, known: Known) -> Option<&[u8]> {
        self.of(known).next()
    }

    /// The value of a field that may appear at most once.
    ///
    /// # Errors
    /// The field appears twice or more, whether or not the values agree.
    pub fn only(&self, known: Known) -> Result<Option<&[u8]>, Repeated> {
        if self.present & known.bit() == 0 {
            return Ok(None);
        }
        if self.repeated & known.bit() != 0 {
            return Err(Repeated(known));
        }
        Ok(self.get(known))
    }

    /// Whether there are two fields or more of these kinds, be they of one kind or of several.
    #[inline]
    #[must_use]
    pub const fn has_several(&self, kinds: KnownSet) -> bool {
        let present = self.present & kinds.bits();
        present & present.wrapping_sub(1) != 0 || self.repeated & kinds.bits() != 0
    }

    /// Every value of this kind in arrival order.
    pub fn of(&self, known: Known) -> impl Iterator<Item = &[u8]> {
        self.of_kind(known).map(|field| field.value)
    }

    /// Every field of this kind in arrival order.
    pub fn of_kind(&self, known: Known) -> impl Iterator<Item = FieldRef<'_>> {
        let fields = if self.present & known.bit() == 0 {
            &[]
        } else {
            self.fields.as_slice()
        };
        fields
            .iter()
            .filter(move |field| field.known == known)
            .map(|field| self.view(field))
    }

    /// Every field of one of these kinds in arrival order.
    #[inline]
    pub fn of_any(&self, kinds: KnownSet) -> impl Iterator<Item = FieldRef<'_>> {
        let fields = if self.present & kinds.bits() == 0 {
            &[]
        } else {
            self.fields.as_slice()
        };
        fields
            .iter()
            .filter(move |field| kinds.contains(field.known))
            .map(|field| self.view(field))
    }

    /// Every value under this name, which must be given in lower case.
    #[inline]
    pub fn by_name<'a>(&'a self, lower: &[u8]) -> impl Iterator<Item = &'a [u8]> {
        let fields = self.fields.iter();
        fields
            .filter(move |field| usize::from(field.name_len) == lower.len())
            .map(|field| self.view(field))
            .filter(move |field| field.name == lower)
            .map(|field| field.value)
    }

    /// The same of one whose name is known beforehand, which costs half as much.
    #[inline]
    pub fn named(&self, name: &FieldName) -> impl Iterator<Item = &[u8]> {
        let is_one = !name.known.is_many();
        self.of_kind(name.known)
            .filter(move |field| is_one || field.name == name.as_bytes())
            .map(|field| field.value)
    }

    /// Whether a `Connection` field names this field, which makes it hop-by-hop. Any case.
    #[must_use]
    pub fn connection_names(&self, name: &[u8]) -> bool {
        self.of(Known::Connection).any(|value| {
            value
                .split(|&b| b == b',')
                .any(|option| trim_blanks(option).eq_ignore_ascii_case(name))
        })
    }

    #[inline]
    fn view(&self, field: &Field) -> FieldRef<'_> {
        let slice = |start: u32, len: usize| self.buf.get(start as usize..)?.get(..len);
        FieldRef {
            known: field.known,
            name: if field.known.is_many() {
                slice(field.name, field.name_len.into()).unwrap_or_default()
            } else {
                field.known.name().as_bytes()
            },
            value: slice(field.value, field.value_len as usize).unwrap_or_default(),
        }
    }
}

/// Whether a byte may stand in a token (RFC 9110, 5.6.2).
#[inline]
pub(crate) const fn is_token(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*'
        | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~')
}

/// Whether a byte may stand in a field value (RFC 9110, 5.5).
#[inline]
pub(crate) const fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || (byte >= 0x20 && byte != 0x7f)
}

/// Drops the blanks (space, tab) on both sides.
pub(crate) fn trim_blanks(mut bytes: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = bytes {
        bytes = rest;
    }
    bytes
}

#[cfg(test)]
mod tests;
