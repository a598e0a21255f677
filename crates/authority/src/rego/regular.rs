//! Regular expressions of a policy: those that stand where one is looked for, compiled when it loads, and those that a call
//! brings.
//!
//! Invariant: what a call takes is a matter of the policy and its arguments: an expression of the first kind is never
//! charged for being compiled, another always is.

use std::collections::BTreeMap;

use regorus::Value;

use super::functions::Failed;
use super::meter::{self, Cost};
use crate::pattern::{Pattern, Unusable};

/// The most that a compiled expression takes, bytes.
pub(super) const BYTES_MAX: usize = 100 << 10;
/// Looks for an expression that are made in one step.
const LOOKS_A_STEP: usize = 32;
/// What a found text takes beside its bytes.
const FOUND_BYTES: usize = 48;

/// The expressions of a policy.
#[derive(Debug)]
pub(super) struct Patterns(BTreeMap<Box<str>, Result<Pattern, Unusable>>);

/// One to look for.
enum Found<'p> {
    Kept(&'p Pattern),
    Brought(Box<Pattern>),
}

impl Patterns {
    pub(super) fn new<'t>(texts: impl Iterator<Item = &'t str>) -> Self {
        let compiled = |text: &'t str| (text.into(), Pattern::new(text, BYTES_MAX));
        Self(texts.map(compiled).collect())
    }

    fn find(&self, written: &str) -> Result<Result<Found<'_>, Unusable>, Failed> {
        if let Some(kept) = self.0.get(written) {
            return Ok(match kept {
                Ok(pattern) => Ok(Found::Kept(pattern)),
                Err(unusable) => Err(unusable.clone()),
            });
        }
        let take = |looks: usize| meter::take(Cost::of_steps(looks / LOOKS_A_STEP));
        Ok(Pattern::brought(written, BYTES_MAX, take)?
            .map(|pattern| Found::Brought(Box::new(pattern))))
    }
}

impl std::ops::Deref for Found<'_> {
    type Target = Pattern;

    fn deref(&self) -> &Pattern {
        match self {
            Self::Kept(pattern) => pattern,
            Self::Brought(pattern) => pattern,
        }
    }
}

/// `regex.match(pattern, value)`.
pub(super) fn is_match(patterns: &Patterns, args: &[Value]) -> Result<Value, Failed> {
    let (written, text) = texts(args)?;
    let pattern = patterns.find(written)?.map_err(|_| Failed::Arguments)?;
    take(&pattern, text.len(), 0)?;
    Ok(Value::from(pattern.is_in(text)))
}

/// `regex.is_valid(pattern)`. What is too large is not said to be wrong.
pub(super) fn is_valid(patterns: &Patterns, args: &[Value]) -> Result<Value, Failed> {
    let Some(Value::String(written)) = args.first() else {
        return Ok(Value::from(false));
    };
    match patterns.find(written)? {
        Ok(_) => Ok(Value::from(true)),
        Err(Unusable::Syntax(_)) => Ok(Value::from(false)),
        Err(Unusable::TooLarge) => Err(Failed::Arguments),
    }
}

/// `regex.find_n(pattern, value, n)`: all of them where `n` is negative.
pub(super) fn find(patterns: &Patterns, args: &[Value]) -> Result<Value, Failed> {
    let (written, text) = texts(args)?;
    let most = match args.get(2) {
        Some(Value::Number(n)) if n.is_integer() => n
            .as_i64()
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(usize::MAX),
        _ => return Err(Failed::Arguments),
    };
    let pattern = patterns.find(written)?.map_err(|_| Failed::Arguments)?;
    let mut found = Vec::new();
    each(&pattern, text, most, |from, to| {
        found.push(Value::from(text.get(from..to).unwrap_or_default()));
    })?;
    Ok(Value::from(found))
}

/// `regex.split(pattern, value)`.
pub(super) fn split(patterns: &Patterns, args: &[Value]) -> Result<Value, Failed> {
    let (written, text) = texts(args)?;
    let pattern = patterns.find(written)?.map_err(|_| Failed::Arguments)?;
    let (mut parts, mut begin) = (Vec::new(), 0);
    each(&pattern, text, usize::MAX, |from, to| {
        parts.push(Value::from(text.get(begin..from).unwrap_or_default()));
        begin = to;
    })?;
    parts.push(Value::from(text.get(begin..).unwrap_or_default()));
    Ok(Value::from(parts))
}

/// Each place where it stands. To find that there is none behind one can take as long as all of the rest.
fn each(
    pattern: &Pattern,
    text: &str,
    most: usize,
    mut act: impl FnMut(usize, usize),
) -> Result<(), Failed> {
    let mut places = pattern.places(text);
    let mut end = 0;
    take(pattern, 0, text.len())?;
    for _ in 0..most {
        take(pattern, text.len() - end, FOUND_BYTES)?;
        let Some((from, to)) = places.next() else {
            break;
        };
        act(from, to);
        end = to;
    }
    Ok(())
}

fn take(pattern: &Pattern, reads: usize, makes: usize) -> Result<(), Failed> {
    meter::take(Cost::of_steps(pattern.looks(reads) / LOOKS_A_STEP))?;
    Ok(meter::take(Cost::new(0, makes))?)
}

fn texts(args: &[Value]) -> Result<(&str, &str), Failed> {
    match args {
        [Value::String(written), Value::String(text), ..] => Ok((written, text)),
        _ => Err(Failed::Arguments),
    }
}
