//! Values as Python's `str` and `repr` write them, for templates that print other things than text.
//!
//! Not here: JSON (`tree::python_json`).

use crate::tree::{PythonJson, Tree, python_json};

/// `str(value)`.
pub(super) fn str(tree: &Tree<'_>) -> String {
    match tree {
        Tree::Text(text) => text.clone().into_owned(),
        _ => repr(tree),
    }
}

fn repr(tree: &Tree<'_>) -> String {
    match tree {
        Tree::Null => "None".to_owned(),
        Tree::Bool(true) => "True".to_owned(),
        Tree::Bool(false) => "False".to_owned(),
        Tree::Number(_) => python_json(tree, &PythonJson::default()).unwrap_or_default(),
        Tree::Text(text) => quoted(text),
        Tree::List(items) => {
            let items: Vec<_> = items.iter().map(repr).collect();
            format!("[{}]", items.join(", "))
        }
        Tree::Map(members) => {
            let members: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("{}: {}", quoted(name), repr(value)))
                .collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

/// Single quotes, unless the text has some and no double ones.
fn quoted(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    let mut out = String::from(quote);
    for char in text.chars() {
        match char {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if char == quote => out.extend(['\\', char]),
            _ if char < ' ' || char == '\u{7f}' => {
                out.push_str(&format!("\\x{:02x}", u32::from(char)));
            }
            _ => out.push(char),
        }
    }
    out.push(quote);
    out
}
