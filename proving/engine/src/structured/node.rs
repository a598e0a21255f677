//! What several schemas together ask of one value: their keywords, collected.
//!
//! `$ref` and `allOf` are followed into the same node, so that what stands beside them holds too.
//! Invariant: a value that satisfies the node and one branch of each of its choices satisfies every schema in it.
//! Not here: making such a value (`value`).

use std::sync::Arc;

use super::pattern::Pattern;
use super::schema::{Schema, number, whole};
use super::work::Work;
use crate::json::Json;

pub(super) const NULL: u8 = 1;
pub(super) const BOOLEAN: u8 = 2;
pub(super) const INTEGER: u8 = 4;
/// A number that is not whole.
pub(super) const FRACTION: u8 = 8;
pub(super) const STRING: u8 = 16;
pub(super) const ARRAY: u8 = 32;
pub(super) const OBJECT: u8 = 64;
const ANY: u8 = 127;

/// Types by name. Every whole number is a `number` too.
pub(super) const TYPES: &[(&str, u8)] = &[
    ("null", NULL),
    ("boolean", BOOLEAN),
    ("integer", INTEGER),
    ("number", INTEGER | FRACTION),
    ("string", STRING),
    ("array", ARRAY),
    ("object", OBJECT),
];

/// Keywords that speak of one type only, by which a type is guessed where none is said.
const SPEAKING: &[(&str, u8)] = &[
    ("properties", OBJECT),
    ("required", OBJECT),
    ("additionalProperties", OBJECT),
    ("patternProperties", OBJECT),
    ("propertyNames", OBJECT),
    ("minProperties", OBJECT),
    ("items", ARRAY),
    ("prefixItems", ARRAY),
    ("minItems", ARRAY),
    ("maxItems", ARRAY),
    ("pattern", STRING),
    ("format", STRING),
    ("minLength", STRING),
    ("maxLength", STRING),
    ("minimum", INTEGER | FRACTION),
    ("maximum", INTEGER | FRACTION),
    ("exclusiveMinimum", INTEGER | FRACTION),
    ("exclusiveMaximum", INTEGER | FRACTION),
    ("multipleOf", INTEGER | FRACTION),
];

/// An end of a range of numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    pub(super) at: f64,
    pub(super) exclusive: bool,
}

/// Branches of which one is to be satisfied; exactly one if it is exclusive.
#[derive(Clone, Debug)]
pub(super) struct Choice<'a> {
    pub(super) exclusive: bool,
    pub(super) branches: &'a [Json],
}

#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    pub(super) types: u8,
    /// Types that its keywords speak of.
    pub(super) spoken: u8,
    /// The values allowed, of `enum` or `const`.
    pub(super) values: Option<Vec<&'a Json>>,
    pub(super) least: Option<Bound>,
    pub(super) most: Option<Bound>,
    pub(super) multiples: Vec<f64>,
    pub(super) min_length: u64,
    pub(super) max_length: u64,
    pub(super) patterns: Vec<Arc<Pattern>>,
    pub(super) formats: Vec<&'a str>,
    pub(super) min_items: u64,
    pub(super) max_items: u64,
    /// Schemas that speak of items or members, each by its own keywords.
    pub(super) containers: Vec<&'a Json>,
    pub(super) required: Vec<&'a str>,
    pub(super) names: Vec<&'a Json>,
    pub(super) min_members: u64,
    pub(super) max_members: u64,
    pub(super) choices: Vec<Choice<'a>>,
    /// Nothing satisfies it.
    pub(super) impossible: bool,
}

impl Default for Node<'_> {
    fn default() -> Self {
        Self {
            types: ANY,
            spoken: 0,
            values: None,
            least: None,
            most: None,
            multiples: Vec::new(),
            min_length: 0,
            max_length: u64::MAX,
            patterns: Vec::new(),
            formats: Vec::new(),
            min_items: 0,
            max_items: u64::MAX,
            containers: Vec::new(),
            required: Vec::new(),
            names: Vec::new(),
            min_members: 0,
            max_members: u64::MAX,
            choices: Vec::new(),
            impossible: false,
        }
    }
}

