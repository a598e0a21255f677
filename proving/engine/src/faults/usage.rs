//! False counts of tokens: usage that is scaled, absent, null, zero, negative, huge or sent twice.
//!
//! Invariant: only the numbers inside `usage` change, wherever in the document it stands (Responses nests it).
//! Not here: which events are touched (`body`).

use std::str::FromStr;

use serde_json::{Map, Value};

/// What to say of the tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UsageFault {
    /// Every number times this.
    Times(f64),
    /// No usage at all.
    Missing,
    /// `"usage": null`.
    Null,
    /// Every number 0.
    Zero,
    /// Every number negative.
    Negative,
    /// Every number `u64::MAX`.
    Huge,
    /// The event with usage is sent twice.
    Repeated,
}

impl FromStr for UsageFault {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "missing" => Ok(Self::Missing),
            "null" => Ok(Self::Null),
            "zero" => Ok(Self::Zero),
            "negative" => Ok(Self::Negative),
            "huge" => Ok(Self::Huge),
            "repeated" => Ok(Self::Repeated),
            scaled => {
                let factor: f64 = scaled
                    .strip_prefix('x')
                    .and_then(|f| f.parse().ok())
                    .ok_or(())?;
                (factor.is_finite() && factor >= 0.0)
                    .then_some(Self::Times(factor))
                    .ok_or(())
            }
        }
    }
}

impl UsageFault {
    /// The document with this usage. `None` if it has none, and so nothing changes.
    pub(super) fn apply(self, document: &[u8]) -> Option<Vec<u8>> {
        let mut document: Value = serde_json::from_slice(document).ok()?;
        let holder = holder(&mut document)?;
        if self == Self::Missing {
            holder.remove("usage");
        } else if self == Self::Null {
            holder.insert("usage".to_owned(), Value::Null);
        } else {
            self.change(holder.get_mut("usage")?);
        }
        serde_json::to_vec(&document).ok()
    }

    fn change(self, value: &mut Value) {
        match value {
            Value::Object(members) => members.values_mut().for_each(|member| self.change(member)),
            Value::Number(number) => {
                let n = number.as_u64().unwrap_or(0);
                *value = match self {
                    Self::Times(factor) => Value::from((n as f64 * factor).round() as u64),
                    Self::Zero => Value::from(0),
                    Self::Negative => Value::from(-i64::try_from(n.max(1)).unwrap_or(i64::MAX)),
                    Self::Huge => Value::from(u64::MAX),
                    Self::Missing | Self::Null | Self::Repeated => Value::from(n),
                };
            }
            _ => {}
        }
    }
}

/// The object that has a usage which is not null.
fn holder(document: &mut Value) -> Option<&mut Map<String, Value>> {
    let members = document.as_object_mut()?;
    if members.get("usage").is_some_and(Value::is_object) {
        return Some(members);
    }
    members.get_mut("response").and_then(holder)
}
