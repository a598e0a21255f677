//! Mappings whose fields are known.
//!
//! Invariant: one [`record!`] is the only place that says a record's fields; its decoder and its
//! JSON Schema follow from it.
//! Not here: the records (`schema`).

use serde_json::{Map, json};

use super::{Decode, Defs, Field, Findings, Place, child, nearest};
use crate::mask::quoted;
use crate::node::{Entry, Node, Value};

/// Former names of fields, and the names that took their place: taken for one release, with a warning.
const FORMER: [(&str, &str); 2] = [("drain", "read_to_end"), ("drains", "reads_to_end")];

/// The name of the field that an entry is for.
fn field_of<'e>(entry: &'e Entry, known: &[&'static str]) -> &'e str {
    let key = entry.key.as_str();
    let is_former = |(former, now): &&(&str, &'static str)| *former == key && known.contains(now);
    let is_known = known.contains(&key);
    let former = FORMER.iter().find(is_former).filter(|_| !is_known);
    former.map_or(key, |(_, now)| now)
}

/// The members of a record while it is being read.
pub(crate) struct Fields<'n> {
    node: &'n Node,
    known: Vec<&'static str>,
    path: String,
    /// Fields that an unknown one was probably meant to be.
    slips: Vec<&'static str>,
}

impl<'n> Fields<'n> {
    /// Opens a mapping and reports the members that the record does not have. Where one of its fields
    /// `holds_secret`, it shows only those that are probably slips.
    pub(crate) fn open(
        node: &'n Node,
        path: &str,
        known: &[&'static str],
        holds_secret: bool,
        findings: &mut Findings,
    ) -> Option<Self> {
        let Value::Map(entries) = &node.value else {
            let place = Place::new(path, node.line);
            let hint = format!("its fields are {}", known.join(", "));
            if !node.is_faulty() {
                findings.fault(&place, format!("is {}, not a mapping", node.what()), hint);
            }
            return None;
        };
        // What stands below is as likely to be one.
        let holds_secret = holds_secret || path.split('.').any(|part| part == "credential");
        let mut slips = Vec::new();
        for entry in entries.iter().filter(|e| !known.contains(&e.key.as_str())) {
            let place = Place::new(path, entry.line);
            let now = field_of(entry, known);
            let stands_twice = entries.iter().any(|e| e.key == now);
            if now != entry.key && !stands_twice {
                let says = format!("`{}` is the former name of `{now}`", entry.key);
                findings.warn(&place, says, "write that; the former name ends with 0.3.0");
                continue;
            }
            let near = nearest(&entry.key, known);
            // It may be a misplaced secret when it is no word, or beside a secret's own fields.
            let letters = |b: u8| b.is_ascii_alphabetic() || b == b'_';
            let word = entry.key.bytes().all(letters) && (near.is_some() || !holds_secret);
            let says = if entry.key == "<<" {
                "merge keys (`<<`) are not part of YAML 1.2".to_owned()
            } else if word && entry.key.len() <= 24 {
                format!("unknown field {}", quoted(&entry.key))
            } else {
                "unknown field".to_owned()
            };
            slips.extend(near);
            let hint = match near {
                Some(name) => format!("did you mean {name}?"),
                None => format!("the fields here are {}", known.join(", ")),
            };
            findings.fault(&place, says, hint);
        }
        Some(Self {
            node,
            known: known.into(),
            path: path.into(),
            slips,
        })
    }

    pub(crate) fn optional<T: Decode>(&mut self, name: &str, findings: &mut Findings) -> Field<T> {
        let Value::Map(entries) = &self.node.value else {
            return Field::Absent;
        };
        let by_name = entries.iter().find(|e| e.key == name);
        let entry = by_name.or_else(|| entries.iter().find(|e| field_of(e, &self.known) == name));
        let Some(entry) = entry else {
            // A slip in this very name was reported where it stands.
            let slipped = self.slips.contains(&name);
            return if slipped { Field::Bad } else { Field::Absent };
        };
        match T::decode(&entry.node, &child(&self.path, &entry.key), findings) {
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

/// Puts a record's schema among the definitions and refers to it.
pub(crate) fn define<R: Record>(
    name: &'static str,
    about: &str,
    defs: &mut Defs,
) -> serde_json::Value {
    let fields = R::members(defs);
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

/// A record's own fields and those of the records that stand in it without a name of their own.
pub(crate) trait Record: Sized {
    /// A field: its name, whether it is required, what it is, its schema.
    fn members(defs: &mut Defs) -> Vec<Member>;
    /// The names of all fields, in the order written.
    fn known() -> Vec<&'static str>;
    /// Whether a field of its own is a secret or says where one is kept.
    fn holds_secret() -> bool;
    /// Takes them out of a mapping that was opened.
    fn take(fields: &mut Fields<'_>, findings: &mut Findings) -> Self;
}

/// A field's name, whether it is required, what it is, and its schema.
pub(crate) type Member = (&'static str, bool, &'static str, serde_json::Value);

/// Reads a record from a mapping.
pub(crate) fn whole<R: Record>(node: &Node, path: &str, findings: &mut Findings) -> Option<R> {
    let mut fields = Fields::open(node, path, &R::known(), R::holds_secret(), findings)?;
    Some(R::take(&mut fields, findings))
}

/// A record: its fields (`required` or `optional`), its decoder and its JSON Schema. `of x: X` puts the fields of
/// another record before its own, and `and x: X` puts them behind.
macro_rules! record {
    ($(#[doc = $about:literal])* $name:ident $(of $first:ident: $first_of:ty)? {
        $($(#[doc = $field_about:literal])* $need:ident $field:ident: $type:ty,)*
    } $(and $part:ident: $of:ty)*) => {
        $(#[doc = $about])*
        pub(crate) struct $name {
            $($(#[doc = $field_about])* pub(crate) $field: $crate::decode::Field<$type>,)*
            $(pub(crate) $first: $first_of,)?
            $(pub(crate) $part: $of,)*
        }

        impl $crate::decode::Record for $name {
            fn members(defs: &mut $crate::decode::Defs) -> Vec<$crate::decode::Member> {
                let own: Vec<$crate::decode::Member> = vec![
                    $((
                        stringify!($field).trim_start_matches("r#"),
                        stringify!($need) == "required",
                        concat!($($field_about),*),
                        <$type as $crate::decode::Decode>::schema(defs),
                    ),)*
                ];
                [
                    $(<$first_of as $crate::decode::Record>::members(defs),)?
                    own,
                    $(<$of as $crate::decode::Record>::members(defs),)*
                ]
                .concat()
            }

            fn known() -> Vec<&'static str> {
                let own: Vec<&'static str> = vec![$(stringify!($field).trim_start_matches("r#")),*];
                [
                    $(<$first_of as $crate::decode::Record>::known(),)?
                    own,
                    $(<$of as $crate::decode::Record>::known(),)*
                ]
                .concat()
            }

            fn holds_secret() -> bool {
                let own: &[bool] = &[$(<$type as $crate::decode::Decode>::HOLDS_SECRET),*];
                own.contains(&true)
                    $(|| <$first_of as $crate::decode::Record>::holds_secret())?
                    $(|| <$of as $crate::decode::Record>::holds_secret())*
            }

            fn take(
                fields: &mut $crate::decode::Fields<'_>,
                findings: &mut $crate::decode::Findings,
            ) -> Self {
                Self {
                    $($first: <$first_of as $crate::decode::Record>::take(fields, findings),)?
                    $($field: fields.$need(stringify!($field).trim_start_matches("r#"), findings),)*
                    $($part: <$of as $crate::decode::Record>::take(fields, findings),)*
                }
            }
        }

        impl $crate::decode::Decode for $name {
            fn decode(
                node: &$crate::node::Node,
                path: &str,
                findings: &mut $crate::decode::Findings,
            ) -> Option<Self> {
                $crate::decode::whole(node, path, findings)
            }

            fn schema(defs: &mut $crate::decode::Defs) -> serde_json::Value {
                $crate::decode::define::<Self>(stringify!($name), concat!($($about),*), defs)
            }
        }
    };
}
pub(crate) use record;
