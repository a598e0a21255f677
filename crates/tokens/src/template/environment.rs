//! The language that chat templates are written in: Jinja as `transformers` sets it up.
//!
//! Its `tojson` is Python's `json.dumps` and escapes nothing, printing is Python's `str`, methods of Python's strings
//! and dicts work, `raise_exception` refuses a conversation, and `{% generation %}` marks nothing.
//! Not here: what a template is given (`arguments`).

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, Value};
use minijinja_contrib::pycompat::unknown_method_callback;

use super::python_text;
use crate::RENDERED_LIMIT_BYTES;
use crate::tree::{PythonJson, Tree, python_json};

/// Instructions that one rendering may take: some hundred for each message.
const FUEL: u64 = 50_000_000;

pub(super) fn new() -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    if let Ok(syntax) = syntax {
        environment.set_syntax(syntax);
    }
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_formatter(print);
    environment.set_fuel(Some(FUEL));
    environment.set_unknown_method_callback(unknown_method_callback);
    environment.add_filter("tojson", to_json);
    environment.add_filter("string", to_text);
    environment.add_function("raise_exception", raise_exception);
    environment
}

fn raise_exception(reason: String) -> Result<Value, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, reason))
}

fn print(out: &mut Output, _state: &mut State, value: &Value) -> Result<(), Error> {
    if value.is_undefined() {
        return Ok(());
    }
    let written = match value.as_str() {
        Some(text) => out.write_str(text),
        None => out.write_str(&to_text(value)?),
    };
    written.map_err(|_| Error::new(ErrorKind::WriteFailure, "the text could not be written"))
}

fn to_text(value: &Value) -> Result<String, Error> {
    with_tree(value, python_text::str)
}

fn to_json(value: &Value, options: Kwargs) -> Result<String, Error> {
    if value.is_undefined() {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "tojson of something undefined",
        ));
    }
    let mut form = PythonJson {
        ascii: options
            .get::<Option<bool>>("ensure_ascii")?
            .unwrap_or(false),
        sorted: options.get::<Option<bool>>("sort_keys")?.unwrap_or(false),
        indent: options.get("indent")?,
        ..PythonJson::default()
    };
    if form.indent.is_some() {
        form.between_items = ",".to_owned();
    }
    if let Some((items, name)) = options.get::<Option<Value>>("separators")?.and_then(pair) {
        (form.between_items, form.after_name) = (items, name);
    }
    options.assert_all_used()?;
    with_tree(value, |tree| python_json(tree, &form))?.ok_or_else(|| {
        Error::new(
            ErrorKind::BadSerialization,
            format!("tojson of more than {RENDERED_LIMIT_BYTES} bytes"),
        )
    })
}

fn pair(separators: Value) -> Option<(String, String)> {
    let mut items = separators.try_iter().ok()?;
    let (first, second) = (items.next()?, items.next()?);
    Some((first.as_str()?.to_owned(), second.as_str()?.to_owned()))
}

fn with_tree<T>(value: &Value, what: impl FnOnce(&Tree<'_>) -> T) -> Result<T, Error> {
    serde_json::to_string(value)
        .and_then(|json| serde_json::from_str(&json).map(|tree| what(&tree)))
        .map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
}

/// `{% generation %}` and its end mark what training learns from; here they become a condition that holds.
pub(super) fn without_generation_marks(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, after)) = rest.split_once("{%") {
        out.push_str(before);
        out.push_str("{%");
        let Some((tag, after)) = after.split_once("%}") else {
            rest = after;
            continue;
        };
        let word =
            tag.trim_matches(|char: char| char == '-' || char == '+' || char.is_whitespace());
        match word {
            "generation" => out.push_str(&tag.replace(word, "if true")),
            "endgeneration" => out.push_str(&tag.replace(word, "endif")),
            _ => out.push_str(tag),
        }
        out.push_str("%}");
        rest = after;
    }
    out.push_str(rest);
    out
}
