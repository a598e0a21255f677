//! YAML text to a tree in which everything knows its line.
//!
//! Invariant: the tree is bounded in depth, nodes and bytes whatever the text says (aliases count
//! each time they are used), and no mapping holds a key twice.
//! Not here: what the fields mean (`decode`, `schema`), `${VAR}` (`vars`).

mod json;

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use crate::fault::Fault;
use crate::mask::quoted;
pub use json::parse_json;

const DEPTH_MAX: usize = 32;
const NODES_MAX: usize = 200_000;
const SCALAR_BYTES_MAX: usize = 16 << 20;

/// One value of the document.
#[derive(Debug, Clone)]
pub struct Node {
    /// Where it begins, from 1.
    pub line: usize,
    /// What it is.
    pub value: Value,
}

/// What a value is.
#[derive(Debug, Clone)]
pub enum Value {
    /// Text, a number, a boolean or nothing.
    Scalar(Scalar),
    /// Values in order.
    List(Vec<Node>),
    /// Values by name, in the order written; no name comes twice.
    Map(Vec<Entry>),
}

/// A member of a mapping.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Its name.
    pub key: String,
    /// Where the name stands.
    pub line: usize,
    /// What it is.
    pub node: Node,
}

/// Text as written, and as it reads once variables are filled in.
#[derive(Clone)]
pub struct Scalar {
    /// As written, without its quotes.
    pub raw: String,
    pub(crate) text: String,
    /// Neither quoted nor a block scalar, so YAML may read it as a number, a boolean or nothing.
    pub(crate) plain: bool,
    pub(crate) filled: Filled,
}

/// Whether the variables of a scalar were filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filled {
    /// There are none, or not yet.
    No,
    /// It may now stand for any type.
    Yes,
    /// It has a fault for that already; what it would read as has no meaning.
    Faulty,
}

/// It may hold a secret, which no log may show.
impl std::fmt::Debug for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// What YAML's core schema makes of a scalar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Neither of the others.
    Text,
    /// A whole number or a fraction.
    Number,
    /// True or false.
    Boolean,
    /// Empty, or null.
    Nothing,
}

impl Node {
    fn new(line: usize, value: Value) -> Self {
        Self { line, value }
    }

    /// Whether its variables could not be filled in, which was reported.
    pub(crate) fn is_faulty(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.filled == Filled::Faulty)
    }

    /// The kind of thing it is, for "is …, not …" messages.
    #[must_use]
    pub fn what(&self) -> &'static str {
        match &self.value {
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
            Value::Scalar(scalar) => match scalar.shape() {
                Shape::Text => "text",
                Shape::Number => "a number",
                Shape::Boolean => "a boolean",
                Shape::Nothing => "empty",
            },
        }
    }
}

impl Scalar {
    /// Text that YAML reads as nothing else.
    pub(crate) fn quoted(text: &str) -> Self {
        Self {
            raw: text.to_owned(),
            text: text.to_owned(),
            plain: false,
            filled: Filled::No,
        }
    }

    /// What YAML makes of it.
    #[must_use]
    pub fn shape(&self) -> Shape {
        if !self.plain || self.filled == Filled::Yes {
            return Shape::Text;
        }
        match self.raw.as_str() {
            "" | "~" | "null" | "Null" | "NULL" => Shape::Nothing,
            "true" | "True" | "TRUE" | "false" | "False" | "FALSE" => Shape::Boolean,
            text if is_number(text) => Shape::Number,
            _ => Shape::Text,
        }
    }
}

