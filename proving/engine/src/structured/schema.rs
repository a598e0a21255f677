//! A JSON Schema that was looked through: every keyword in it is one that is honoured, and every `$ref` leads somewhere.
//!
//! Invariant: `$ref` leads into the same document, and from any schema the ones that speak of the same value (`$ref`,
//! `allOf`, `anyOf`, `oneOf`) end within [`MAX_DEPTH`] levels. Keywords that only describe are passed over.
//! Not here: what keywords mean (`node`, `accepts`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::pattern::{Pattern, of_format};
use super::work::Work;
use crate::json::Json;

/// Schemas within a schema, at most.
const MAX_SCHEMAS: usize = 10_000;
/// Levels of schemas within schemas, at most; also of those that speak of the same value.
const MAX_DEPTH: usize = 64;
/// Names, texts and values of a schema, all together: each counts 1, and its bytes.
const MAX_SIZE: usize = 1 << 18;

/// Keywords that would change what is allowed and that xgrammar does not compile.
const UNSUPPORTED: &[&str] = &[
    "not",
    "if",
    "then",
    "else",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedItems",
    "unevaluatedProperties",
    "additionalItems",
    "$dynamicRef",
    "$recursiveRef",
];

/// Formats of strings that xgrammar compiles.
pub(super) const FORMATS: &[&str] = &[
    "email",
    "date",
    "time",
    "date-time",
    "duration",
    "ipv4",
    "ipv6",
    "hostname",
    "uuid",
    "uri",
    "uri-reference",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
];

/// Keywords that hold one schema, several by name, or a list.
const ONE: &[&str] = &["items", "additionalProperties", "propertyNames"];
const NAMED: &[&str] = &["properties", "patternProperties", "$defs", "definitions"];
const LISTED: &[&str] = &["anyOf", "oneOf", "allOf", "prefixItems"];

#[derive(Debug)]
pub(crate) struct Schema {
    root: Json,
    /// Its expressions, read.
    patterns: BTreeMap<String, Arc<Pattern>>,
    /// Of its formats: what makes texts, and what knows them.
    formats: BTreeMap<String, (Pattern, Pattern)>,
}

/// What is left to look through, and what was found.
struct Search<'a> {
    left: usize,
    work: &'a Work,
    /// The schemas that were looked through, by where they lie.
    checked: BTreeSet<*const Json>,
    /// What is referred to.
    referred: Vec<&'a str>,
    /// Levels of schemas below each that speak of the same value.
    levels: BTreeMap<*const Json, usize>,
    patterns: BTreeMap<String, Arc<Pattern>>,
    formats: BTreeMap<String, (Pattern, Pattern)>,
}

impl Schema {
    /// Checks a schema. Says what is wrong with it, and where.
    pub(super) fn new(root: &Json, work: &Work) -> Result<Self, String> {
        if size(root) > MAX_SIZE {
            return Err(format!(
                "The provided JSON schema is larger than {MAX_SIZE} bytes."
            ));
        }
        let mut schema = Self::unchecked(root.clone());
        let mut search = Search {
            left: MAX_SCHEMAS,
            work,
            checked: BTreeSet::new(),
            referred: Vec::new(),
            levels: BTreeMap::new(),
            patterns: BTreeMap::new(),
            formats: BTreeMap::new(),
        };
        schema.check(&schema.root, "#", 0, &mut search)?;
        // What is referred to may stand where no schema is looked for.
        while let Some(reference) = search.referred.pop() {
            if let Some(target) = schema.resolve(reference, work) {
                schema.check(target, reference, 0, &mut search)?;
            }
        }
        let Search {
            patterns, formats, ..
        } = search;
        (schema.patterns, schema.formats) = (patterns, formats);
        Ok(schema)
    }

    /// One that is known to be good, without expressions.
    pub(super) fn unchecked(root: Json) -> Self {
        Self {
            root,
            patterns: BTreeMap::new(),
            formats: BTreeMap::new(),
        }
    }

    /// An expression that stands in it.
    pub(super) fn pattern(&self, pattern: &str) -> Option<&Arc<Pattern>> {
        self.patterns.get(pattern)
    }

    /// Makes texts of a format that stands in it.
    pub(super) fn of_format(&self, format: &str) -> Option<&Pattern> {
        self.formats.get(format).map(|(made, _)| made)
    }

    /// Whether a text looks like one of that format.
    pub(super) fn has_format(&self, format: &str, text: &str, work: &Work) -> bool {
        let known = self.formats.get(format);
        known.is_none_or(|(_, look)| look.matches(text, work))
    }

    pub(super) fn root(&self) -> &Json {
        &self.root
    }

