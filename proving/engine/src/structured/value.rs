//! A value that satisfies a schema.
//!
//! Members come in the order of their schema, optional ones every other time, lists with few items more than they need.
//! Deeper than a few levels only what is required is made, and branches that do not refer further are tried first.
//! Invariant: what comes out is accepted by the schema; steps, tries and calls within calls are bounded.
//! Not here: what schemas ask together (`node`), strings of patterns (`pattern`).

use experiment::random::Rng;
use serde_json::Number;

use super::MAX_ATTEMPTS;
use super::accepts::{accepts, is_multiple, type_of};
use super::node::{ARRAY, BOOLEAN, FRACTION, INTEGER, NULL, Node, OBJECT, STRING};
use super::pattern::Pattern;
use super::schema::Schema;
use super::work::Work;
use crate::json::Json;

/// Parts of a value and branches of schemas within each other while one is made, at most: what the stack holds.
const MAX_NESTED: usize = 128;
/// Tries for members that no schema names, of one object.
const MAX_NAMES: u64 = 200_000;
/// Levels of a value, at most; and those after which only what is required is made.
const MAX_DEPTH: usize = 40;
const SHALLOW: usize = 4;
/// Items or members beyond what is required, at most.
const MAX_MORE: u64 = 2;

/// Longest free text, in characters.
const MAX_TEXT: usize = 100_000;

/// Words of which free text is made.
const WORDS: &[&str] = &[
    "river", "garden", "window", "morning", "letter", "paper", "quiet", "bright", "north", "stone",
    "harbour", "winter", "signal", "market", "copper", "meadow",
];

/// Makes a value, or says why none was found.
pub(super) fn make(schema: &Schema, rng: &mut Rng, work: &Work) -> Result<Json, String> {
    let mut maker = Maker {
        schema,
        rng,
        work,
        nested: 0,
    };
    for _ in 0..MAX_ATTEMPTS {
        let made = maker.value(&[schema.root()], 0);
        let made = made.filter(|value| accepts(schema, schema.root(), value, work));
        if work.is_spent() {
            return Err(Work::refusal());
        }
        if let Some(value) = made {
            return Ok(value);
        }
    }
    Err("The provided JSON schema is one that no value was found for.".to_owned())
}

struct Maker<'a, 'r> {
    schema: &'a Schema,
    rng: &'r mut Rng,
    work: &'r Work,
    /// Nodes that are being settled, each within the one before.
    nested: usize,
}

