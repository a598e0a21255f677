//! The other file's values: mappings with their merge keys, and texts that may be names of variables.
//!
//! Not here: what the settings mean.

use std::fmt::Write as _;

use crate::decode::{Findings, Place, child};
use crate::node::{Entry, Node, Shape, Value};
use crate::vars::is_name;

/// How the other file names a variable.
const VARIABLE: &str = "os.environ/";

/// A mapping, and where it stands.
#[derive(Clone, Default)]
pub(super) struct Section<'a> {
    pub(super) place: Place,
    entries: Vec<&'a Entry>,
}

impl<'a> Section<'a> {
    /// A mapping; one that is empty where nothing is written.
    pub(super) fn open(node: &'a Node, path: &str, findings: &mut Findings) -> Option<Self> {
        let place = Place::new(path, node.line);
        if is_nothing(node) {
            return Some(Self {
                place,
                entries: Vec::new(),
            });
        }
        let Value::Map(entries) = &node.value else {
            findings.fault(&place, format!("is {}, not a mapping", node.what()), "");
            return None;
        };
        let mut section = Self {
            place,
            entries: Vec::new(),
        };
        let is_merge = |entry: &&Entry| entry.key == "<<";
        section
            .entries
            .extend(entries.iter().filter(|entry| !is_merge(entry)));
        for entry in entries.iter().filter(is_merge) {
            section.merge(&entry.node);
        }
        Some(section)
    }

    /// The entries of other mappings, where there are none of these names yet.
    fn merge(&mut self, node: &'a Node) {
        match &node.value {
            Value::Map(entries) => {
                for entry in entries {
                    self.add(entry);
                }
            }
            Value::List(items) => items.iter().for_each(|item| self.merge(item)),
            Value::Scalar(_) => {}
        }
    }

    fn add(&mut self, entry: &'a Entry) {
        if !self.entries.iter().any(|own| own.key == entry.key) {
            self.entries.push(entry);
        }
    }

    /// This one, and of another what it does not say.
    pub(super) fn or(mut self, other: &Self) -> Self {
        for entry in &other.entries {
            self.add(entry);
        }
        self
    }

    /// What is written under a name; nothing where it is empty.
    pub(super) fn get(&self, key: &str) -> Option<&'a Node> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        Some(&entry.node).filter(|node| !is_nothing(node))
    }

    pub(super) fn place_of(&self, key: &str) -> Place {
        let line = self
            .entries
            .iter()
            .find(|entry| entry.key == key)
            .map_or(self.place.line, |entry| entry.line);
        Place::new(child(&self.place.path, key), line)
    }

    /// Its entries that are written, in their order.
    pub(super) fn entries(&self) -> impl Iterator<Item = &'a Entry> + '_ {
        let written = self.entries.iter().copied();
        written.filter(|entry| !is_nothing(&entry.node))
    }

    /// A mapping below this one; empty where there is none.
    pub(super) fn section(&self, key: &str, findings: &mut Findings) -> Self {
        let path = child(&self.place.path, key);
        self.get(key)
            .and_then(|node| Section::open(node, &path, findings))
            .unwrap_or_else(|| Self {
                place: self.place_of(key),
                entries: Vec::new(),
            })
    }

    /// The items of a list; a single value is a list of itself.
    pub(super) fn list(&self, key: &str) -> &'a [Node] {
        match self.get(key) {
            Some(Node {
                value: Value::List(items),
                ..
            }) => items,
            Some(node) => std::slice::from_ref(node),
            None => &[],
        }
    }

    pub(super) fn text(&self, key: &str, findings: &mut Findings) -> Option<Given> {
        let node = self.get(key)?;
        let given = given(node);
        if given.is_none() {
            let says = format!("is {}, not text", node.what());
            findings.fault(&self.place_of(key), says, "");
        }
        given
    }

    /// A whole number. What a variable holds is not known here.
    pub(super) fn count(&self, key: &str, findings: &mut Findings) -> Option<u64> {
        let Given::Text(text) = self.text(key, findings)? else {
            return None;
        };
        let digits = text.strip_suffix(".0").unwrap_or(&text);
        let count = digits.parse().ok();
        if count.is_none() {
            findings.fault(&self.place_of(key), "is not a whole number", "");
        }
        count
    }

    /// Seconds as a duration of the gate's. What a variable holds is not known here.
    pub(super) fn seconds(&self, key: &str, findings: &mut Findings) -> Option<String> {
        const YEAR_S: f64 = 366.0 * 24.0 * 60.0 * 60.0;
        let Given::Text(text) = self.text(key, findings)? else {
            return None;
        };
        match text.parse::<f64>() {
            Ok(seconds) if (0.001..=YEAR_S).contains(&seconds) => {
                let span = std::time::Duration::from_secs_f64(seconds);
                Some(match span.subsec_millis() {
                    0 => format!("{}s", span.as_secs()),
                    _ => format!("{}ms", span.as_millis()),
                })
            }
            _ => {
                findings.fault(&self.place_of(key), "is not a number of seconds", "");
                None
            }
        }
    }

    pub(super) fn is_true(&self, key: &str) -> bool {
        let text = self.get(key).and_then(given);
        matches!(text, Some(Given::Text(text)) if text.eq_ignore_ascii_case("true"))
    }
}

fn is_nothing(node: &Node) -> bool {
    matches!(&node.value, Value::Scalar(scalar) if scalar.shape() == Shape::Nothing)
}

/// A text as the other file gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Given {
    Text(String),
    /// What this variable holds.
    Variable(String),
}

impl Given {
    /// As part of a value of the gate's document.
    pub(super) fn composed(&self) -> String {
        match self {
            Self::Text(text) => composed(text),
            Self::Variable(name) => format!("${{{name}}}"),
        }
    }
}

/// A scalar's text, or the variable that it names.
pub(super) fn given(node: &Node) -> Option<Given> {
    let Value::Scalar(scalar) = &node.value else {
        return None;
    };
    let text = scalar.text.trim();
    let name = text.strip_prefix(VARIABLE).filter(|name| is_name(name));
    Some(name.map_or_else(
        || Given::Text(text.to_owned()),
        |name| Given::Variable(name.to_owned()),
    ))
}

/// Every variable that is named somewhere below.
pub(super) fn variables(node: &Node, names: &mut Vec<String>) {
    match &node.value {
        Value::Scalar(_) => {
            if let Some(Given::Variable(name)) = given(node) {
                names.push(name);
            }
        }
        Value::List(items) => items.iter().for_each(|item| variables(item, names)),
        Value::Map(entries) => entries
            .iter()
            .for_each(|entry| variables(&entry.node, names)),
    }
}

/// Text in which no `$` begins a variable.
pub(super) fn composed(text: &str) -> String {
    text.replace('$', "$$")
}

/// A composed text as a scalar of YAML: in quotes, unless it is a plain word.
pub(super) fn scalar(composed: &str) -> String {
    const WORDS: [&str; 7] = ["true", "false", "null", "yes", "no", "on", "off"];
    let is_plain = composed
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic())
        && composed
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"._/-".contains(&b))
        && !WORDS.contains(&composed.to_ascii_lowercase().as_str());
    if is_plain {
        composed.to_owned()
    } else {
        serde_json::Value::from(composed).to_string()
    }
}

/// A flow mapping.
pub(super) fn flow(entries: &[(String, String)]) -> String {
    let mut text = String::from("{ ");
    for (index, (key, value)) in entries.iter().enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = write!(text, "{comma}{}: {value}", scalar(key));
    }
    text + " }"
}
