//! Lists and mappings of schema types.
//!
//! Invariant: never empty; an item that is wrong leaves the others to be read.
//! Not here: mappings whose fields are known (`record`).

use serde_json::json;

use super::{At, Decode, Defs, Findings, Place, Written, child};
use crate::mask::quoted;
use crate::node::{Node, Value};

/// A list with at least one item; `None` stands for an item that was reported.
pub(crate) struct ListOf<T>(pub(crate) Vec<(Place, Option<T>)>);

impl<T: Decode> Decode for ListOf<T> {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        let place = Place::new(path, node.line);
        let Value::List(items) = &node.value else {
            if !node.is_faulty() {
                findings.fault(
                    &place,
                    format!("is {}, not a list", node.what()),
                    "write [ … ] or - items",
                );
            }
            return None;
        };
        if items.is_empty() {
            findings.fault(
                &place,
                "is an empty list",
                "give it an item or leave it out",
            );
            return None;
        }
        let item = |(index, item): (usize, &Node)| {
            let path = format!("{path}[{index}]");
            let value = T::decode(item, &path, findings);
            (Place::new(path, item.line), value)
        };
        Some(Self(items.iter().enumerate().map(item).collect()))
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        json!({ "type": "array", "minItems": 1, "items": T::schema(defs) })
    }
}

/// A mapping, or a list of at least one.
pub(crate) struct OneOrList<T>(pub(crate) Vec<(Place, Option<T>)>);

impl<T: Decode> Decode for OneOrList<T> {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        if matches!(node.value, Value::List(_)) {
            return ListOf::decode(node, path, findings).map(|ListOf(items)| Self(items));
        }
        let one = T::decode(node, path, findings)?;
        Some(Self(vec![(Place::new(path, node.line), Some(one))]))
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        let one = T::schema(defs);
        json!({ "anyOf": [one.clone(), { "type": "array", "minItems": 1, "items": one }] })
    }
}

/// One value, or a list of at least one.
pub(crate) struct OneOrMany<T>(pub(crate) Vec<At<T>>);

impl<T: Written> Decode for OneOrMany<T> {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        if matches!(node.value, Value::List(_)) {
            let ListOf(items) = ListOf::<At<T>>::decode(node, path, findings)?;
            return Some(Self(
                items.into_iter().filter_map(|(_, item)| item).collect(),
            ));
        }
        Some(Self(vec![At::decode(node, path, findings)?]))
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        let one = At::<T>::schema(defs);
        json!({ "anyOf": [one.clone(), { "type": "array", "minItems": 1, "items": one }] })
    }
}

/// One value, or a mapping that says more.
pub(crate) enum ShortOrFull<S, F> {
    Short(At<S>),
    Full(Box<F>),
}

impl<S: Written, F: Decode> Decode for ShortOrFull<S, F> {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        if matches!(node.value, Value::Map(_)) {
            return F::decode(node, path, findings).map(|full| Self::Full(Box::new(full)));
        }
        At::decode(node, path, findings).map(Self::Short)
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        json!({ "anyOf": [At::<S>::schema(defs), F::schema(defs)] })
    }
}

/// A mapping from names that a person chose; at least one.
pub(crate) struct MapOf<K, T>(pub(crate) Vec<(At<K>, Option<T>)>);

impl<K: Written, T: Decode> Decode for MapOf<K, T> {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        let place = Place::new(path, node.line);
        let Value::Map(entries) = &node.value else {
            if !node.is_faulty() {
                findings.fault(
                    &place,
                    format!("is {}, not a mapping", node.what()),
                    "write name: value",
                );
            }
            return None;
        };
        if entries.is_empty() {
            findings.fault(
                &place,
                "is an empty mapping",
                "give it an entry or leave it out",
            );
            return None;
        }
        let mut kept = Vec::new();
        for entry in entries {
            let path = child(path, &entry.key);
            let value = T::decode(&entry.node, &path, findings);
            let place = Place::new(path, entry.line);
            let shown = quoted(&entry.key);
            match K::read(&entry.key) {
                Ok(key) => kept.push((
                    At {
                        value: key,
                        place,
                        shown,
                    },
                    value,
                )),
                Err(problem) => {
                    findings.fault(&place, format!("{shown} {}", problem.is), problem.hint);
                }
            }
        }
        Some(Self(kept))
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        json!({
            "type": "object",
            "minProperties": 1,
            "propertyNames": K::schema(),
            "additionalProperties": T::schema(defs),
        })
    }
}
