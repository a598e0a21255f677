//! What several schemas together ask of one value: their keywords, collected.
//!
//! `$ref` and `allOf` are followed into the same node, so that what stands beside them holds too.
//! Invariant: a value that satisfies the node and one branch of each of its choices satisfies every schema in it.
//! Not here: making such a value (`value`).

use std::sync::Arc;

use super::pattern::Pattern;
use super::schema::{Schema, number, whole};
use crate::json::Json;

/// References followed from one schema into the next, at most.
const MAX_REFERENCES: usize = 64;

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
pub(super) struct Choice {
    pub(super) exclusive: bool,
    pub(super) branches: Vec<Json>,
}

#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) types: u8,
    /// Types that its keywords speak of.
    pub(super) spoken: u8,
    /// The values allowed, of `enum` or `const`.
    pub(super) values: Option<Vec<Json>>,
    pub(super) least: Option<Bound>,
    pub(super) most: Option<Bound>,
    pub(super) multiples: Vec<f64>,
    pub(super) min_length: u64,
    pub(super) max_length: u64,
    pub(super) patterns: Vec<Arc<Pattern>>,
    pub(super) formats: Vec<String>,
    pub(super) min_items: u64,
    pub(super) max_items: u64,
    /// Schemas that speak of items or members, each by its own keywords.
    pub(super) containers: Vec<Json>,
    pub(super) required: Vec<String>,
    pub(super) names: Vec<Json>,
    pub(super) min_members: u64,
    pub(super) max_members: u64,
    pub(super) choices: Vec<Choice>,
    /// Nothing satisfies it.
    pub(super) impossible: bool,
}

impl Default for Node {
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

impl Node {
    /// What these schemas ask together.
    pub(super) fn of(schema: &Schema, all: &[Json]) -> Self {
        let mut node = Self::default();
        all.iter()
            .for_each(|one| node.absorb(schema, one, MAX_REFERENCES));
        node
    }

    /// Adds what `at` asks.
    pub(super) fn absorb(&mut self, schema: &Schema, at: &Json, references: usize) {
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
            self.containers.push(at.clone());
        }
        for (name, value) in members {
            if let Some((_, types)) = SPEAKING.iter().find(|(keyword, _)| keyword == name) {
                self.spoken |= types;
            }
            match (name.as_str(), value) {
                ("$ref", Json::String(reference)) => match schema.resolve(reference) {
                    Some(target) if references > 0 => self.absorb(schema, target, references - 1),
                    // It refers to itself and says nothing.
                    _ => self.impossible = true,
                },
                ("allOf", Json::Array(all)) if references > 0 => all
                    .iter()
                    .for_each(|one| self.absorb(schema, one, references - 1)),
                ("anyOf" | "oneOf", Json::Array(branches)) => self.choices.push(Choice {
                    exclusive: name == "oneOf",
                    branches: branches.clone(),
                }),
                _ => self.keyword(schema, name, value),
            }
        }
    }

    fn keyword(&mut self, schema: &Schema, name: &str, value: &Json) {
        let count = whole(value).unwrap_or(0);
        match (name, value) {
            ("type", value) => self.types &= types(value),
            ("enum", Json::Array(all)) => self.allow(all),
            ("const", one) => self.allow(std::slice::from_ref(one)),
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
            ("format", Json::String(format)) => self.formats.push(format.clone()),
            ("minItems", _) => self.min_items = self.min_items.max(count),
            ("maxItems", _) => self.max_items = self.max_items.min(count),
            ("required", Json::Array(names)) => {
                for name in names.iter().filter_map(Json::as_str) {
                    if !self.required.iter().any(|known| known == name) {
                        self.required.push(name.to_owned());
                    }
                }
            }
            ("propertyNames", schema) => self.names.push(schema.clone()),
            ("minProperties", _) => self.min_members = self.min_members.max(count),
            ("maxProperties", _) => self.max_members = self.max_members.min(count),
            _ => {}
        }
    }

    fn allow(&mut self, all: &[Json]) {
        let both = match self.values.take() {
            None => all.to_vec(),
            Some(known) => {
                let is_allowed = |one: &Json| all.iter().any(|other| equal(one, other));
                known.into_iter().filter(is_allowed).collect()
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
    pub(super) fn item(&self, index: usize) -> Vec<Json> {
        let of = |one: &Json| item_of(one, index).cloned();
        self.containers.iter().filter_map(of).collect()
    }

    /// The schemas of the member `name`.
    pub(super) fn member(&self, schema: &Schema, name: &str) -> Vec<Json> {
        let of = |one: &Json| {
            members_of(schema, one, name)
                .into_iter()
                .cloned()
                .collect::<Vec<_>>()
        };
        self.containers.iter().flat_map(of).collect()
    }

    /// The members that are named, in order.
    pub(super) fn declared(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let properties = self
            .containers
            .iter()
            .filter_map(|one| one.get("properties"));
        let declared = properties.filter_map(Json::as_object).flatten();
        for name in declared.map(|(name, _)| name).chain(&self.required) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    /// The expressions of names that members are described by.
    pub(super) fn member_patterns(&self) -> Vec<String> {
        let all = self.containers.iter();
        all.filter_map(|one| one.get("patternProperties"))
            .filter_map(Json::as_object)
            .flatten()
            .map(|(pattern, _)| pattern.clone())
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
pub(super) fn members_of<'a>(schema: &Schema, at: &'a Json, name: &str) -> Vec<&'a Json> {
    let mut all: Vec<&Json> = Vec::new();
    all.extend(at.get("properties").and_then(|p| p.get(name)));
    let patterns = at.get("patternProperties").and_then(Json::as_object);
    for (pattern, one) in patterns.unwrap_or_default() {
        if schema
            .pattern(pattern)
            .is_some_and(|pattern| pattern.matches(name))
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

/// Whether two values are the same: members in any order, numbers by their value.
pub(super) fn equal(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(_), Json::Number(_)) => number(a) == number(b),
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Json::Object(of_a), Json::Object(of_b)) => {
            let is_in_b = |(name, value): &(String, Json)| {
                b.get(name).is_some_and(|other| equal(value, other))
            };
            of_a.len() == of_b.len() && of_a.iter().all(is_in_b)
        }
        _ => a == b,
    }
}
