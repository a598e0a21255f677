//! Trees to schema types, collecting every fault on the way.
//!
//! One [`record!`] gives a type its fields, its decoder and its JSON Schema, so that the three
//! cannot disagree. A field that is wrong is told apart from one that is absent: what follows
//! from a wrong field is not reported a second time.
//! Not here: what the fields are (`schema`), how single values read (`scalar`).

use serde_json::{Map, json};

use crate::fault::Fault;
use crate::mask::{looks_like_key, masked, quoted};
use crate::node::{Filled, Node, Shape, Value};

pub(crate) use many::{ListOf, MapOf, OneOrList, OneOrMany, ShortOrFull};
pub use nearest::nearest;
pub(crate) use record::{Fields, Member, Record, define, record, whole};

mod many;
mod nearest;
mod record;

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
    pub(crate) fn new(path: impl Into<String>, line: usize) -> Self {
        let path = path.into();
        Self { path, line }
    }

    /// A member of what stands here.
    pub(crate) fn below(&self, name: &str) -> Self {
        Self::new(format!("{}.{name}", self.path), self.line)
    }

    pub(crate) fn fault(&self, says: impl Into<String>, hint: impl Into<String>) -> Fault {
        Fault {
            file: None,
            path: self.path.clone(),
            line: (self.line > 0).then_some(self.line),
            says: masked(&says.into()),
            hint: masked(&hint.into()),
        }
    }
}

/// A schema type: reads itself from a node, and describes itself.
pub(crate) trait Decode: Sized {
    /// Whether this very value, not one inside of it, is a secret or says where one is kept.
    const HOLDS_SECRET: bool = false;
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

    pub(crate) fn is_bad(&self) -> bool {
        matches!(self, Self::Bad)
    }
}

impl<T> Field<At<T>> {
    /// What is written, without its place.
    pub(crate) fn value(&self) -> Option<&T> {
        self.get().map(|at| &at.value)
    }
}

impl<T> Field<OneOrMany<T>> {
    /// What is written; nothing where nothing is.
    pub(crate) fn items(&self) -> &[At<T>] {
        self.get().map_or(&[], |many| &many.0)
    }
}

impl<T> Field<ListOf<T>> {
    /// What is written; nothing where nothing is.
    pub(crate) fn items(&self) -> &[(Place, Option<T>)] {
        self.get().map_or(&[], |list| &list.0)
    }
}

impl<K, T> Field<MapOf<K, T>> {
    /// What is written; nothing where nothing is.
    pub(crate) fn items(&self) -> &[(At<K>, Option<T>)] {
        self.get().map_or(&[], |map| &map.0)
    }
}

/// How one scalar is written.
pub(crate) trait Written: Sized {
    /// What YAML may take it for.
    const TAKES: Takes = Takes::Text;
    /// Whether it is a secret or says where one is kept.
    const HOLDS_SECRET: bool = false;
    /// Whether it may be quoted in a message that says what is wrong with it. A field that holds a secret, or may by a
    /// slip, shows nothing of it: [`HIDDEN`].
    const IS_SHOWN: bool = true;
    /// Whether it is an address: what a variable held for it stands in a message, unless a secret may be in it.
    const IS_ADDRESS: bool = false;
    /// Which texts its JSON Schema takes; all where it says none.
    const PATTERN: &'static str = "";
    /// Reads it.
    fn read(text: &str) -> Result<Self, Problem>;
    /// It as written, in a message.
    fn shown(raw: &str) -> String {
        if Self::IS_SHOWN {
            quoted(raw)
        } else {
            HIDDEN.into()
        }
    }
    /// Its JSON Schema.
    fn schema() -> serde_json::Value {
        match Self::PATTERN {
            "" => json!({ "type": "string" }),
            pattern => json!({ "type": "string", "pattern": pattern }),
        }
    }
}

/// In place of what a field that holds a secret has.
pub(crate) const HIDDEN: &str = "this";

/// What YAML may take a scalar for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    Text,
    Number,
    Either,
    /// True or false.
    Flag,
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

    /// Of a text that may hold a secret.
    pub(crate) fn unquoted(is: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            quotable: false,
            ..Self::new(is, hint)
        }
    }
}

/// A scalar, where it stands and how it was written.
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) place: Place,
    /// As [`Written::shown`], variables not filled in, but for an address.
    pub(crate) shown: String,
}

impl<T: Written> Decode for At<T> {
    const HOLDS_SECRET: bool = T::HOLDS_SECRET;

    fn decode(node: &Node, path: &str, findings: &mut Findings) -> Option<Self> {
        let place = Place::new(path, node.line);
        let wanted = match T::TAKES {
            Takes::Text => "text",
            Takes::Number => "a number",
            Takes::Either => "a number or text",
            Takes::Flag => "true or false",
        };
        let Value::Scalar(scalar) = &node.value else {
            findings.fault(&place, format!("is {}, not {wanted}", node.what()), "");
            return None;
        };
        if node.is_faulty() {
            return None;
        }
        let fits = match scalar.shape() {
            Shape::Text => {
                matches!(T::TAKES, Takes::Text | Takes::Either) || scalar.filled == Filled::Yes
            }
            Shape::Number => matches!(T::TAKES, Takes::Number | Takes::Either),
            Shape::Boolean => T::TAKES == Takes::Flag,
            Shape::Nothing => false,
        };
        let shown = if is_in_credential(path) && !T::HOLDS_SECRET {
            HIDDEN.into()
        } else if T::IS_ADDRESS && scalar.filled == Filled::Yes && may_show(&scalar.text) {
            format!("{} (of {})", quoted(&scalar.text), T::shown(&scalar.raw))
        } else {
            T::shown(&scalar.raw)
        };
        if !fits {
            let (says, hint) = match scalar.shape() {
                Shape::Nothing => ("is empty".to_owned(), "give it a value or leave it out"),
                Shape::Text if T::TAKES == Takes::Flag => (
                    format!("{shown} is text, not {wanted}"),
                    "write true or false",
                ),
                // As text it would be no better: without the quotes, which it may not even have, or in quotes.
                shape
                    if (shape == Shape::Text || T::TAKES == Takes::Text)
                        && let Err(problem) = T::read(&scalar.text) =>
                {
                    let shown = if problem.quotable { &shown } else { HIDDEN };
                    findings.fault(&place, format!("{shown} {}", problem.is), problem.hint);
                    return None;
                }
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
                let shown = if problem.quotable { &shown } else { HIDDEN };
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

/// Whether what a variable held for an address is one, as far as anybody sees: neither a user nor a query, which may be secrets.
fn may_show(text: &str) -> bool {
    let mut ends = text.split(':').skip(1);
    let is_address =
        ends.any(|end| end.starts_with("//") || end.starts_with(|c: char| c.is_ascii_digit()));
    is_address && !text.contains(['@', '?', '#'])
}

/// Whether this stands among the fields of what a credential is made of, where a secret is easily put into the wrong one.
fn is_in_credential(path: &str) -> bool {
    let inside = path.split_once(".credential.").map(|(_, inside)| inside);
    inside.is_some_and(|inside| inside.contains('.'))
}

/// The path of a member: `a.b`, or `a["b c"]` where the name is not a plain word, `a["***"]` where it
/// looks like a key.
pub(crate) fn child(path: &str, key: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    match (
        path,
        !key.is_empty() && key.len() <= 64 && key.bytes().all(plain) && !looks_like_key(key),
    ) {
        ("", true) => key.to_owned(),
        (_, true) => format!("{path}.{key}"),
        (_, false) => format!("{path}[{}]", quoted(key)),
    }
}
