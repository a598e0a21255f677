//! The claims of a token that was found good.
//!
//! Invariant: one exists only where [`crate::verify()`] made it.
//! Not here: what they allow (`policy`).

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::refused::Refused;

/// The claims of a token that was found good. A copy is cheap.
#[derive(Clone, PartialEq)]
pub struct Claims {
    all: Arc<Map<String, Value>>,
    expires: Option<u64>,
}

impl Claims {
    pub(crate) fn new(all: Arc<Map<String, Value>>, expires: Option<u64>) -> Self {
        Self { all, expires }
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> &Map<String, Value> {
        &self.all
    }

    /// When the token ends, in seconds since 1970, a fraction left off. `None` for a token without `exp`.
    #[must_use]
    pub fn expires(&self) -> Option<u64> {
        self.expires
    }

    /// What stands at a path, of any type. `None` where nothing does.
    #[must_use]
    pub fn value(&self, path: &Path) -> Option<&Value> {
        let (first, rest) = path.members.split_first()?;
        let first = self.all.get(&**first)?;
        rest.iter()
            .try_fold(first, |value, name| value.as_object()?.get(&**name))
    }

    /// The text at a path. `None` where there is none, and where something else stands; `value` tells which.
    #[must_use]
    pub fn text(&self, path: &Path) -> Option<&str> {
        self.value(path)?.as_str()
    }
}

/// Claims tell of people: only how many there are is shown.
impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claims")
            .field("count", &self.all.len())
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

/// Where a claim stands: the name of a member, then of a member of that, and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    members: Vec<Box<str>>,
}

impl Path {
    /// Of names between dots: `realm_access.role`. A name that has a dot itself needs [`Path::members`].
    #[must_use]
    pub fn dotted(path: &str) -> Self {
        Self::members(path.split('.'))
    }

    /// Of a list of names: `["kubernetes.io", "namespace"]`. An empty one leads to nothing.
    pub fn members<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        Self {
            members: names.into_iter().map(Box::from).collect(),
        }
    }
}

/// A claim that is a text, if it is there.
pub(crate) fn text<'c>(
    claims: &'c Map<String, Value>,
    name: &'static str,
) -> Result<Option<&'c str>, Refused> {
    match claims.get(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Refused::Mistyped(name)),
    }
}

/// A claim that is a time, if it is there: seconds since 1970, a fraction left off.
pub(crate) fn time(
    claims: &Map<String, Value>,
    name: &'static str,
) -> Result<Option<u64>, Refused> {
    let Some(value) = claims.get(name) else {
        return Ok(None);
    };
    let whole = value.as_u64().filter(|whole| *whole < 1 << 53);
    whole
        .or_else(|| value.as_f64().and_then(floor))
        .map(Some)
        .ok_or(Refused::Mistyped(name))
}

/// A number from zero to less than 2^53, without its fraction. Every whole number there has an exact float.
fn floor(seconds: f64) -> Option<u64> {
    const TWO_TO_53: f64 = 9_007_199_254_740_992.0;
    let is_time = (0.0..TWO_TO_53).contains(&seconds);
    is_time.then_some(seconds as u64)
}

#[cfg(test)]
mod tests;
