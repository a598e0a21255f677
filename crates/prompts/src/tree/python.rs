//! JSON as Python's `json.dumps` writes it, which is what chat templates were written against.
//!
//! Not here: compact JSON (`Tree`'s `Display`), as other renderers write it.

use super::Tree;
use crate::RENDERED_LIMIT_BYTES;

/// How `json.dumps` is asked to write.
#[derive(Clone, Debug)]
pub struct PythonJson {
    /// What is beyond ASCII is escaped.
    pub ascii: bool,
    /// Members are sorted by name.
    pub sorted: bool,
    /// Spaces for each level, which then has lines of its own.
    pub indent: Option<usize>,
    /// What stands between items.
    pub between_items: String,
    /// What stands behind a name.
    pub after_name: String,
}

impl Default for PythonJson {
    fn default() -> Self {
        Self {
            ascii: false,
            sorted: false,
            indent: None,
            between_items: ", ".to_owned(),
            after_name: ": ".to_owned(),
        }
    }
}

/// Writes a value as `json.dumps` does. None where that is longer than any text may be: indentation makes hundreds of
/// bytes of one that lies deep.
#[must_use]
pub fn python_json(tree: &Tree<'_>, form: &PythonJson) -> Option<String> {
    let mut out = String::new();
    write(tree, form, 0, &mut out)?;
    Some(out)
}

fn write(tree: &Tree<'_>, form: &PythonJson, depth: usize, out: &mut String) -> Option<()> {
    if out.len() > RENDERED_LIMIT_BYTES {
        return None;
    }
    match tree {
        Tree::Null => out.push_str("null"),
        Tree::Bool(true) => out.push_str("true"),
        Tree::Bool(false) => out.push_str("false"),
        Tree::Number(number) => write_number(number, out),
        Tree::Text(text) => write_text(text, form.ascii, out),
        Tree::List(items) => {
            let items: Vec<_> = items.iter().map(|item| (None, item)).collect();
            return write_all(&items, ('[', ']'), form, depth, out);
        }
        Tree::Map(members) => {
            let mut members: Vec<_> = members
                .iter()
                .map(|(name, value)| (Some(&**name), value))
                .collect();
            if form.sorted {
                members.sort_by_key(|(name, _)| *name);
            }
            return write_all(&members, ('{', '}'), form, depth, out);
        }
    }
    Some(())
}

fn write_all(
    items: &[(Option<&str>, &Tree<'_>)],
    (open, close): (char, char),
    form: &PythonJson,
    depth: usize,
    out: &mut String,
) -> Option<()> {
    out.push(open);
    for (at, (name, value)) in items.iter().enumerate() {
        if at > 0 {
            out.push_str(&form.between_items);
        }
        line(form.indent, depth + 1, out);
        if let Some(name) = name {
            write_text(name, form.ascii, out);
            out.push_str(&form.after_name);
        }
        write(value, form, depth + 1, out)?;
    }
    if !items.is_empty() {
        line(form.indent, depth, out);
    }
    out.push(close);
    Some(())
}

fn line(indent: Option<usize>, depth: usize, out: &mut String) {
    if let Some(indent) = indent {
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', indent * depth));
    }
}

fn write_text(text: &str, ascii: bool, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            _ if char < ' ' || (ascii && char > '~') => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => out.push(char),
        }
    }
    out.push('"');
}

/// Python writes the shortest digits that read back as the same number, like Rust, but changes to an exponent at
/// 1e16 and below 1e-4.
fn write_number(number: &serde_json::Number, out: &mut String) {
    match number.as_f64().filter(|_| number.is_f64()) {
        Some(float) => python_float(float, out),
        None => out.push_str(&number.to_string()),
    }
}

/// Writes a float as Python's `repr` does.
pub fn python_float(float: f64, out: &mut String) {
    if !float.is_finite() {
        let sign = if float < 0.0 { "-" } else { "" };
        out.push_str(sign);
        out.push_str(if float.is_nan() { "nan" } else { "inf" });
        return;
    }
    let scientific = format!("{float:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if float != 0.0 && !(-4..16).contains(&exponent) {
        let sign = if exponent < 0 { '-' } else { '+' };
        out.push_str(&format!("{digits}e{sign}{:02}", exponent.abs()));
    } else {
        out.push_str(&format!("{float:?}"));
    }
}
