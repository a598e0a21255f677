//! Calls that nobody makes, to ask an engine for their tokens: each has a few of the features of a shape.
//!
//! A difference is told by the features that only the probes have that differ (`calibration`), so they are many, small,
//! and made to overlap.
//! Invariant: they are fixed: an engine that did not change answers as it did before.
//! Not here: which question of an engine sees which of them, and asking it (the host).

mod conversations;
mod texts;

use std::borrow::Cow;

use wire::dialect::Operation;

use crate::shape::{Feature, LONG, Shape};

/// A call to ask for.
#[derive(Clone, Debug)]
pub struct Probe {
    /// What it is called where its outcome is shown.
    pub name: &'static str,
    /// The API whose body it is.
    pub operation: Operation,
    /// JSON without `model`.
    pub body: Cow<'static, str>,
    /// What its prompt has in it.
    pub shape: Shape,
}

/// How many there are.
pub const COUNT: usize = texts::ALL.len() + conversations::COUNT + 1;

/// All probes, the simplest of each API first.
#[must_use]
pub fn all() -> Vec<Probe> {
    let mut all: Vec<Probe> = texts::ALL
        .iter()
        .chain(conversations::all())
        .map(|fixed| Probe {
            name: fixed.name,
            operation: fixed.operation,
            body: Cow::Borrowed(fixed.body),
            shape: Shape::of(fixed.features),
        })
        .collect();
    all.push(long());
    all
}

/// One of which all is known beforehand.
struct Fixed {
    name: &'static str,
    operation: Operation,
    body: &'static str,
    features: &'static [Feature],
}

/// Words that no vocabulary makes less than a token each of.
fn long() -> Probe {
    let words = "one two, three. ";
    let times = usize::try_from(LONG).unwrap_or(usize::MAX) / 3 + 1;
    let text = words.repeat(times);
    Probe {
        name: "chat_long",
        operation: Operation::Chat,
        body: Cow::Owned(format!(
            r#"{{"messages":[{{"role":"user","content":"{text}"}}]}}"#
        )),
        shape: Shape::of(&[Feature::Chat, Feature::Long]),
    }
}

#[cfg(test)]
mod tests;
