//! Schemas of a description as JSON Schema without references, so that every client of tools reads them.
//!
//! Invariant: what is made is bounded in depth and bytes. A schema that contains itself, or is nested too deep, is open there: it takes
//! anything, and the API says what it does not.
//! Not here: whether arguments fit a schema, which the API checks.

use std::cell::Cell;

use serde_json::{Map, Value, json};

use crate::reference::target;

/// Most bytes of the schema of one tool.
pub(crate) const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// How deep a schema may be nested.
const DEPTH_MAX: usize = 48;
/// How many references may stand inside one another: fewer where the schema is too large otherwise.
const REFERENCES_MAX: [usize; 4] = [12, 5, 2, 1];
/// How many values of schemas are looked at for one description.
const LOOKED_AT_MAX: usize = 8_000_000;

/// What is of no use to whoever calls a tool, or means something else there.
const LEFT_OUT: [&str; 16] = [
    "$anchor",
    "$comment",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$schema",
    "$vocabulary",
    "discriminator",
    "example",
    "examples",
    "externalDocs",
    "nullable",
    "readOnly",
    "required",
    "writeOnly",
    "xml",
];
const OF_ONE: [&str; 11] = [
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
const OF_SEVERAL: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
const OF_NAMES: [&str; 5] = [
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// The schemas of a description.
pub(crate) struct Schemas<'d> {
    root: &'d Map<String, Value>,
    is_old: bool,
    looked_at: Cell<usize>,
}

/// A schema that is being made.
struct Made<'d> {
    within: Vec<&'d str>,
    references_max: usize,
    bytes: usize,
}

enum Unmade {
    TooLarge,
    Fault(String),
}

impl From<String> for Unmade {
    fn from(says: String) -> Self {
        Self::Fault(says)
    }
}

impl<'d> Schemas<'d> {
    pub(crate) fn new(root: &'d Map<String, Value>, is_old: bool) -> Self {
        Self {
            root,
            is_old,
            looked_at: Cell::new(0),
        }
    }

    /// A schema as JSON Schema.
    ///
    /// # Errors
    /// Why it cannot be one.
    pub(crate) fn whole(&self, schema: &'d Value) -> Result<Value, String> {
        for references_max in REFERENCES_MAX {
            let mut made = Made {
                within: Vec::new(),
                references_max,
                bytes: 0,
            };
            match self.one(schema, 0, &mut made) {
                Ok(schema) => return Ok(schema),
                Err(Unmade::Fault(says)) => return Err(says),
                Err(Unmade::TooLarge) => {}
            }
        }
        let kib = SCHEMA_BYTES_MAX >> 10;
        Err(format!("its schema has more than {kib} KiB"))
    }

    fn one(&self, schema: &'d Value, depth: usize, made: &mut Made<'d>) -> Result<Value, Unmade> {
        self.looked_at.set(self.looked_at.get() + 1);
        if self.looked_at.get() > LOOKED_AT_MAX {
            let says = "the schemas of the description are too large together";
            return Err(Unmade::Fault(says.into()));
        }
        made.has(4)?;
        let members = match schema {
            Value::Object(members) if depth < DEPTH_MAX => members,
            Value::Bool(all) => return Ok(Value::Bool(*all)),
            _ => return Ok(json!({})),
        };
        let Some(to) = members.get("$ref") else {
            return self.plain(members, depth, made);
        };
        let Value::String(to) = to else {
            return Err(Unmade::Fault("a `$ref` of its schema is no text".into()));
        };
        let referred = target(self.root, to)?;
        let is_open =
            made.within.contains(&to.as_str()) || made.within.len() >= made.references_max;
        let mut whole = if is_open {
            json!({})
        } else {
            made.within.push(to);
            let whole = self.one(referred, depth + 1, made)?;
            made.within.pop();
            whole
        };
        // In 3.0 nothing beside a reference means anything.
        if self.is_old || members.len() == 1 {
            return Ok(whole);
        }
        let beside: Map<String, Value> = match self.plain(members, depth, made)? {
            Value::Object(beside) => beside,
            _ => return Ok(whole),
        };
        let says_only = |name: &String| {
            ["default", "deprecated", "description", "title"].contains(&name.as_str())
        };
        match &mut whole {
            Value::Object(of) if beside.keys().all(says_only) => of.extend(beside),
            _ => whole = json!({ "allOf": [whole, beside] }),
        }
        Ok(whole)
    }