    /// Levels of schemas below `at` that speak of the same value; `None` where they are too many, or come back to
    /// where they began.
    fn levels<'a>(&'a self, at: &'a Json, above: usize, search: &mut Search<'a>) -> Option<usize> {
        let key = std::ptr::from_ref(at);
        if let Some(known) = search.levels.get(&key) {
            return Some(*known).filter(|below| above + below <= MAX_DEPTH);
        }
        if above > MAX_DEPTH {
            return None;
        }
        search.work.spend(20)?;
        let mut most = 0;
        let mut below = |one: &'a Json, search: &mut Search<'a>| {
            most = most.max(self.levels(one, above + 1, search)? + 1);
            Some(())
        };
        for (name, value) in at.as_object().unwrap_or_default() {
            match (name.as_str(), value) {
                ("$ref", Json::String(reference)) => {
                    if let Some(target) = self.resolve(reference, search.work) {
                        below(target, search)?;
                    }
                }
                ("allOf" | "anyOf" | "oneOf", Json::Array(all)) => {
                    all.iter().try_for_each(|one| below(one, search))?;
                }
                _ => {}
            }
        }
        search.levels.insert(key, most);
        Some(most)
    }

    /// What a `$ref` refers to; nothing where no steps are left.
    pub(super) fn resolve(&self, reference: &str, work: &Work) -> Option<&Json> {
        work.spend(20 + reference.len())?;
        let pointer = reference.strip_prefix('#')?;
        let mut at = &self.root;
        for part in pointer.split('/').skip(1) {
            let part = percent_decoded(part).replace("~1", "/").replace("~0", "~");
            at = match at {
                Json::Array(all) => all.get(part.parse::<usize>().ok()?)?,
                object => {
                    work.spend(object.as_object().map_or(0, <[_]>::len))?;
                    object.get(&part)?
                }
            };
        }
        (pointer.is_empty() || pointer.starts_with('/')).then_some(at)
    }

    fn check<'a>(
        &'a self,
        at: &'a Json,
        place: &str,
        depth: usize,
        search: &mut Search<'a>,
    ) -> Result<(), String> {
        if !search.checked.insert(std::ptr::from_ref(at)) {
            return Ok(());
        }
        search.left = search.left.checked_sub(1).ok_or_else(|| {
            format!("The provided JSON schema has more than {MAX_SCHEMAS} schemas within it.")
        })?;
        if depth > MAX_DEPTH {
            return Err(format!(
                "The provided JSON schema nests deeper than {MAX_DEPTH} levels at {place}."
            ));
        }
        let members = match at {
            Json::Bool(_) => return Ok(()),
            Json::Object(members) => members,
            _ => {
                return Err(format!(
                    "Invalid JSON schema: {place} must be an object or a boolean."
                ));
            }
        };
        if self.levels(at, 0, search).is_none() {
            search.afford(0)?;
            return Err(format!(
                "The provided JSON schema contains features not supported by xgrammar: a $ref, allOf, anyOf or oneOf, \
                 which comes back to itself or leads on more than {MAX_DEPTH} times, at {place}."
            ));
        }
        for (name, value) in members {
            search.afford(50 + (place.len() + name.len()) / 16)?;
            self.keyword(name, value, place, search)?;
            search.keep(name, value, place)?;
            let inner = format!("{place}/{name}");
            let mut check = |at: &'a Json, place: &str| self.check(at, place, depth + 1, search);
            match (name.as_str(), value) {
                // A list of items is `prefixItems` of older drafts.
                ("items", Json::Array(all)) => {
                    for (i, one) in all.iter().enumerate() {
                        check(one, &format!("{inner}/{i}"))?;
                    }
                }
                (name, value) if ONE.contains(&name) => check(value, &inner)?,
                (name, Json::Object(named)) if NAMED.contains(&name) => {
                    for (member, one) in named {
                        check(one, &format!("{inner}/{member}"))?;
                    }
                }
                (name, Json::Array(all)) if LISTED.contains(&name) && !all.is_empty() => {
                    for (i, one) in all.iter().enumerate() {
                        check(one, &format!("{inner}/{i}"))?;
                    }
                }
                (name, _) if NAMED.contains(&name) => {
                    return Err(format!("Invalid JSON schema: {inner} must be an object."));
                }
                (name, _) if LISTED.contains(&name) => {
                    return Err(format!(
                        "Invalid JSON schema: {inner} must be a list that is not empty."
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Checks a keyword by itself.
    fn keyword<'a>(
        &self,
        name: &str,
        value: &'a Json,
        place: &str,
        search: &mut Search<'a>,
    ) -> Result<(), String> {
        let unsupported = |what: String| {
            Err(format!(
                "The provided JSON schema contains features not supported by xgrammar: {what} at {place}."
            ))
        };
        let invalid = |what: &str| {
            Err(format!(
                "Invalid JSON schema: {place}/{name} must be {what}."
            ))
        };
        match (name, value) {
            ("uniqueItems", Json::Bool(false)) => Ok(()),
            (
                "unevaluatedItems" | "unevaluatedProperties" | "additionalItems",
                Json::Bool(true),
            ) => Ok(()),
            (name, _) if UNSUPPORTED.contains(&name) => unsupported(name.to_owned()),
            ("format", Json::String(format)) if FORMATS.contains(&format.as_str()) => Ok(()),
            ("format", other) => unsupported(format!("format {other}")),
            ("$ref", Json::String(reference)) if self.resolve(reference, search.work).is_some() => {
                search.referred.push(reference);
                Ok(())
            }
            ("$ref", other) => unsupported(format!(
                "$ref {other}, which is nothing in the same document,"
            )),
            ("type", Json::String(kind)) if is_type(kind) => Ok(()),
            ("type", Json::Array(all))
                if !all.is_empty() && all.iter().all(|one| one.as_str().is_some_and(is_type)) =>
            {
                Ok(())
            }
            ("type", _) => invalid("a type, or a list of types"),
            ("enum", Json::Array(all)) if !all.is_empty() => Ok(()),
            ("enum", _) => invalid("a list that is not empty"),
            ("required", Json::Array(all)) if all.iter().all(|one| one.as_str().is_some()) => {
                Ok(())
            }
            ("required", _) => invalid("a list of names"),
            ("pattern", Json::String(_)) => Ok(()),
            ("pattern", _) => invalid("a regular expression"),
            (
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties",
                value,
            ) if whole(value).is_none() => invalid("a whole number that is not negative"),
            (
                "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf",
                value,
            ) if number(value).is_none() => invalid("a number"),
            ("multipleOf", value) if number(value).is_none_or(|by| by <= 0.0) => {
                invalid("greater than 0")
            }
            _ => Ok(()),
        }
    }
}

impl Search<'_> {
    /// Spends steps, or refuses.
    fn afford(&self, steps: usize) -> Result<(), String> {
        self.work.spend(steps).ok_or_else(Work::refusal)
    }

    /// Reads the expressions of a keyword.
    fn keep(&mut self, name: &str, value: &Json, place: &str) -> Result<(), String> {
        match (name, value) {
            ("pattern", Json::String(pattern)) => self.keep_pattern(pattern, place),
            ("patternProperties", Json::Object(named)) => named
                .iter()
                .try_for_each(|(pattern, _)| self.keep_pattern(pattern, place)),
            ("format", Json::String(format)) if !self.formats.contains_key(format) => {
                let (made, look) = of_format(format).unwrap_or((".*", ".*"));
                let both = (
                    Pattern::whole(made, self.work)?,
                    Pattern::search(look, self.work)?,
                );
                self.formats.insert(format.clone(), both);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn keep_pattern(&mut self, pattern: &str, place: &str) -> Result<(), String> {
        if self.patterns.contains_key(pattern) {
            return Ok(());
        }
        let read = Pattern::search(pattern, self.work).map_err(|why| {
            format!(
                "The provided JSON schema contains features not supported by xgrammar: pattern {pattern:?} at \
                 {place}: {why}"
            )
        })?;
        self.patterns.insert(pattern.to_owned(), Arc::new(read));
        Ok(())
    }
}

/// How much a value holds: 1 for each part, and the bytes of its names and texts.
fn size(value: &Json) -> usize {
    match value {
        Json::String(text) => 1 + text.len(),
        Json::Array(all) => 1 + all.iter().map(size).sum::<usize>(),
        Json::Object(all) => {
            let member = |(name, one): &(String, Json)| name.len() + size(one);
            1 + all.iter().map(member).sum::<usize>()
        }
        _ => 1,
    }
}

fn is_type(name: &str) -> bool {
    super::node::TYPES.iter().any(|(known, _)| *known == name)
}

/// A whole number that is not negative; `2.0` is one.
pub(super) fn whole(value: &Json) -> Option<u64> {
    let number = number(value)?;
    (number >= 0.0 && number.fract() == 0.0 && number < 1e15).then_some(number as u64)
}

pub(super) fn number(value: &Json) -> Option<f64> {
    match value {
        Json::Number(number) => number.as_f64(),
        _ => None,
    }
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        let byte = hex.and_then(|two| u8::from_str_radix(two, 16).ok());
        match byte.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
