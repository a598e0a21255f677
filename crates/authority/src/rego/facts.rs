//! The facts of a call as a policy's `input`: one object, with the members that the policy can look at.
//!
//! Invariant: what a call has not is not there: `input.user` is undefined without a user, and so is what is made of it.
//! Numbers that JSON has no word for (not a number, infinity) or that are not exact refuse. So do claims of more than [`VALUES_MAX`] values: a
//! step of a policy can look at all of them (`x in list`), and claims are chosen by who calls.

use std::borrow::Cow;
use std::sync::Arc;

use policy::authority::{Asked, Claim, Members};
use regorus::Value;
use regorus::value::Object;

/// How deep claims may nest.
const DEPTH_MAX: usize = 64;

/// How many values claims may have, all told.
pub(super) const VALUES_MAX: usize = 1024;

/// The members of `input`.
const NAMES: [&str; 13] = [
    "workload",
    "key",
    "user",
    "tags",
    "claims",
    "method",
    "path",
    "operation",
    "model",
    "route",
    "backends",
    "source",
    "time_ns",
];

/// Which members a policy can look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Needs {
    /// By the order of [`NAMES`].
    is_needed: [bool; NAMES.len()],
}

impl Needs {
    /// Of modules' texts: the names behind every `input`; all of them where something else stands behind one.
    pub(super) fn of<'t>(modules: impl IntoIterator<Item = &'t str>) -> Self {
        let mut needs = Self {
            is_needed: [false; NAMES.len()],
        };
        for text in modules {
            for (at, word) in text.match_indices("input") {
                let before = text.get(..at).unwrap_or_default();
                let after = text.get(at + word.len()..).unwrap_or_default();
                if !before.ends_with(is_in_name) && !after.starts_with(is_in_name) {
                    needs.add(after);
                }
            }
        }
        needs
    }

    /// By what stands behind `input`.
    fn add(&mut self, after: &str) {
        let named = match after.strip_prefix('.') {
            Some(path) => path.split(|c| !is_in_name(c)).next(),
            None => after
                .strip_prefix("[\"")
                .and_then(|path| path.split('"').next()),
        };
        let place = named.and_then(|named| NAMES.iter().position(|name| *name == named));
        match place.and_then(|place| self.is_needed.get_mut(place)) {
            Some(needed) => *needed = true,
            None => self.is_needed = [true; NAMES.len()],
        }
    }
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The members' names as values, for a thread to lend out.
pub(super) fn names() -> Vec<Value> {
    NAMES.iter().map(|name| Value::from(*name)).collect()
}

/// The input document; `names` are those of [`names`]. An error says why there is none.
pub(super) fn input(
    asked: &Asked<'_>,
    needs: &Needs,
    names: &[Value],
) -> Result<Value, Cow<'static, str>> {
    let mut members = Object::new();
    for ((name, key), needed) in NAMES.iter().zip(names).zip(needs.is_needed) {
        if !needed {
            continue;
        }
        if let Some(value) = member(asked, name)? {
            members.insert(key.clone(), value);
        }
    }
    Ok(Value::Object(Arc::new(members)))
}

fn member(asked: &Asked<'_>, name: &str) -> Result<Option<Value>, Cow<'static, str>> {
    Ok(Some(match name {
        "workload" => Value::from(asked.workload),
        "key" => return Ok(asked.key.map(Value::from)),
        "user" => return Ok(asked.user.map(Value::from)),
        "tags" => tags(asked.tags),
        "claims" => object(asked.claims, 0, &mut 0)?,
        "method" => Value::from(asked.method),
        "path" => Value::from(asked.path),
        "operation" => Value::from(asked.operation),
        "model" => return Ok(asked.model.map(Value::from)),
        "route" => Value::from(asked.route),
        "backends" => {
            let names: Vec<Value> = asked
                .backends
                .iter()
                .map(|name| Value::from(*name))
                .collect();
            Value::from(names)
        }
        "source" => Value::from(asked.source.to_canonical().to_string()),
        "time_ns" => Value::from(u128::from(asked.unix_ms) * 1_000_000),
        _ => return Ok(None),
    }))
}

/// Of a name that stands twice the first counts.
fn tags(tags: &[(&str, &str)]) -> Value {
    let pair = |(name, value): &(&str, &str)| (Value::from(*name), Value::from(*value));
    let members: Object = tags.iter().rev().map(pair).collect();
    Value::Object(Arc::new(members))
}

fn object(members: &Members, depth: usize, seen: &mut usize) -> Result<Value, Cow<'static, str>> {
    let mut made = Object::new();
    for (name, claim) in members.iter() {
        made.insert(Value::from(name), value(claim, depth + 1, seen)?);
    }
    Ok(Value::Object(Arc::new(made)))
}

fn value(claim: &Claim, depth: usize, seen: &mut usize) -> Result<Value, Cow<'static, str>> {
    if depth > DEPTH_MAX {
        return Err(Cow::Borrowed("claims nest deeper than 64"));
    }
    *seen += 1;
    if *seen > VALUES_MAX {
        return Err(Cow::Borrowed("claims have more than 1024 values"));
    }
    Ok(match claim {
        Claim::Null => Value::Null,
        Claim::Bool(value) => Value::Bool(*value),
        Claim::Int(value) => Value::from(*value),
        Claim::Large(value) => Value::from(*value),
        Claim::Inexact => {
            return Err(Cow::Borrowed(
                "a claim is a number of more digits than are told apart",
            ));
        }
        Claim::Float(value) if value.is_finite() => Value::from(*value),
        Claim::Float(_) => {
            return Err(Cow::Borrowed(
                "a claim is not a number that JSON could hold",
            ));
        }
        Claim::Text(value) => Value::from(&**value),
        Claim::Map(members) => object(members, depth, seen)?,
        Claim::List(values) => {
            let made: Result<Vec<Value>, _> =
                values.iter().map(|of| value(of, depth + 1, seen)).collect();
            Value::from(made?)
        }
    })
}