impl<'a> Maker<'a, '_> {
    /// A value that all these schemas accept.
    fn value(&mut self, schemas: &[&'a Json], depth: usize) -> Option<Json> {
        self.settle(Node::of(self.schema, schemas, self.work), depth)
    }

    fn settle(&mut self, node: Node<'a>, depth: usize) -> Option<Json> {
        self.work.spend(node.size())?;
        if node.impossible || node.types == 0 || depth > MAX_DEPTH || self.nested == MAX_NESTED {
            return None;
        }
        self.nested += 1;
        let made = self.branch(node, depth);
        self.nested -= 1;
        made
    }

    /// Takes a branch of each choice of the node, then makes its value.
    fn branch(&mut self, mut node: Node<'a>, depth: usize) -> Option<Json> {
        let Some(choice) = node.choices.pop() else {
            return self.plain(&node, depth);
        };
        for at in self.order(choice.branches, depth) {
            self.work.spend(node.size())?;
            let mut branch = node.clone();
            branch.absorb(self.schema, &choice.branches[at], self.work);
            let Some(value) = self.settle(branch, depth) else {
                continue;
            };
            let others = choice.branches.iter().enumerate().filter(|(i, _)| *i != at);
            let mut others = others.filter(|_| choice.exclusive);
            if !others.any(|(_, other)| accepts(self.schema, other, &value, self.work)) {
                return Some(value);
            }
        }
        None
    }

    /// Branches in the order in which they are tried.
    fn order(&mut self, branches: &[Json], depth: usize) -> Vec<usize> {
        let mut order: Vec<(u8, u64, usize)> = branches
            .iter()
            .enumerate()
            .map(|(i, branch)| {
                let weight = if depth < SHALLOW {
                    0
                } else {
                    weight(branch, self.work)
                };
                (weight, self.rng.bits(), i)
            })
            .collect();
        order.sort_unstable();
        order.into_iter().map(|(_, _, i)| i).collect()
    }

    fn plain(&mut self, node: &Node<'a>, depth: usize) -> Option<Json> {
        if let Some(values) = &node.values {
            // The whole is checked in the end; what stands beside an `enum` rarely excludes anything of it.
            let kept: Vec<&Json> = values.iter().copied().filter(|v| fits(node, v)).collect();
            let chosen = *kept.get(self.rng.below(kept.len() as u64) as usize)?;
            self.work.spend(size(chosen))?;
            return Some(chosen.clone());
        }
        let spoken = node.types & node.spoken;
        let types = match (spoken, node.types) {
            (0, types) if types & STRING != 0 && types.count_ones() > 4 => STRING,
            (0, types) => types,
            (spoken, 127) => spoken,
            (_, types) => types,
        };
        let all = [NULL, BOOLEAN, INTEGER, FRACTION, STRING, ARRAY, OBJECT];
        let mut kinds: Vec<u8> = all.into_iter().filter(|kind| types & kind != 0).collect();
        while !kinds.is_empty() {
            let at = if depth < SHALLOW {
                self.rng.below(kinds.len() as u64) as usize
            } else {
                0
            };
            let made = match kinds.remove(at) {
                NULL => Some(Json::Null),
                BOOLEAN => Some(Json::Bool(self.rng.below(2) == 0)),
                INTEGER => self.integer(node),
                FRACTION => self.fraction(node),
                STRING => self.string(node).map(Json::String),
                ARRAY => self.array(node, depth),
                _ => self.object(node, depth),
            };
            if made.is_some() {
                return made;
            }
        }
        None
    }

    fn range(node: &Node, span: f64) -> (f64, f64) {
        let least = node.least.map(|bound| bound.at);
        let most = node.most.map(|bound| bound.at);
        match (least, most) {
            (Some(least), Some(most)) => (least, most),
            (Some(least), None) => (least, least + span),
            (None, Some(most)) => (most - span, most),
            (None, None) => (0.0, span),
        }
    }

    fn integer(&mut self, node: &Node) -> Option<Json> {
        let (least, most) = Self::range(node, 1000.0);
        let step = node
            .multiples
            .iter()
            .fold(1.0, |step, by| common(step, *by, self.work));
        let (mut low, mut high) = ((least / step).ceil(), (most / step).floor());
        if node
            .least
            .is_some_and(|b| b.exclusive && low * step <= b.at)
        {
            low += 1.0;
        }
        if node
            .most
            .is_some_and(|b| b.exclusive && high * step >= b.at)
        {
            high -= 1.0;
        }
        // Nearly every number that large is whole; there the ends do.
        let span = (high - low).clamp(0.0, 1e9);
        if low > high {
            return None;
        }
        let value = (low + (self.rng.unit() * (span + 1.0)).floor().min(span)) * step;
        if value.abs() >= 9e15 {
            return Number::from_f64(value).map(Json::Number);
        }
        Some(Json::Number(Number::from(value as i64)))
    }

    fn fraction(&mut self, node: &Node) -> Option<Json> {
        let (least, most) = Self::range(node, 1000.0);
        if let Some(by) = node.multiples.first() {
            let times = (least / by).ceil() + (self.rng.unit() * 10.0).floor();
            return number_within(node, times * by);
        }
        let drawn = least + self.rng.unit() * (most - least);
        let rounded = (drawn * 100.0).round() / 100.0;
        number_within(node, rounded).or_else(|| number_within(node, drawn))
    }

    fn string(&mut self, node: &Node) -> Option<String> {
        let (schema, work) = (self.schema, self.work);
        let formats = node.formats.iter().filter_map(|f| schema.of_format(f));
        let patterns = node.patterns.iter().map(AsRef::as_ref);
        let described: Vec<&Pattern> = patterns.chain(formats).collect();
        if described.is_empty() {
            return self.words(node.min_length, node.max_length);
        }
        let passes = |text: &String| {
            let length = text.chars().count() as u64;
            (node.min_length..=node.max_length).contains(&length)
                && node
                    .patterns
                    .iter()
                    .all(|pattern| pattern.matches(text, work))
                && node
                    .formats
                    .iter()
                    .all(|format| schema.has_format(format, text, work))
        };
        let tries = (0..MAX_ATTEMPTS).map(|tried| {
            let of = described[tried % described.len()];
            of.make_longer(self.rng, tried / described.len(), work)
        });
        tries.flatten().find(passes)
    }

    /// Free text of so many characters.
    fn words(&mut self, least: u64, most: u64) -> Option<String> {
        let (least, most) = (
            usize::try_from(least).ok()?,
            usize::try_from(most).unwrap_or(usize::MAX),
        );
        if least > most || least > MAX_TEXT {
            return None;
        }
        self.work.spend(least)?;
        let mut text = String::new();
        let wanted = 1 + self.rng.below(3);
        let mut words = 0;
        while words < wanted || text.len() < least {
            if words > 0 {
                text.push(' ');
            }
            text.push_str(WORDS[self.rng.below(WORDS.len() as u64) as usize]);
            words += 1;
        }
        text.truncate(most);
        Some(text)
    }

    fn array(&mut self, node: &Node<'a>, depth: usize) -> Option<Json> {
        if node.min_items > node.max_items {
            return None;
        }
        let more = if depth < SHALLOW {
            self.rng.below(MAX_MORE + 1)
        } else {
            0
        };
        let wanted = node.min_items.saturating_add(more).min(node.max_items);
        let mut items = Vec::new();
        for index in 0..usize::try_from(wanted).ok()? {
            match self.value(&node.item(index), depth + 1) {
                Some(item) => items.push(item),
                None if index as u64 >= node.min_items => break,
                None => return None,
            }
        }
        Some(Json::Array(items))
    }

    fn object(&mut self, node: &Node<'a>, depth: usize) -> Option<Json> {
        let declared = node.declared(self.work);
        let mut left = node.max_members.checked_sub(node.required.len() as u64)?;
        let mut members: Vec<(String, Json)> = Vec::new();
        for name in &declared {
            self.work.spend(node.required.len())?;
            let is_required = node.required.contains(name);
            let is_wanted = depth < SHALLOW && self.rng.below(2) == 0;
            let short = node.min_members > (node.required.len() + declared.len()) as u64 / 2;
            if !is_required && (left == 0 || !(is_wanted || short) || !self.may_name(node, name)) {
                continue;
            }
            match self.value(&node.member(self.schema, name, self.work), depth + 1) {
                Some(value) => {
                    left -= u64::from(!is_required);
                    members.push(((*name).to_owned(), value));
                }
                None if is_required => return None,
                None => {}
            }
        }
        let wanted = match declared.is_empty() && depth < SHALLOW {
            true => node.min_members.max(self.rng.below(MAX_MORE + 1)),
            false => node.min_members,
        };
        self.add_members(node, wanted.min(node.max_members), depth, &mut members);
        (members.len() as u64 >= node.min_members).then_some(Json::Object(members))
    }

    /// Adds members that no schema names until there are so many.
    fn add_members(
        &mut self,
        node: &Node<'a>,
        wanted: u64,
        depth: usize,
        members: &mut Vec<(String, Json)>,
    ) {
        let mut tries = wanted.saturating_mul(4).min(MAX_NAMES);
        while (members.len() as u64) < wanted && tries > 0 {
            tries -= 1;
            if self.work.spend(10 + members.len()).is_none() {
                return;
            }
            let Some(name) = self.name(node) else {
                continue;
            };
            if members.iter().any(|(known, _)| *known == name) {
                continue;
            }
            if let Some(value) = self.value(&node.member(self.schema, &name, self.work), depth + 1)
            {
                members.push((name, value));
            }
        }
    }

    /// A name for a member that no schema names.
    fn name(&mut self, node: &Node<'a>) -> Option<String> {
        let patterns = node.member_patterns();
        let name = if !node.names.is_empty() {
            match self.value(&node.names, SHALLOW)? {
                Json::String(name) => name,
                _ => return None,
            }
        } else if let Some(pattern) = patterns.get(self.rng.below(patterns.len() as u64) as usize) {
            self.schema.pattern(pattern)?.make(self.rng, self.work)?
        } else {
            format!(
                "{}_{}",
                WORDS[self.rng.below(WORDS.len() as u64) as usize],
                self.rng.below(1000)
            )
        };
        self.may_name(node, &name).then_some(name)
    }

    fn may_name(&self, node: &Node, name: &str) -> bool {
        let name = Json::String(name.to_owned());
        node.names
            .iter()
            .all(|of| accepts(self.schema, of, &name, self.work))
    }
}