impl<'a> Node<'a> {
    /// What these schemas ask together.
    pub(super) fn of(schema: &'a Schema, all: &[&'a Json], work: &Work) -> Self {
        let mut node = Self::default();
        all.iter().for_each(|one| node.absorb(schema, one, work));
        node
    }

    /// How much it holds, in steps of copying it.
    pub(super) fn size(&self) -> usize {
        let values = self.values.as_ref().map_or(0, Vec::len);
        let parts = self.containers.len() + self.choices.len() + self.names.len();
        20 + values + parts + self.required.len() + self.patterns.len() + self.formats.len()
    }

    /// Adds what `at` asks. Without steps left it is impossible.
    pub(super) fn absorb(&mut self, schema: &'a Schema, at: &'a Json, work: &Work) {
        if work
            .spend(10 + at.as_object().map_or(0, |all| all.len() * 10))
            .is_none()
        {
            self.impossible = true;
            return;
        }
        let members = match at {
            Json::Bool(false) => {
                self.impossible = true;
                return;
            }
            Json::Object(members) => members,
            _ => return,
        };
        let holds = |name: &&str| at.get(name).is_some();
        if [
            "properties",
            "patternProperties",
            "additionalProperties",
            "items",
            "prefixItems",
        ]
        .iter()
        .any(holds)
        {
            self.containers.push(at);
        }
        for (name, value) in members {
            if let Some((_, types)) = SPEAKING.iter().find(|(keyword, _)| keyword == name) {
                self.spoken |= types;
            }
            match (name.as_str(), value) {
                ("$ref", Json::String(reference)) => match schema.resolve(reference, work) {
                    Some(target) => self.absorb(schema, target, work),
                    None => self.impossible = true,
                },
                ("allOf", Json::Array(all)) => {
                    all.iter().for_each(|one| self.absorb(schema, one, work));
                }
                ("anyOf" | "oneOf", Json::Array(branches)) => self.choices.push(Choice {
                    exclusive: name == "oneOf",
                    branches,
                }),
                _ => self.keyword(schema, name, value, work),
            }
        }
    }

    fn keyword(&mut self, schema: &Schema, name: &str, value: &'a Json, work: &Work) {
        let count = whole(value).unwrap_or(0);
        match (name, value) {
            ("type", value) => self.types &= types(value),
            ("enum", Json::Array(all)) => self.allow(all, work),
            ("const", one) => self.allow(std::slice::from_ref(one), work),
            ("minimum" | "exclusiveMinimum", value) => {
                self.raise(value, name == "exclusiveMinimum");
            }
            ("maximum" | "exclusiveMaximum", value) => {
                self.lower(value, name == "exclusiveMaximum");
            }
            ("multipleOf", value) => self.multiples.extend(number(value)),
            ("minLength", _) => self.min_length = self.min_length.max(count),
            ("maxLength", _) => self.max_length = self.max_length.min(count),
            ("pattern", Json::String(pattern)) => {
                self.patterns.extend(schema.pattern(pattern).cloned());
            }
            ("format", Json::String(format)) => self.formats.push(format),
            ("minItems", _) => self.min_items = self.min_items.max(count),
            ("maxItems", _) => self.max_items = self.max_items.min(count),
            ("required", Json::Array(names)) => {
                for name in names.iter().filter_map(Json::as_str) {
                    let is_paid = work.spend(self.required.len()).is_some();
                    if is_paid && !self.required.contains(&name) {
                        self.required.push(name);
                    }
                }
            }
            ("propertyNames", schema) => self.names.push(schema),
            ("minProperties", _) => self.min_members = self.min_members.max(count),
            ("maxProperties", _) => self.max_members = self.max_members.min(count),
            _ => {}
        }
    }

    fn allow(&mut self, all: &'a [Json], work: &Work) {
        // Copying them is paid for too.
        self.impossible |= work.spend(all.len()).is_none();
        let both = match self.values.take() {
            None => all.iter().collect(),
            Some(known) => {
                let is_allowed = |one: &&Json| all.iter().any(|other| equal(one, other, work));
                let paid = known.into_iter().take_while(|_| work.spend(1).is_some());
                paid.filter(is_allowed).collect()
            }
        };
        self.values = Some(both);
    }

    fn raise(&mut self, value: &Json, exclusive: bool) {
        let Some(at) = number(value) else { return };
        let is_weaker = |known: Bound| known.at < at || (known.at == at && exclusive);
        if self.least.is_none_or(is_weaker) {
            self.least = Some(Bound { at, exclusive });
        }
    }

    fn lower(&mut self, value: &Json, exclusive: bool) {
        let Some(at) = number(value) else { return };
        let is_weaker = |known: Bound| known.at > at || (known.at == at && exclusive);
        if self.most.is_none_or(is_weaker) {
            self.most = Some(Bound { at, exclusive });
        }
    }

    /// The schemas of item `index`.
    pub(super) fn item(&self, index: usize) -> Vec<&'a Json> {
        let all = self.containers.iter();
        all.filter_map(|one| item_of(one, index)).collect()
    }

    /// The schemas of the member `name`.
    pub(super) fn member(&self, schema: &Schema, name: &str, work: &Work) -> Vec<&'a Json> {
        let all = self.containers.iter();
        all.flat_map(|one| members_of(schema, one, name, work))
            .collect()
    }

    /// The members that are named, in order; fewer where no steps are left.
    pub(super) fn declared(&self, work: &Work) -> Vec<&'a str> {
        let mut names: Vec<&str> = Vec::new();
        let properties = self
            .containers
            .iter()
            .filter_map(|one| one.get("properties"));
        let declared = properties.filter_map(Json::as_object).flatten();
        let declared = declared.map(|(name, _)| name.as_str());
        for name in declared.chain(self.required.iter().copied()) {
            if work.spend(names.len()).is_some() && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The expressions of names that members are described by.
    pub(super) fn member_patterns(&self) -> Vec<&'a str> {
        let all = self.containers.iter();
        all.filter_map(|one| one.get("patternProperties"))
            .filter_map(Json::as_object)
            .flatten()
            .map(|(pattern, _)| pattern.as_str())
            .collect()
    }
}

