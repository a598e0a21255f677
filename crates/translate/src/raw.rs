//! JSON values as they stand in a document, read one level at a time.
//!
//! A value that nobody looks into (a schema, the arguments of a tool) is written on byte for byte: numbers of any length and the
//! order of members are kept.
//! Invariant: a member that is said twice is a fault where anybody looks at it, since readers differ in which one they take.
//! Not here: finding a few members of a body in one pass (`wire::json`).

#[cfg(test)]
pub(crate) mod alike;
mod members;

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use wire::filter::Stop;
use wire::json::{as_text, is_plain};

pub(crate) use self::members::{Members, Seen};
use crate::fault::{Fault, Result};

/// Reads a document of an answer; text is checked once, and not again in each part.
pub(crate) fn read_json<'a, T: Deserialize<'a>>(json: &'a [u8]) -> std::result::Result<T, Stop> {
    let text = std::str::from_utf8(json).map_err(|_| Stop::Malformed)?;
    serde_json::from_str(text).map_err(|_| Stop::Malformed)
}

/// Objects and lists within each other, at most: as many as `wire` reads in a body.
const LEVELS: usize = 128;

/// A JSON value, as the bytes that it is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    /// A document.
    pub(crate) fn read(json: &'a [u8]) -> Option<Self> {
        let value: &RawValue = serde_json::from_str(std::str::from_utf8(json).ok()?).ok()?;
        Some(Self(value.get()))
    }

    /// A document within a text, such as the arguments of a call: an object that is nested no deeper than a body may be.
    pub(crate) fn read_arguments(json: &'a str) -> Option<Self> {
        let (mut depth, mut deepest, mut in_text, mut is_escaped) = (0_usize, 0, false, false);
        for byte in json.bytes() {
            match (in_text, byte) {
                (true, _) if is_escaped => is_escaped = false,
                (true, b'\\') => is_escaped = true,
                (true, b'"') => in_text = false,
                (true, _) => {}
                (false, b'"') => in_text = true,
                (false, b'{' | b'[') => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                (false, b'}' | b']') => depth = depth.saturating_sub(1),
                (false, _) => {}
            }
        }
        let read = Self::read(json.as_bytes()).filter(|arguments| arguments.is_object());
        read.filter(|_| deepest <= LEVELS)
    }

    /// A document that is an object at first sight; what it is comes out when it is taken apart.
    pub(crate) fn unread(json: &'a [u8]) -> Option<Self> {
        let text = as_text(json)?;
        Some(Self(text.trim_ascii())).filter(|document| document.is_object())
    }

    /// What is known to be JSON.
    pub(crate) const fn literal(json: &'a str) -> Self {
        Self(json)
    }

    pub(crate) const fn json(self) -> &'a str {
        self.0
    }

    pub(crate) fn is_null(self) -> bool {
        self.0 == "null"
    }

    pub(crate) fn is_text(self) -> bool {
        self.0.starts_with('"')
    }

    pub(crate) fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// It as a text.
    pub(crate) fn text(self) -> Result<Cow<'a, str>> {
        // serde borrows no `Cow` of its own accord.
        if let Some(plain) = self.0.strip_prefix('"').and_then(|s| s.strip_suffix('"'))
            && is_plain(plain.as_bytes())
        {
            return Ok(Cow::Borrowed(plain));
        }
        let text: String = serde_json::from_str(self.0).map_err(|_| Fault::new("is no text"))?;
        Ok(Cow::Owned(text))
    }

    pub(crate) fn flag(self) -> Result<bool> {
        match self.0 {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Fault::new("is neither true nor false")),
        }
    }

    /// It as a whole number.
    pub(crate) fn whole(self) -> Result<u64> {
        self.0.parse().map_err(|_| Fault::new("is no whole number"))
    }

    /// It as a number, in the digits that it came in.
    pub(crate) fn number(self) -> Result<Self> {
        match self.0.as_bytes().first() {
            Some(b'-' | b'0'..=b'9') => Ok(self),
            _ => Err(Fault::new("is no number")),
        }
    }

    /// It as a number that is whole to whoever reads it: `5.0`, as some clients write it, is `5`.
    pub(crate) fn whole_number(self) -> Result<Self> {
        let number = self.number()?;
        let whole = number.0.split_once('.').filter(|(whole, part)| {
            !whole.is_empty() && !part.is_empty() && part.bytes().all(|digit| digit == b'0')
        });
        Ok(whole.map_or(number, |(whole, _)| Self(whole)))
    }

    /// Its items.
    pub(crate) fn list(self) -> Result<Vec<Self>> {
        let fault = |_| Fault::new("is no list");
        let items: Vec<&RawValue> = serde_json::from_str(self.0).map_err(fault)?;
        Ok(items.into_iter().map(|item| Self(item.get())).collect())
    }

    /// Reads each of its items, with its number; a fault names that.
    pub(crate) fn each<T>(self, mut read: impl FnMut(usize, Self) -> Result<T>) -> Result<Vec<T>> {
        let items = self.list()?.into_iter().enumerate();
        items
            .map(|(nth, item)| read(nth, item).map_err(|fault| fault.item(nth)))
            .collect()
    }

    /// The same of items that are all objects, whose members are found in one pass.
    pub(crate) fn each_object<T>(
        self,
        mut read: impl FnMut(usize, Object<'a>) -> Result<T>,
    ) -> Result<Vec<T>> {
        let quick = Members::of(self.0).whole(Members::objects);
        let items = quick.or_else(|| serde_json::from_str::<Vec<Object<'a>>>(self.0).ok());
        let Some(items) = items else {
            // One of them is none: which one, the slower way tells.
            return self.each(|nth, item| read(nth, item.object()?));
        };
        let items = items.into_iter().enumerate();
        items
            .map(|(nth, item)| read(nth, item).map_err(|fault| fault.item(nth)))
            .collect()
    }

    /// Its members.
    pub(crate) fn object(self) -> Result<Object<'a>> {
        if !self.is_object() {
            return Err(Fault::new("is no object"));
        }
        if let Some(object) = Members::of(self.0).whole(Members::object) {
            return Ok(object);
        }
        let says = "says a member twice, or more of them than any API has";
        serde_json::from_str(self.0).map_err(|_| Fault::new(says))
    }
}