/// The core schema's integers and floats.
fn is_number(text: &str) -> bool {
    if let Some(digits) = text.strip_prefix("0x") {
        return !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return !digits.is_empty() && digits.bytes().all(|b| matches!(b, b'0'..=b'7'));
    }
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    if matches!(text, ".inf" | ".Inf" | ".INF" | ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    let digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    (!whole.is_empty() || !part.is_empty())
        && digits(whole)
        && digits(part)
        && exponent.is_none_or(|e| {
            let e = e.strip_prefix(['+', '-']).unwrap_or(e);
            !e.is_empty() && digits(e)
        })
}

/// Reads the documents of `text`, each bounded as one is alone; how many there are is bounded by the text's length.
///
/// # Errors
/// What is not YAML, or is more than may be read.
pub fn parse_all(text: &str) -> Result<Vec<Node>, Vec<Fault>> {
    let builder = built(text, true)?;
    Ok(builder.before.into_iter().chain(builder.root).collect())
}

/// Reads the one document of `text`, or says why it cannot be read.
pub(crate) fn parse(text: &str) -> Result<Node, Vec<Fault>> {
    built(text, false)?.root.ok_or_else(|| {
        vec![Fault {
            file: None,
            path: String::new(),
            line: None,
            says: "the document is empty".into(),
            hint: "write at least `backends` and `routes`".into(),
        }]
    })
}

fn built(text: &str, takes_several: bool) -> Result<Builder, Vec<Fault>> {
    let mut builder = Builder {
        takes_several,
        ..Builder::default()
    };
    let mut parser = Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
    while let Some(event) = parser.next_event() {
        let step = match event {
            Ok((event, span)) => builder.take(event, span),
            Err(error) => Err(broken(error.marker().line(), &syntax(error.info()))),
        };
        if let Err(fault) = step {
            builder.faults.push(fault);
            return Err(builder.faults);
        }
    }
    match builder.faults.is_empty() {
        true => Ok(builder),
        false => Err(builder.faults),
    }
}

#[derive(Default)]
struct Builder {
    open: Vec<Open>,
    anchors: HashMap<usize, Measured>,
    root: Option<Node>,
    takes_several: bool,
    /// Documents before the one that is built.
    before: Vec<Node>,
    nodes: usize,
    scalar_bytes: usize,
    faults: Vec<Fault>,
}

/// A collection whose end has not been seen.
struct Open {
    line: usize,
    anchor: usize,
    nodes_before: usize,
    bytes_before: usize,
    inside: Inside,
}

enum Inside {
    List(Vec<Node>),
    Map {
        entries: Vec<Entry>,
        seen: HashSet<String>,
        key: Option<(String, usize)>,
    },
}

/// An anchored node and what each use of it costs.
struct Measured {
    node: Node,
    nodes: usize,
    scalar_bytes: usize,
}

impl Builder {
    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), Fault> {
        let line = span.start.line().max(1);
        match event {
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
            Event::DocumentStart(_) if self.root.is_some() && !self.takes_several => {
                Err(broken(line, "a second document begins here"))
            }
            Event::DocumentStart(_) if self.root.is_some() => {
                self.before.extend(self.root.take());
                self.anchors.clear();
                Ok(())
            }
            Event::DocumentStart(_) => Ok(()),
            Event::Alias(anchor) => {
                let Some(known) = self.anchors.get(&anchor) else {
                    return Err(broken(
                        line,
                        "an alias stands inside the thing that it names",
                    ));
                };
                let node = Node::new(line, known.node.value.clone());
                self.nodes = self.nodes.saturating_add(known.nodes);
                self.scalar_bytes = self.scalar_bytes.saturating_add(known.scalar_bytes);
                self.bounded(line)?;
                self.place(node)
            }
            Event::Scalar(text, style, anchor, tag) => {
                untagged(tag.is_some(), line)?;
                self.nodes += 1;
                self.scalar_bytes += text.len();
                self.bounded(line)?;
                let scalar = Scalar {
                    raw: text.to_string(),
                    text: text.to_string(),
                    plain: matches!(style, ScalarStyle::Plain),
                    filled: Filled::No,
                };
                let (nodes, scalar_bytes) = (1, scalar.raw.len());
                let node = Node::new(line, Value::Scalar(scalar));
                self.remember(anchor, &node, nodes, scalar_bytes);
                self.place(node)
            }
            Event::SequenceStart(anchor, tag) => {
                untagged(tag.is_some(), line)?;
                self.begin(line, anchor, Inside::List(Vec::new()))
            }
            Event::MappingStart(anchor, tag) => {
                untagged(tag.is_some(), line)?;
                let inside = Inside::Map {
                    entries: vec![],
                    seen: HashSet::new(),
                    key: None,
                };
                self.begin(line, anchor, inside)
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(line),
        }
    }

    fn begin(&mut self, line: usize, anchor: usize, inside: Inside) -> Result<(), Fault> {
        if self.open.len() >= DEPTH_MAX {
            return Err(broken(
                line,
                &format!("nested deeper than {DEPTH_MAX} levels"),
            ));
        }
        let (nodes_before, bytes_before) = (self.nodes, self.scalar_bytes);
        self.nodes += 1;
        self.bounded(line)?;
        self.open.push(Open {
            line,
            anchor,
            nodes_before,
            bytes_before,
            inside,
        });
        Ok(())
    }

    fn end(&mut self, line: usize) -> Result<(), Fault> {
        let Some(open) = self.open.pop() else {
            return Err(broken(line, "a collection ends that never began"));
        };
        let value = match open.inside {
            Inside::List(items) => Value::List(items),
            Inside::Map { entries, .. } => Value::Map(entries),
        };
        let node = Node::new(open.line, value);
        let nodes = self.nodes - open.nodes_before;
        self.remember(
            open.anchor,
            &node,
            nodes,
            self.scalar_bytes - open.bytes_before,
        );
        self.place(node)
    }

    fn remember(&mut self, anchor: usize, node: &Node, nodes: usize, scalar_bytes: usize) {
        if anchor > 0 {
            // The remembered copy is held in memory like any other.
            self.nodes = self.nodes.saturating_add(nodes);
            self.scalar_bytes = self.scalar_bytes.saturating_add(scalar_bytes);
            self.anchors.insert(
                anchor,
                Measured {
                    node: node.clone(),
                    nodes,
                    scalar_bytes,
                },
            );
        }
    }

    /// Puts a finished node where it belongs.
    fn place(&mut self, node: Node) -> Result<(), Fault> {
        let Some(open) = self.open.last_mut() else {
            self.root = Some(node);
            return Ok(());
        };
        match &mut open.inside {
            Inside::List(items) => items.push(node),
            Inside::Map { entries, seen, key } => match (key.take(), node.value) {
                (None, Value::Scalar(scalar)) => {
                    if !seen.insert(scalar.raw.clone()) {
                        self.faults.push(twice(&scalar.raw, node.line, entries));
                    }
                    *key = Some((scalar.raw, node.line));
                }
                (None, _) => return Err(broken(node.line, "a key must be plain text")),
                (Some((key, line)), value) => {
                    let empty = matches!(&value, Value::Scalar(s) if s.shape() == Shape::Nothing);
                    let value_line = if empty { line } else { node.line };
                    entries.push(Entry {
                        key,
                        line,
                        node: Node::new(value_line, value),
                    });
                }
            },
        }
        Ok(())
    }

    fn bounded(&self, line: usize) -> Result<(), Fault> {
        if self.nodes > NODES_MAX {
            let says = format!("the document holds more than {NODES_MAX} values, aliases counted");
            return Err(broken(line, &says));
        }
        if self.scalar_bytes > SCALAR_BYTES_MAX {
            return Err(broken(
                line,
                "the document holds more than 16 MiB of text, aliases counted",
            ));
        }
        Ok(())
    }
}

fn untagged(tagged: bool, line: usize) -> Result<(), Fault> {
    if tagged {
        Err(broken(line, "YAML tags (`!…`) are not used here"))
    } else {
        Ok(())
    }
}

fn twice(key: &str, line: usize, entries: &[Entry]) -> Fault {
    let first = entries
        .iter()
        .find(|e| e.key == key)
        .map_or(line, |e| e.line);
    Fault {
        file: None,
        path: String::new(),
        line: Some(line),
        says: format!(
            "the key {} is written twice (first on line {first})",
            quoted(key)
        ),
        hint: "keep one of them".into(),
    }
}

fn broken(line: usize, says: &str) -> Fault {
    Fault {
        file: None,
        path: String::new(),
        line: Some(line),
        says: says.into(),
        hint: String::new(),
    }
}

/// The scanner's own words, which name constructs and never quote the text.
fn syntax(info: &str) -> String {
    format!("not valid YAML: {info}")
}

#[cfg(test)]
mod tests;
