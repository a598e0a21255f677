//! Our document as it is made: values, each with the place of the object that says it.
//!
//! Invariant: whatever a text holds, it is written so that our reader has the very same text: never a variable, never structure.
//! Not here: what the members mean (`config`).

use config::{Node, Shape, Value};

use crate::findings::Spot;
use crate::origins::Origins;

/// Widest line on which a mapping or list stands whole.
const WIDTH: usize = 120;

/// A value of our document.
#[derive(Debug, Clone)]
pub(crate) enum Tree {
    /// As it stands.
    Plain(String),
    /// Any text at all.
    Text(String),
    List(Vec<Tree>),
    Map(Vec<(String, Tree)>),
    /// A value, and who says it.
    Of(Spot, Box<Tree>),
}

impl Tree {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn number(number: u64) -> Self {
        Self::Plain(number.to_string())
    }

    pub(crate) fn texts<'t>(texts: impl IntoIterator<Item = &'t String>) -> Self {
        let mut items: Vec<Self> = texts.into_iter().map(Self::text).collect();
        match items.len() {
            1 => items.remove(0),
            _ => Self::List(items),
        }
    }

    pub(crate) fn of(self, spot: &Spot) -> Self {
        Self::Of(spot.clone(), Box::new(self))
    }

    /// A mapping of what there is.
    pub(crate) fn map<const N: usize>(members: [(&str, Option<Self>); N]) -> Self {
        let there = members
            .into_iter()
            .filter_map(|(name, tree)| Some((name.to_owned(), tree?)));
        Self::Map(there.collect())
    }

    /// What a file of ours says, as it says it.
    pub(crate) fn copied(node: &Node, spot: &Spot) -> Self {
        let made = match &node.value {
            Value::Scalar(scalar) => match scalar.shape() {
                Shape::Text if scalar.raw.contains('$') => {
                    Self::Plain(in_quotes(&scalar.raw, false))
                }
                Shape::Text => Self::text(&scalar.raw),
                Shape::Nothing => Self::Plain("~".into()),
                Shape::Number | Shape::Boolean => Self::Plain(scalar.raw.clone()),
            },
            Value::List(items) => {
                let item = |(index, item): (usize, &Node)| {
                    Self::copied(item, &spot.item(index, item.line))
                };
                Self::List(items.iter().enumerate().map(item).collect())
            }
            Value::Map(entries) => {
                let member = |entry: &config::Entry| {
                    let spot = spot.member(&entry.key, entry.line);
                    (entry.key.clone(), Self::copied(&entry.node, &spot))
                };
                Self::Map(entries.iter().map(member).collect())
            }
        };
        made.of(spot)
    }

    /// Without who says it.
    pub(crate) fn bare(&self) -> &Self {
        match self {
            Self::Of(_, inside) => inside.bare(),
            Self::Plain(_) | Self::Text(_) | Self::List(_) | Self::Map(_) => self,
        }
    }

    /// It on one line.
    pub(crate) fn flow(&self) -> String {
        match self {
            Self::Plain(text) => text.clone(),
            Self::Text(text) => written(text),
            Self::Of(_, inside) => inside.flow(),
            Self::List(items) if items.is_empty() => "[]".into(),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(Self::flow).collect();
                format!("[{}]", items.join(", "))
            }
            Self::Map(members) if members.is_empty() => "{}".into(),
            Self::Map(members) => {
                let member =
                    |(name, tree): &(String, Self)| format!("{}: {}", written(name), tree.flow());
                let members: Vec<String> = members.iter().map(member).collect();
                format!("{{ {} }}", members.join(", "))
            }
        }
    }

    /// The whole document, its members each on lines of their own.
    pub(crate) fn document(&self) -> String {
        let mut out = String::new();
        self.block(0, &mut out);
        out
    }

    fn block(&self, depth: usize, out: &mut String) {
        let indent = "  ".repeat(depth);
        match self.bare() {
            Self::Map(members) => {
                for (name, tree) in members {
                    out.push_str(&indent);
                    self::member(name, tree, depth, out);
                }
            }
            Self::List(items) => {
                for item in items {
                    out.push_str(&indent);
                    out.push_str("- ");
                    let flow = item.flow();
                    match item.bare() {
                        Self::Map(members) if indent.len() + flow.len() > WIDTH => {
                            for (index, (name, tree)) in members.iter().enumerate() {
                                if index > 0 {
                                    out.push_str(&indent);
                                    out.push_str("  ");
                                }
                                self::member(name, tree, depth + 1, out);
                            }
                        }
                        _ => out.push_str(&format!("{flow}\n")),
                    }
                }
            }
            Self::Plain(_) | Self::Text(_) | Self::Of(..) => {
                out.push_str(&format!("{indent}{}\n", self.flow()))
            }
        }
    }

    /// Notes who says what, below this place of the document.
    pub(crate) fn note(&self, path: &str, origins: &mut Origins) {
        match self {
            Self::Plain(_) | Self::Text(_) => {}
            Self::Of(spot, inside) => {
                origins.add(path, spot);
                inside.note(path, origins);
            }
            Self::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    item.note(&format!("{path}[{index}]"), origins);
                }
            }
            Self::Map(members) => {
                for (name, tree) in members {
                    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
                    let below = match (path, name.bytes().all(is_plain)) {
                        ("", _) => name.clone(),
                        (_, true) => format!("{path}.{name}"),
                        (_, false) => format!("{path}[{}]", config::quoted(name)),
                    };
                    tree.note(&below, origins);
                }
            }
        }
    }
}

/// A member on a line, or on several where it is long. What stands first in the document begins on lines of its own.
fn member(name: &str, tree: &Tree, depth: usize, out: &mut String) {
    let flow = tree.flow();
    let is_long = 2 * depth + name.len() + flow.len() + 2 > WIDTH;
    let is_list_of_maps = matches!(tree.bare(), Tree::List(items) if items.iter().any(|i| matches!(i.bare(), Tree::Map(_))));
    let is_table =
        depth == 0 && (is_list_of_maps || matches!(name, "backends" | "prices" | "budgets"));
    let is_scalar = matches!(tree.bare(), Tree::Plain(_) | Tree::Text(_));
    if is_scalar || !(is_long || is_table) {
        out.push_str(&format!("{}: {flow}\n", written(name)));
    } else {
        out.push_str(&format!("{}:\n", written(name)));
        tree.block(depth + 1, out);
    }
}

/// A text, in quotes where it has to be.
fn written(text: &str) -> String {
    let is_plain =
        |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'-' | b':' | b'+');
    let begins = text
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'/');
    let is_word = !matches!(
        text.to_ascii_lowercase().as_str(),
        "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
    );
    match begins && is_word && text.bytes().all(is_plain) && !text.ends_with(':') {
        true => text.to_owned(),
        false => in_quotes(text, true),
    }
}

fn in_quotes(text: &str, is_literal: bool) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '$' if is_literal => out.push_str("$$"),
            c if c.is_control() || c == '\u{feff}' => {
                out.push_str(&format!("\\u{:04x}", u32::from(c)))
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
