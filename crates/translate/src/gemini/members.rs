//! Members of Google's bodies, each of which may be written in two forms: `maxOutputTokens` and `max_output_tokens`
//! (<https://protobuf.dev/programming-guides/json/>). Its own documentation uses both.
//!
//! Invariant: where both stand, it is a fault: nobody knows which one counts.

use std::borrow::Cow;

use crate::fault::{Fault, Result};
use crate::raw::{Object, Raw};

/// The members of an object that nobody has taken yet.
#[derive(Debug)]
pub(super) struct Members<'a>(Object<'a>);

impl<'a> Members<'a> {
    pub(super) fn of(value: Raw<'a>) -> Result<Self> {
        Ok(Self(value.object()?))
    }

    /// Takes a member, by its name of small and capital letters.
    pub(super) fn take(&mut self, name: &str) -> Result<Option<(Cow<'static, str>, Raw<'a>)>> {
        let other = snake(name);
        let first = self.0.take(name);
        let second = match other == name {
            true => None,
            false => self.0.take(&other),
        };
        match (first, second) {
            (Some(_), Some(_)) => {
                let says = format!("is also said as {other}");
                Err(Fault::new(says).within(name))
            }
            (Some(value), None) => Ok(Some((name.to_owned().into(), value))),
            (None, Some(value)) => Ok(Some((other.into(), value))),
            (None, None) => Ok(None),
        }
    }

    /// Takes a member and reads it; a fault names it.
    pub(super) fn read<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Raw<'a>) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some((name, value)) = self.take(name)? else {
            return Ok(None);
        };
        read(value).map(Some).map_err(|fault| fault.within(&name))
    }

    /// The same of one that has to be there.
    pub(super) fn need<T>(
        &mut self,
        name: &str,
        read: impl FnOnce(Raw<'a>) -> Result<T>,
    ) -> Result<T> {
        let value = self.read(name, read)?;
        value.ok_or_else(|| Fault::new("is missing").within(name))
    }

    pub(super) fn text(&mut self, name: &str) -> Result<Option<Cow<'a, str>>> {
        self.read(name, Raw::text)
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<bool> {
        Ok(self.read(name, Raw::flag)?.unwrap_or(false))
    }

    /// What is left.
    pub(super) fn into_object(self) -> Object<'a> {
        self.0
    }

    /// Refuses what is left.
    pub(super) fn nothing_more(self) -> Result<()> {
        match self.0.rest().next() {
            None => Ok(()),
            Some((name, _)) => Err(unknown().within(&name)),
        }
    }
}

pub(super) fn unknown() -> Fault {
    Fault::new("is a member that this gate cannot tell a backend of another dialect")
}

/// Items of a list, or the one that stands there without one, which Google takes too.
pub(super) fn items(value: Raw<'_>) -> Result<Vec<Raw<'_>>> {
    match value.is_object() {
        true => Ok(vec![value]),
        false => value.list(),
    }
}

/// A name in the form of words with `_` between them.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}