/// A number, if the ends of the range and the multiples let it be.
fn number_within(node: &Node, value: f64) -> Option<Json> {
    let above = node
        .least
        .is_none_or(|b| value > b.at || (value == b.at && !b.exclusive));
    let below = node
        .most
        .is_none_or(|b| value < b.at || (value == b.at && !b.exclusive));
    let divides = node.multiples.iter().all(|by| is_multiple(value, *by));
    let number = Number::from_f64(value).filter(|_| above && below && divides);
    number.map(Json::Number)
}

/// The least whole multiple of `step` that is one of `by`, or `step` if none is small.
fn common(step: f64, by: f64, work: &Work) -> f64 {
    let mut times = (1..=10_000).map(|times| step * f64::from(times));
    let is_common = |at: &f64| work.spend(1).is_none() || is_multiple(*at, by);
    times.find(is_common).unwrap_or(step)
}

/// Whether an allowed value is of the types that the node allows.
fn fits(node: &Node, value: &Json) -> bool {
    type_of(value) & node.types != 0
}

/// How far a branch leads: one that refers to others may lead back here.
fn weight(branch: &Json, work: &Work) -> u8 {
    if work.spend(2).is_none() {
        return 0;
    }
    let heaviest = |weights: &mut dyn Iterator<Item = u8>| weights.max().unwrap_or(0);
    match branch {
        Json::String(text) => u8::from(text == "object" || text == "array"),
        Json::Array(all) => heaviest(&mut all.iter().map(|one| weight(one, work))),
        Json::Object(all) => heaviest(&mut all.iter().map(|(name, one)| match name.as_str() {
            "$ref" => 2,
            _ => weight(one, work),
        })),
        _ => 0,
    }
}

/// Steps of copying a value.
fn size(value: &Json) -> usize {
    match value {
        Json::String(text) => 5 + text.len() / 64,
        Json::Array(all) => 5 + all.iter().map(size).sum::<usize>(),
        Json::Object(all) => {
            let member = |(name, one): &(String, Json)| name.len() / 64 + size(one);
            5 + all.iter().map(member).sum::<usize>()
        }
        _ => 1,
    }
}
