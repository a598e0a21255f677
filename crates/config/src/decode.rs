//! Trees to schema types, collecting every fault on the way.
//!
//! One [`record!`] gives a type its fields, its decoder and its JSON Schema, so that the three
//! cannot disagree. A field that is wrong is told apart from one that is absent: what follows
//! from a wrong field is not reported a second time.
//! Not here: what the fields are (`schema`), how single values read (`scalar`).

use serde_json::{Map, json};

use crate::fault::Fault;
use crate::node::{Node, Shape, Value, quoted};

/// Where faults go.
#[derive(Default)]
pub(crate) struct Findings {
    pub(crate) faults: Vec<Fault>,
    pub(crate) warnings: Vec<Fault>,
}

impl Findings {
    pub(crate) fn fault(
        &mut self,
        place: &Place,
        says: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.faults.push(place.fault(says, hint));
    }

    pub(crate) fn warn(&mut self, place: &Place, says: impl Into<String>, hint: impl Into<String>) {
        self.warnings.push(place.fault(says, hint));
    }
}

/// A spot in the document.
#[derive(Debug, Clone, Default)]
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) line: usize,
}

impl Place {
    fn fault(&self, says: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault {
            path: self.path.clone(),
            line: (self.line > 0).then_some(self.line),
            says: says.into(),
            hint: hint.into(),
        }
    }
}

/// A schema type: reads itself from a node, and describes itself.
pub(crate) trait Decode: Sized {
    /// `None` when the node is of the wrong kind altogether; the fault is already noted.
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self>;
    /// The JSON Schema of what `decode` takes.
    fn schema(defs: &mut Defs) -> serde_json::Value;
}

/// Schemas of records, by name.
pub(crate) type Defs = Map<String, serde_json::Value>;

/// A field of a record.
pub(crate) enum Field<T> {
    /// Not written.
    Absent,
    /// Written wrongly, and reported.
    Bad,
    /// Written well, as far as the field alone can tell.
    Is(T),
}

impl<T> Field<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        if let Self::Is(value) = self {
            Some(value)
        } else {
            None
        }
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

/// How one scalar is written.
pub(crate) trait Written: Sized {
    /// What YAML may take it for.
    const TAKES: Takes;
    /// Whether its text must never be shown.
    const SECRET: bool = false;
    /// Reads it.
    fn read(text: &str) -> Result<Self, Problem>;
    /// Its JSON Schema.
    fn schema() -> serde_json::Value;
}

/// What YAML may take a scalar for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Text,
    Number,
    Either,
}

/// Why a scalar cannot be read: `"…" {is}; {hint}`.
pub(crate) struct Problem {
    pub(crate) is: String,
    pub(crate) hint: String,
    /// Whether the text may be quoted.
    pub(crate) quotable: bool,
}

impl Problem {
    pub(crate) fn new(is: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            is: is.into(),
            hint: hint.into(),
            quotable: true,
        }
    }
}

/// A scalar, where it stands and how it was written.
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
    /// In quotes, variables not filled in; `this` where it must not be shown.
    pub(crate) shown: String,
}

impl<T: Written> Decode for At<T> {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        let place = Place {
            path: path.into(),
            line: node.line,
        };
        let wanted = match T::TAKES {
            Takes::Text => "text",
            Takes::Number => "a number",
            Takes::Either => "a number or text",
        };
        let Value::Scalar(scalar) = &node.value else {
            findings.fault(&place, format!("is {}, not {wanted}", node.what()), "");
            return None;
        };
        let fits = match scalar.shape() {
            Shape::Text => T::TAKES != Takes::Number || scalar.filled,
            Shape::Number => T::TAKES != Takes::Text,
            Shape::Boolean | Shape::Nothing => false,
        };
        let shown = if T::SECRET {
            "this".into()
        } else {
            quoted(&scalar.raw)
        };
        if !fits {
            let (says, hint) = match scalar.shape() {
                Shape::Nothing => ("is empty".to_owned(), "give it a value or leave it out"),
                Shape::Text => (
                    format!("{shown} is text, not {wanted}"),
                    "write it without quotes",
                ),
                _ if T::TAKES == Takes::Text => (
                    format!("{shown} is {}, not {wanted}", node.what()),
                    "write it in quotes",
                ),
                _ => (format!("{shown} is {}, not {wanted}", node.what()), ""),
            };
            findings.fault(&place, says, hint);
            return None;
        }
        match T::read(&scalar.text) {
            Ok(value) => Some(Self {
                value,
                place,
                shown,
            }),
            Err(problem) => {
                let shown = if problem.quotable {
                    shown.as_str()
                } else {
                    "this"
                };
                findings.fault(&place, format!("{shown} {}", problem.is), problem.hint);
                None
            }
        }
    }

    fn schema(_: &mut Defs) -> serde_json::Value {
        let written = T::schema();
        let has_pattern = written.get("pattern").is_some() || written.get("enum").is_some();
        let is_text = written.get("type").is_some_and(|t| t == "string");
        if is_text && !has_pattern {
            return written;
        }
        json!({ "anyOf": [written, { "type": "string", "pattern": r"\$\{" }] })
    }
}

