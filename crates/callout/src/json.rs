//! JSON of answers, read strictly.
//!
//! Invariant: no member stands twice in any object; what two readers could take for two things is refused. How a number
//! may be written is said here, once for all answers.
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
        Ok(_) => Err(Fault::Garbage("it is not a JSON object")),
        Err(_) => Err(Fault::Garbage(
            "it is not JSON, or a member of it stands twice",
        )),
    }
}

/// A member; none where it is absent, or null, which says no more.
pub(crate) fn member<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}

/// A member that is a text; none where it is absent.
pub(crate) fn text<'a>(
    members: &'a Map<String, Value>,
    name: &str,
    otherwise: &'static str,
) -> Result<Option<&'a str>, Fault> {
    match member(members, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Fault::Garbage(otherwise)),
    }
}

/// A member that is a number of seconds, however it is written (`7`, `7.9`, `7e0`, `"7"`), without its fraction; none
/// where it is absent. One below zero, or that no integer of 64 bits holds, is none of them.
pub(crate) fn seconds(
    members: &Map<String, Value>,
    name: &str,
    otherwise: &'static str,
) -> Result<Option<u64>, Fault> {
    let seconds = match member(members, name) {
        None => return Ok(None),
        Some(Value::Number(number)) => {
            let whole = number.as_u64();
            whole.or_else(|| number.as_f64().and_then(floor))
        }
        Some(Value::String(digits)) => {
            let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
            let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
            let is_number = is_digits(whole) && is_digits(fraction) && !fraction.is_empty();
            whole.parse().ok().filter(|_| is_number)
        }
        Some(_) => None,
    };
    seconds.map(Some).ok_or(Fault::Garbage(otherwise))
}

/// A number from zero to less than 2^53, without its fraction: beyond, a float holds no second exactly.
fn floor(seconds: f64) -> Option<u64> {
    const TWO_TO_53: f64 = 9_007_199_254_740_992.0;
    let is_exact = (0.0..TWO_TO_53).contains(&seconds);
    is_exact.then_some(seconds as u64)
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
