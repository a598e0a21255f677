//! Whether a schema accepts a value.
//!
//! Invariant: every keyword that `schema` lets through is decided here; a format is known by its look alone.
//! Not here: making values (`value`).

use super::node::{
    ARRAY, BOOLEAN, FRACTION, INTEGER, NULL, OBJECT, STRING, equal, item_of, members_of, types,
};
use super::schema::{Schema, number, whole};
use super::work::Work;
use crate::json::Json;

/// Schemas entered on the way to one value, at most; deeper ones accept nothing.
const MAX_DEPTH: usize = 256;

/// Whether `at`, a part of `schema`, accepts `value`. What it says is worth nothing if no steps are left then.
pub(super) fn accepts(schema: &Schema, at: &Json, value: &Json, work: &Work) -> bool {
    within(schema, at, value, MAX_DEPTH, work)
}

fn within(schema: &Schema, at: &Json, value: &Json, depth: usize, work: &Work) -> bool {
    if work
        .spend(10 + at.as_object().map_or(0, |all| all.len() * 10))
        .is_none()
    {
        return false;
    }
    let (Some(depth), Json::Object(members)) = (depth.checked_sub(1), at) else {
        return *at != Json::Bool(false) && !matches!(at, Json::Object(_));
    };
    let check = |at: &Json, value: &Json| within(schema, at, value, depth, work);
    let keyword = |name: &str, of: &Json| match (name, of) {
        ("$ref", Json::String(reference)) => schema
            .resolve(reference, work)
            .is_some_and(|target| check(target, value)),
        ("allOf", Json::Array(all)) => all.iter().all(|one| check(one, value)),
        ("anyOf", Json::Array(all)) => all.iter().any(|one| check(one, value)),
        ("oneOf", Json::Array(all)) => all.iter().filter(|one| check(one, value)).count() == 1,
        ("type", of) => types(of) & type_of(value) != 0,
        ("enum", Json::Array(all)) => all.iter().any(|one| equal(one, value, work)),
        ("const", one) => equal(one, value, work),
        (name, of) => match value {
            Json::Number(_) => number_passes(name, of, number(value).unwrap_or_default()),
            Json::String(text) => text_passes(schema, name, of, text, work),
            Json::Array(all) => list_passes(name, of, all),
            Json::Object(members) => object_passes(name, of, members, &check, work),
            _ => true,
        },
    };
    members.iter().all(|(name, of)| keyword(name, of))
        && parts_pass(schema, at, value, &check, work)
}

/// The schemas of items and members.
fn parts_pass(
    schema: &Schema,
    at: &Json,
    value: &Json,
    check: &dyn Fn(&Json, &Json) -> bool,
    work: &Work,
) -> bool {
    match value {
        Json::Array(all) => all
            .iter()
            .enumerate()
            .all(|(i, item)| item_of(at, i).is_none_or(|of| check(of, item))),
        Json::Object(members) => members.iter().all(|(name, value)| {
            members_of(schema, at, name, work)
                .iter()
                .all(|of| check(of, value))
        }),
        _ => true,
    }
}

/// The type of a value.
pub(super) fn type_of(value: &Json) -> u8 {
    match value {
        Json::Null => NULL,
        Json::Bool(_) => BOOLEAN,
        Json::Number(_) if number(value).is_some_and(|n| n.fract() == 0.0) => INTEGER,
        Json::Number(_) => FRACTION,
        Json::String(_) => STRING,
        Json::Array(_) => ARRAY,
        Json::Object(_) => OBJECT,
    }
}

fn number_passes(name: &str, of: &Json, value: f64) -> bool {
    let Some(bound) = number(of) else { return true };
    match name {
        "minimum" => value >= bound,
        "maximum" => value <= bound,
        "exclusiveMinimum" => value > bound,
        "exclusiveMaximum" => value < bound,
        "multipleOf" => is_multiple(value, bound),
        _ => true,
    }
}

/// Whether a number is a multiple of another, as far as floating point tells.
pub(super) fn is_multiple(value: f64, of: f64) -> bool {
    let times = value / of;
    (times - times.round()).abs() <= 1e-9 * times.abs().max(1.0)
}

fn text_passes(schema: &Schema, name: &str, of: &Json, text: &str, work: &Work) -> bool {
    if work.spend(text.len() / 16).is_none() {
        return false;
    }
    let length = || text.chars().count() as u64;
    match (name, of) {
        ("minLength", of) => whole(of).is_none_or(|least| length() >= least),
        ("maxLength", of) => whole(of).is_none_or(|most| length() <= most),
        ("pattern", Json::String(pattern)) => schema
            .pattern(pattern)
            .is_none_or(|pattern| pattern.matches(text, work)),
        ("format", Json::String(format)) => schema.has_format(format, text, work),
        _ => true,
    }
}

fn list_passes(name: &str, of: &Json, all: &[Json]) -> bool {
    let Some(bound) = whole(of) else { return true };
    match name {
        "minItems" => all.len() as u64 >= bound,
        "maxItems" => all.len() as u64 <= bound,
        _ => true,
    }
}

fn object_passes(
    name: &str,
    of: &Json,
    members: &[(String, Json)],
    check: &dyn Fn(&Json, &Json) -> bool,
    work: &Work,
) -> bool {
    let count = members.len() as u64;
    match (name, of) {
        ("required", Json::Array(all)) => all.iter().filter_map(Json::as_str).all(|name| {
            let is_there = || members.iter().any(|(member, _)| member == name);
            work.spend(members.len()).is_some() && is_there()
        }),
        ("propertyNames", of) => members
            .iter()
            .all(|(name, _)| check(of, &Json::String(name.clone()))),
        ("minProperties", of) => whole(of).is_none_or(|least| count >= least),
        ("maxProperties", of) => whole(of).is_none_or(|most| count <= most),
        _ => true,
    }
}