/// The schema that one schema has for item `index`.
pub(super) fn item_of(schema: &Json, index: usize) -> Option<&Json> {
    let listed = |all: Option<&Json>| all.and_then(Json::as_array).map(<[Json]>::len);
    let (prefix, items) = (schema.get("prefixItems"), schema.get("items"));
    if listed(prefix).is_some_and(|known| index < known) {
        return prefix.and_then(Json::as_array)?.get(index);
    }
    match items {
        Some(Json::Array(all)) => all.get(index),
        other => other,
    }
}

/// The schemas that one schema has for the member `name`.
pub(super) fn members_of<'a>(
    schema: &Schema,
    at: &'a Json,
    name: &str,
    work: &Work,
) -> Vec<&'a Json> {
    let properties = at.get("properties").and_then(Json::as_object);
    if work.spend(5 + properties.map_or(0, <[_]>::len)).is_none() {
        return Vec::new();
    }
    let mut all: Vec<&Json> = Vec::new();
    all.extend(at.get("properties").and_then(|p| p.get(name)));
    let patterns = at.get("patternProperties").and_then(Json::as_object);
    for (pattern, one) in patterns.unwrap_or_default() {
        if schema
            .pattern(pattern)
            .is_some_and(|pattern| pattern.matches(name, work))
        {
            all.push(one);
        }
    }
    if all.is_empty() {
        all.extend(at.get("additionalProperties"));
    }
    all
}

/// The types of a `type`.
pub(super) fn types(value: &Json) -> u8 {
    let one = |name: &str| {
        let known = TYPES.iter().find(|(known, _)| *known == name);
        known.map_or(0, |(_, types)| *types)
    };
    match value {
        Json::String(name) => one(name),
        Json::Array(all) => all
            .iter()
            .filter_map(Json::as_str)
            .fold(0, |types, name| types | one(name)),
        _ => ANY,
    }
}

/// Whether two values are the same: members in any order, numbers by their value. Nothing is without steps left.
pub(super) fn equal(a: &Json, b: &Json, work: &Work) -> bool {
    let size = match (a, b) {
        (Json::String(a), Json::String(_)) => a.len() / 64,
        (Json::Object(a), Json::Object(b)) if a.len() == b.len() => a.len() * b.len(),
        _ => 0,
    };
    if work.spend(1 + size).is_none() {
        return false;
    }
    match (a, b) {
        (Json::Number(_), Json::Number(_)) => number(a) == number(b),
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b, work))
        }
        (Json::Object(of_a), Json::Object(of_b)) => {
            let is_in_b = |(name, value): &(String, Json)| {
                b.get(name).is_some_and(|other| equal(value, other, work))
            };
            of_a.len() == of_b.len() && of_a.iter().all(is_in_b)
        }
        _ => a == b,
    }
}