/// A list with at least one item; `None` stands for an item that was reported.
pub(crate) struct ListOf<T>(pub(crate) Vec<(Place, Option<T>)>);

impl<T: Decode> Decode for ListOf<T> {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        let place = Place {
            path: path.into(),
            line: node.line,
        };
        let Value::List(items) = &node.value else {
            findings.fault(
                &place,
                format!("is {}, not a list", node.what()),
                "write [ … ] or - items",
            );
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
            (
                Place {
                    path,
                    line: item.line,
                },
                value,
            )
        };
        Some(Self(items.iter().enumerate().map(item).collect()))
    }

    fn schema(defs: &mut Defs) -> serde_json::Value {
        json!({ "type": "array", "minItems": 1, "items": T::schema(defs) })
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

/// A mapping from names that a person chose; at least one.
pub(crate) struct MapOf<K, T>(pub(crate) Vec<(At<K>, Option<T>)>);

impl<K: Written, T: Decode> Decode for MapOf<K, T> {
    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        let place = Place {
            path: path.into(),
            line: node.line,
        };
        let Value::Map(entries) = &node.value else {
            findings.fault(
                &place,
                format!("is {}, not a mapping", node.what()),
                "write name: value",
            );
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
            let place = Place {
                path,
                line: entry.line,
            };
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

/// The path of a member: `a.b`, or `a["b c"]` where the name is not a plain word.
pub(crate) fn child(path: &str, key: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    match (
        path,
        !key.is_empty() && key.len() <= 64 && key.bytes().all(plain),
    ) {
        ("", true) => key.to_owned(),
        (_, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}[{}]", quoted(key)),
    }
}

/// The members of a record while it is being read.
pub(crate) struct Fields<'n> {
    node: &'n Node,
    path: String,
    /// Fields that an unknown one was probably meant to be.
    slips: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// Opens a mapping and reports the members that the record does not have.
    pub(crate) fn open(
        node: &'n Node,
        path: &str,
        known: &[&'static str],
        findings: &mut Findings,
    ) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            let place = Place {
                path: path.into(),
                line: node.line,
            };
            let hint = format!("its fields are {}", known.join(", "));
            findings.fault(&place, format!("is {}, not a mapping", node.what()), hint);
            return None;
        };
        let mut slips = Vec::new();
        for entry in entries.iter().filter(|e| !known.contains(&e.key.as_str())) {
            let place = Place {
                path: path.into(),
                line: entry.line,
            };
            // A key that is no word may be a misplaced secret: say where it is, not what it is.
            let word = entry
                .key
                .bytes()
                .all(|b| b.is_ascii_alphabetic() || b == b'_');
            let says = if entry.key == "<<" {
                "merge keys (`<<`) are not part of YAML 1.2".to_owned()
            } else if word && entry.key.len() <= 24 {
                format!("unknown field {}", quoted(&entry.key))
            } else {
                "unknown field".to_owned()
            };
            let near = nearest(&entry.key, known);
            slips.extend(near);
            let hint = match near {
                Some(name) => format!("did you mean {name}?"),
                None => format!("the fields here are {}", known.join(", ")),
            };
            findings.fault(&place, says, hint);
        }
        Some(Self {
            node,
            path: path.into(),
            slips,
        })
    }

    pub(crate) fn optional<T: Decode>(&mut self, name: &str, findings: &mut Findings) -> Field<T> {
        let Value::Map(entries) = &self.node.value else {
            return Field::Absent;
        };
        let Some(entry) = entries.iter().find(|e| e.key == name) else {
            // A slip in this very name was reported where it stands.
            let slipped = self.slips.contains(&name);
            return if slipped { Field::Bad } else { Field::Absent };
        };
        match T::decode(&entry.node, &child(&self.path, name), findings) {
            Some(value) => Field::Is(value),
            None => Field::Bad,
        }
    }

    pub(crate) fn required<T: Decode>(&mut self, name: &str, findings: &mut Findings) -> Field<T> {
        let field = self.optional(name, findings);
        if field.is_absent() {
            let place = Place {
                path: self.path.clone(),
                line: self.node.line,
            };
            findings.fault(&place, format!("{name} is missing"), "");
            return Field::Bad;
        }
        field
    }
}

/// The known name that a typing error could have made into `written`.
pub(crate) fn nearest<'k>(written: &str, known: &[&'k str]) -> Option<&'k str> {
    if written.len() > 64 {
        return None;
    }
    let written = written.to_ascii_lowercase().replace('-', "_");
    known
        .iter()
        .map(|name| (distance(&written, name), *name))
        .filter(|(distance, name)| *distance <= 2 && *distance * 2 < name.len().max(3))
        .min()
        .map(|(_, name)| name)
}

