//! JSON of answers, read strictly.
//!
//! Invariant: no member stands twice in any object; what two readers could take for two things is refused.
//! Not here: what an answer must hold (who asked).

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::fault::Fault;

/// Reads an object.
pub(crate) fn object(body: &[u8]) -> Result<Map<String, Value>, Fault> {
    match serde_json::from_slice(body) {
        Ok(Strict(Value::Object(members))) => Ok(members),
        Ok(_) => Err(Fault::Garbage("it is no JSON object")),
        Err(_) => Err(Fault::Garbage(
            "it is not JSON, or a member of it stands twice",
        )),
    }
}

/// A member that is a text; none where it is absent.
pub(crate) fn text<'a>(
    members: &'a Map<String, Value>,
    name: &str,
    otherwise: &'static str,
) -> Result<Option<&'a str>, Fault> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Fault::Garbage(otherwise)),
    }
}

/// A member that is a whole number, not below zero; none where it is absent.
pub(crate) fn whole(
    members: &Map<String, Value>,
    name: &str,
    otherwise: &'static str,
) -> Result<Option<u64>, Fault> {
    match members.get(name) {
        None => Ok(None),
        Some(value) => value.as_u64().map(Some).ok_or(Fault::Garbage(otherwise)),
    }
}

/// A value without double members.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(Self)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut all = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            all.push(item);
        }
        Ok(Value::Array(all))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut all = Map::new();
        while let Some((name, Strict(value))) = members.next_entry::<String, Strict>()? {
            if all.insert(name, value).is_some() {
                return Err(A::Error::custom("a member stands twice"));
            }
        }
        Ok(Value::Object(all))
    }
}

#[cfg(test)]
mod tests;