    fn plain(
        &self,
        members: &'d Map<String, Value>,
        depth: usize,
        made: &mut Made<'d>,
    ) -> Result<Value, Unmade> {
        let (mut out, mut unwritten) = (Map::new(), Vec::new());
        for (name, value) in members {
            let name = name.as_str();
            made.has(name.len() + 4)?;
            let converted = match value {
                _ if name == "$ref" || name.starts_with("x-") || LEFT_OUT.contains(&name) => {
                    continue;
                }
                Value::Object(_) | Value::Bool(_) if OF_ONE.contains(&name) => {
                    self.one(value, depth + 1, made)?
                }
                // `items` was a list once.
                Value::Array(of) if OF_SEVERAL.contains(&name) || name == "items" => {
                    let of = of.iter().map(|of| self.one(of, depth + 1, made));
                    Value::Array(of.collect::<Result<_, _>>()?)
                }
                Value::Object(of) if OF_NAMES.contains(&name) => {
                    let mut all = Map::new();
                    for (key, of) in of {
                        if name == "properties" && self.is_read_only(of) {
                            unwritten.push(key.as_str());
                            continue;
                        }
                        made.has(key.len() + 4)?;
                        all.insert(key.clone(), self.one(of, depth + 1, made)?);
                    }
                    Value::Object(all)
                }
                value => {
                    made.has(value.to_string().len())?;
                    value.clone()
                }
            };
            out.insert(name.to_owned(), converted);
        }
        if let Some(Value::Array(required)) = members.get("required") {
            let is_written =
                |of: &&Value| !of.as_str().is_none_or(|name| unwritten.contains(&name));
            let required: Vec<Value> = required.iter().filter(is_written).cloned().collect();
            if !required.is_empty() {
                made.has(Value::from(required.clone()).to_string().len())?;
                out.insert("required".into(), required.into());
            }
        }
        if self.is_old {
            old(members, &mut out);
        }
        Ok(Value::Object(out))
    }

    /// Whether a member is told and never sent.
    fn is_read_only(&self, schema: &Value) -> bool {
        let referred = match schema.get("$ref") {
            Some(Value::String(to)) if self.is_old => target(self.root, to).ok(),
            _ => None,
        };
        let of = referred.unwrap_or(schema);
        of.get("readOnly") == Some(&Value::Bool(true))
    }
}

impl Made<'_> {
    fn has(&mut self, bytes: usize) -> Result<(), Unmade> {
        self.bytes += bytes;
        match self.bytes > SCHEMA_BYTES_MAX {
            true => Err(Unmade::TooLarge),
            false => Ok(()),
        }
    }
}

/// What 3.0 writes otherwise than JSON Schema does.
fn old(written: &Map<String, Value>, out: &mut Map<String, Value>) {
    if written.get("nullable") == Some(&Value::Bool(true)) {
        if let Some(Value::String(of)) = out.get("type").cloned() {
            out.insert("type".into(), json!([of, "null"]));
        }
        if let Some(Value::Array(of)) = out.get_mut("enum")
            && !of.contains(&Value::Null)
        {
            of.push(Value::Null);
        }
    }
    for (exclusive, bound) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        match written.get(exclusive) {
            Some(Value::Bool(true)) => match out.remove(bound) {
                Some(value) => drop(out.insert(exclusive.into(), value)),
                None => drop(out.remove(exclusive)),
            },
            Some(Value::Bool(false)) => drop(out.remove(exclusive)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