/// Levenshtein's distance in bytes.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (y, above) in b.bytes().zip(row.iter().skip(1)) {
            left = (diagonal + usize::from(x != y))
                .min(left + 1)
                .min(above + 1);
            diagonal = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}

/// Puts a record's schema among the definitions and refers to it.
pub(crate) fn define(
    name: &'static str,
    about: &str,
    defs: &mut Defs,
    fields: impl FnOnce(&mut Defs) -> Vec<(&'static str, bool, &'static str, serde_json::Value)>,
) -> serde_json::Value {
    let fields = fields(defs);
    let required: Vec<&str> = fields.iter().filter(|f| f.1).map(|f| f.0).collect();
    let properties: Map<String, serde_json::Value> = fields
        .iter()
        .map(|(name, _, about, schema)| {
            let mut schema = schema.clone();
            if let Some(members) = schema.as_object_mut() {
                members.insert("description".into(), about.trim().into());
            }
            ((*name).to_owned(), schema)
        })
        .collect();
    let mut record = json!({
        "type": "object",
        "description": about.trim(),
        "properties": properties,
        "additionalProperties": false,
    });
    if let (false, Some(members)) = (required.is_empty(), record.as_object_mut()) {
        members.insert("required".into(), required.into());
    }
    defs.insert(name.into(), record);
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// A record: its fields (`required` or `optional`), its decoder and its JSON Schema.
macro_rules! record {
    ($(#[doc = $about:literal])* $name:ident {
        $($(#[doc = $field_about:literal])* $need:ident $field:ident: $type:ty,)*
    }) => {
        $(#[doc = $about])*
        pub(crate) struct $name {
            $($(#[doc = $field_about])* pub(crate) $field: $crate::decode::Field<$type>,)*
        }

        impl $crate::decode::Decode for $name {
            fn decode(
                node: &$crate::node::Node,
                path: &str,
                findings: &mut $crate::decode::Findings,
            ) -> Option<Self> {
                let known = [$(stringify!($field).trim_start_matches("r#")),*];
                let mut fields = $crate::decode::Fields::open(node, path, &known, findings)?;
                Some(Self {
                    $($field: fields.$need(stringify!($field).trim_start_matches("r#"), findings),)*
                })
            }

            fn schema(defs: &mut $crate::decode::Defs) -> serde_json::Value {
                $crate::decode::define(stringify!($name), concat!($($about),*), defs, |defs| vec![
                    $((
                        stringify!($field).trim_start_matches("r#"),
                        stringify!($need) == "required",
                        concat!($($field_about),*),
                        <$type as $crate::decode::Decode>::schema(defs),
                    ),)*
                ])
            }
        }
    };
}
pub(crate) use record;
