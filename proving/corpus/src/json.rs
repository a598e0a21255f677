//! JSON as datasets have it: members keep their order, numbers keep their digits, and text that is broken is still read.
//!
//! Python writes most datasets, so `NaN`, halves of surrogate pairs and members that occur twice are read and counted.
//! Invariant: reading is bounded (depth, number of values) and never panics; what is written is valid JSON that every
//! reader takes (UTF-8, finite numbers).
//! Not here: where one record ends and the next begins (`reader::records`).

mod parse;

use std::fmt::{self, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

pub use parse::{JsonError, MAX_DEPTH, MAX_VALUES, Oddities, parse, parse_python};

/// One JSON value.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Json {
    /// Nothing.
    #[default]
    Null,
    /// Yes or no.
    Bool(bool),
    /// A finite number, as it was written.
    Number(Number),
    /// Text.
    String(String),
    /// Values in order.
    Array(Vec<Json>),
    /// Members in order, each name once.
    Object(Vec<(String, Json)>),
}

/// A finite number in JSON's grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number(Box<str>);

impl Number {
    /// A number that is in JSON's grammar and finite as a float of 64 bits; `None` for any other.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let number: serde_json::Number = serde_json::from_str(text).ok()?;
        number.as_f64().filter(|n| n.is_finite())?;
        Some(Self(text.into()))
    }

    /// Its digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Json {
    /// The member `name` of an object; of an object alone.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.as_object()?
            .iter()
            .find(|(n, _)| n == name)
            .map(|(_, value)| value)
    }

    /// The member `name` of an object, unless it is `null`.
    #[must_use]
    pub fn present(&self, name: &str) -> Option<&Json> {
        self.get(name).filter(|value| !value.is_null())
    }

    /// The text of the member `name`.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name)?.as_str()
    }

    /// The elements of the member `name`.
    #[must_use]
    pub fn list(&self, name: &str) -> Option<&[Json]> {
        self.get(name)?.as_array()
    }

    /// Takes the member `name` out of an object.
    pub fn take(&mut self, name: &str) -> Option<Json> {
        let Self::Object(members) = self else {
            return None;
        };
        let at = members.iter().position(|(n, _)| n == name)?;
        Some(members.remove(at).1)
    }

    /// Text.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Elements.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Json]> {
        match self {
            Self::Array(all) => Some(all),
            _ => None,
        }
    }

    /// Members.
    #[must_use]
    pub fn as_object(&self) -> Option<&[(String, Json)]> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }

    /// A whole number that is not negative.
    #[must_use]
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Self::Number(number) => number.0.parse().ok(),
            _ => None,
        }
    }

    /// A number.
    #[must_use]
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Number(number) => number.0.parse().ok(),
            _ => None,
        }
    }

    /// Yes or no.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(b) => Some(*b),
            _ => None,
        }
    }

    /// Whether it is `null`.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether it is an object.
    #[must_use]
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// An object of these members.
    #[must_use]
    pub fn object<const N: usize>(members: [(&str, Json); N]) -> Self {
        Self::Object(members.map(|(name, value)| (name.to_owned(), value)).into())
    }

    /// Drops every member that is `null`, at every depth: columnar files pad records with them.
    pub fn drop_nulls(&mut self) {
        match self {
            Self::Object(members) => {
                members.retain(|(_, value)| !value.is_null());
                members.iter_mut().for_each(|(_, value)| value.drop_nulls());
            }
            Self::Array(all) => all.iter_mut().for_each(Self::drop_nulls),
            _ => {}
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<u64> for Json {
    fn from(number: u64) -> Self {
        Self::Number(Number(number.to_string().into()))
    }
}

impl From<i64> for Json {
    fn from(number: i64) -> Self {
        Self::Number(Number(number.to_string().into()))
    }
}

/// Numbers that are not finite become `null`.
impl From<f64> for Json {
    fn from(number: f64) -> Self {
        serde_json::Number::from_f64(number).map_or(Self::Null, |number| {
            Self::Number(Number(number.to_string().into()))
        })
    }
}

/// In the order that [`Value`] has: that of the alphabet, unless another crate of the build has serde keep it.
impl From<Value> for Json {
    fn from(value: Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(b) => Self::Bool(b),
            Value::Number(number) => Self::Number(Number(number.to_string().into())),
            Value::String(text) => Self::String(text),
            Value::Array(all) => Self::Array(all.into_iter().map(Self::from).collect()),
            Value::Object(members) => Self::Object(
                members
                    .into_iter()
                    .map(|(name, value)| (name, Self::from(value)))
                    .collect(),
            ),
        }
    }
}

/// Compact JSON.
impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(b) => write!(f, "{b}"),
            Self::Number(number) => f.write_str(&number.0),
            Self::String(text) => write_text(f, text),
            Self::Array(all) => {
                f.write_char('[')?;
                for (i, one) in all.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "," })?;
                    one.fmt(f)?;
                }
                f.write_char(']')
            }
            Self::Object(members) => {
                f.write_char('{')?;
                for (i, (name, value)) in members.iter().enumerate() {
                    f.write_str(if i == 0 { "" } else { "," })?;
                    write_text(f, name)?;
                    f.write_char(':')?;
                    value.fmt(f)?;
                }
                f.write_char('}')
            }
        }
    }
}

/// A string in quotes; only what JSON demands is escaped.
fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x8 => "\\b",
            0xc => "\\f",
            0..=0x1f => "",
            _ => continue,
        };
        f.write_str(&text[plain..at])?;
        if escaped.is_empty() {
            write!(f, "\\u{byte:04x}")?;
        } else {
            f.write_str(escaped)?;
        }
        plain = at + 1;
    }
    f.write_str(&text[plain..])?;
    f.write_char('"')
}

/// For `serde_json`'s serializers, which keep the digits of numbers.
impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(b) => serializer.serialize_bool(*b),
            Self::Number(number) => RawValue::from_string(number.0.to_string())
                .map_err(serde::ser::Error::custom)?
                .serialize(serializer),
            Self::String(text) => serializer.serialize_str(text),
            Self::Array(all) => serializer.collect_seq(all),
            Self::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                for (name, value) in members {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

#[cfg(test)]
mod tests;
