//! TOML documents that people write: every fault is told at once, each with the path of its member.
//!
//! Invariant: a member that nobody knows is a fault; a member has one fault at most.
//! Not here: what members mean (whoever reads).

use std::fmt::{self, Display};
use std::str::FromStr;
use std::time::Duration;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_path_to_error::{Path, Segment};
use toml::Value;

/// One fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Such as `case[2].call[0].headers`; empty where it is of the whole document.
    pub(crate) path: String,
    pub(crate) says: String,
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            return f.write_str(&self.says);
        }
        write!(f, "{}: {}", self.path, self.says)
    }
}

/// The faults so far.
#[derive(Debug, Default)]
pub(crate) struct Faults(pub(crate) Vec<Fault>);

impl Faults {
    /// Adds one, unless the member has one already.
    pub(crate) fn add(&mut self, path: impl Into<String>, says: impl Into<String>) {
        let (path, says) = (path.into(), says.into());
        if path.is_empty() || !self.has(&path) {
            self.0.push(Fault { path, says });
        }
    }

    fn has(&self, path: &str) -> bool {
        self.0.iter().any(|fault| fault.path == path)
    }

    /// What was read, or its fault.
    pub(crate) fn of<T>(&mut self, path: &str, read: Result<T, impl Into<String>>) -> Option<T> {
        read.map_err(|says| self.add(path, says)).ok()
    }

    /// A member that has to be there.
    pub(crate) fn needed<T>(&mut self, path: &str, name: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.add(member(path, name), "has to be there");
        }
        value
    }

    /// A whole document.
    pub(crate) fn document<T: DeserializeOwned>(&mut self, text: &str) -> Option<T> {
        let table = text.parse::<toml::Table>();
        let table = table.map_err(|error| error.to_string().trim_end().to_owned());
        let table = self.of("", table)?;
        self.table("", Value::Table(table))
    }

    /// A table. Members with a fault are left out of it, so that the others are read all the same.
    pub(crate) fn table<T: DeserializeOwned>(&mut self, path: &str, value: Value) -> Option<T> {
        let mut rest = value;
        loop {
            let error = match serde_path_to_error::deserialize::<_, T>(rest.clone()) {
                Ok(read) => return Some(read),
                Err(error) => error,
            };
            let at = match error.path().to_string() {
                own if own == "." => path.to_owned(),
                own => member(path, &own),
            };
            let says = error.inner().message();
            let missing = says.strip_prefix("missing field `");
            match missing.and_then(|says| says.strip_suffix('`')) {
                Some(name) => self.add(member(&at, name), "has to be there"),
                None => self.add(at, says),
            }
            if !left_out(&mut rest, error.path()) {
                return None;
            }
        }
    }

    /// Tables of a list, each with its path.
    pub(crate) fn tables<T: DeserializeOwned>(
        &mut self,
        path: &str,
        values: Vec<Value>,
    ) -> Vec<(String, T)> {
        let numbered = values.into_iter().enumerate();
        let read = numbered.filter_map(|(at, value)| {
            let path = format!("{path}[{at}]");
            let read = self.table(&path, value)?;
            Some((path, read))
        });
        read.collect()
    }
}

/// The path of a member.
fn member(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// Takes the member at the path out of the value, if there is one.
fn left_out(value: &mut Value, path: &Path) -> bool {
    let names = path.iter().map_while(|segment| match segment {
        Segment::Map { key } => Some(key.as_str()),
        Segment::Seq { .. } | Segment::Enum { .. } | Segment::Unknown => None,
    });
    let mut names = names.peekable();
    let mut table = value;
    while let Some(name) = names.next() {
        let is_table = table.get(name).is_some_and(Value::is_table);
        if names.peek().is_none() || !is_table {
            let table = table.as_table_mut();
            return table.is_some_and(|table| table.remove(name).is_some());
        }
        let Some(below) = table.get_mut(name) else {
            return false;
        };
        table = below;
    }
    false
}

/// A time such as `60s`, `5m` or `3h`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time(pub(crate) Duration);

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let seconds = experiment::arrivals::time(text)?;
        let time = Duration::try_from_secs_f64(seconds);
        time.map(Self).map_err(|error| error.to_string())
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(text: D) -> Result<Self, D::Error> {
        parsed(text)
    }
}

/// A text that has a meaning of its own, such as a query.
pub(crate) fn parsed<'de, T, D>(text: D) -> Result<T, D::Error>
where
    T: FromStr<Err: Display>,
    D: Deserializer<'de>,
{
    let text = String::deserialize(text)?;
    text.parse().map_err(D::Error::custom)
}

#[cfg(test)]
mod tests;