/// The members of an object in their order; those that somebody has taken have no value any more.
#[derive(Debug, Default)]
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, Option<Raw<'a>>)>);

impl<'a> Object<'a> {
    /// A member that stays.
    pub(crate) fn look(&self, name: &str) -> Option<Raw<'a>> {
        let (_, value) = self.0.iter().find(|(key, _)| key == name)?;
        value.filter(|value| !value.is_null())
    }

    /// Takes a member. One that is null is none.
    pub(crate) fn take(&mut self, name: &str) -> Option<Raw<'a>> {
        let mut members = self.0.iter_mut();
        let (_, value) = members.find(|(key, _)| key.len() == name.len() && key == name)?;
        value.take().filter(|value| !value.is_null())
    }

    /// Takes a member and reads it; a fault names it.
    pub(crate) fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Raw<'a>) -> Result<T>,
    ) -> Result<Option<T>> {
        let value = self.take(name).map(read).transpose();
        value.map_err(|fault| fault.within(name))
    }

    /// The same of one that has to be there.
    pub(crate) fn need<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Raw<'a>) -> Result<T>,
    ) -> Result<T> {
        let value = self.read(name, read)?;
        value.ok_or_else(|| Fault::new("is missing").within(name))
    }

    /// Takes the text of a member.
    pub(crate) fn text(&mut self, name: &str) -> Result<Option<Cow<'a, str>>> {
        self.read(name, Raw::text)
    }

    /// Whether members are left that say something.
    pub(crate) fn has_more(&self) -> bool {
        let mut left = self.0.iter().filter_map(|(_, value)| *value);
        left.any(|value| !value.is_null())
    }

    /// The members that are left.
    pub(crate) fn all(self) -> impl Iterator<Item = (Cow<'a, str>, Raw<'a>)> {
        let members = self.0.into_iter();
        members.filter_map(|(name, value)| Some((name, value?)))
    }

    /// The members that are left, but those that are null.
    pub(crate) fn rest(self) -> impl Iterator<Item = (Cow<'a, str>, Raw<'a>)> {
        self.all().filter(|(_, value)| !value.is_null())
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_map(Map)
    }
}

struct Map;

/// An object of an API that is looked into has no more members. Each is compared with those before it.
const MEMBERS_MAX: usize = 128;

impl<'de> Visitor<'de> for Map {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(
        self,
        mut map: A,
    ) -> std::result::Result<Object<'de>, A::Error> {
        let mut members: Vec<(Cow<'de, str>, Option<Raw<'de>>)> = Vec::new();
        while let Some((Text(name), value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
            if members.len() == MEMBERS_MAX || members.iter().any(|(earlier, _)| *earlier == name) {
                return Err(A::Error::custom("a member is said twice"));
            }
            members.push((name, Some(Raw(value.get()))));
        }
        Ok(Object(members))
    }
}

/// A text, borrowed where it has no escape.
#[derive(Debug, Default)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_str(Said)
    }
}

struct Said;

impl<'de> Visitor<'de> for Said {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}
