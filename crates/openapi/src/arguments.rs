//! Arguments of a call, as their client wrote them.
//!
//! Invariant: a number goes on in the digits in which it came, and no argument stands twice.
//! Not here: where they go (`parameter`, `body`).

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// How deep an argument that is no body may be nested.
const DEPTH_MAX: usize = 8;

/// The members of a JSON object, each once, as they stand.
pub(crate) struct Members<'a>(pub(crate) Vec<(String, &'a RawValue)>);

/// The items of a JSON list, as they stand.
struct Items<'a>(Vec<&'a RawValue>);

/// A value that is written as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Written {
    Nothing,
    Text(String),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

impl Written {
    /// What a value of JSON is.
    ///
    /// # Errors
    /// It is nested too deep, or a member of it stands twice.
    pub(crate) fn of(raw: &RawValue) -> Result<Self, String> {
        Self::at(raw, 0)
    }

    fn at(raw: &RawValue, depth: usize) -> Result<Self, String> {
        let text = raw.get();
        if depth > DEPTH_MAX {
            return Err(format!("is nested more than {DEPTH_MAX} deep"));
        }
        let read = |error: serde_json::Error| error.to_string();
        Ok(match text.as_bytes().first() {
            Some(b'"') => Self::Text(serde_json::from_str(text).map_err(read)?),
            Some(b'[') => {
                let Items(items) = serde_json::from_str(text).map_err(read)?;
                let items = items.into_iter().map(|item| Self::at(item, depth + 1));
                Self::List(items.collect::<Result<_, _>>()?)
            }
            Some(b'{') => {
                let Members(members) = serde_json::from_str(text).map_err(read)?;
                let members = members.into_iter();
                let members = members.map(|(name, of)| Ok((name, Self::at(of, depth + 1)?)));
                Self::Object(members.collect::<Result<_, String>>()?)
            }
            Some(b'n') => Self::Nothing,
            _ => Self::Text(text.to_owned()),
        })
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Members<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut of: A) -> Result<Self::Value, A::Error> {
                let mut members: Vec<(String, &RawValue)> = Vec::new();
                while let Some((name, value)) = of.next_entry::<String, &RawValue>()? {
                    if members.iter().any(|(before, _)| *before == name) {
                        let says = format!("`{name}` stands twice");
                        return Err(serde::de::Error::custom(says));
                    }
                    members.push((name, value));
                    if members.len() > MEMBERS_MAX {
                        let says = format!("it has more than {MEMBERS_MAX} members");
                        return Err(serde::de::Error::custom(says));
                    }
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Reading)
    }
}

/// Most members of one object that are taken apart: each is compared with all before it.
const MEMBERS_MAX: usize = 1_000;

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reading;
        impl<'de> Visitor<'de> for Reading {
            type Value = Items<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut of: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = of.next_element::<&RawValue>()? {
                    items.push(item);
                }
                Ok(Items(items))
            }
        }
        from.deserialize_seq(Reading)
    }
}
