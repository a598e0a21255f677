//! The language that chat templates are written in: Jinja as `transformers` sets it up.
//!
//! Its `tojson` is Python's `json.dumps` and escapes nothing, printing is Python's `str`, and `raise_exception` refuses a
//! conversation.
//! Not here: what a template is given (`arguments`), Python's methods, filters and tests (`python`).

use std::panic::{AssertUnwindSafe, catch_unwind};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde};
use minijinja::{AutoEscape, Environment, Error, ErrorKind, Output, State, Value};

use super::text::Text;
use super::{python, python_text, source};
use crate::RENDERED_LIMIT_BYTES;
use crate::tree::{PythonJson, Tree, python_json};

/// Instructions that one rendering may take: some hundred for each message.
const FUEL: u64 = 50_000_000;

#[cfg(test)]
thread_local! {
    /// What a test's own templates have instead.
    static FUEL_OF_TEST: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

pub(super) fn new() -> Environment<'static> {
    let mut environment = plain();
    environment.add_function("raise_exception", raise_exception);
    environment
}

/// Jinja without what `transformers` adds to it.
fn plain() -> Environment<'static> {
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
    #[cfg(test)]
    environment.set_fuel(FUEL_OF_TEST.get().or(Some(FUEL)));
    environment.remove_global("debug");
    python::add(&mut environment);
    environment.add_filter("tojson", to_json);
    environment.add_filter("string", |value: &Value| python_text::str(value));
    environment
}

/// Whether a template refuses a system message behind a user's, or has words that plain Jinja does not know: the
/// engine's own look (`_detect_merge_inline_system` of vLLM), which is why `raise_exception` and `strftime_now` are
/// not there.
pub(super) fn refuses_inline_system(source: &str) -> bool {
    const NAME: &str = "probe";
    let message = |role: &'static str| Tree::map([("role", role.into()), ("content", "t".into())]);
    let messages = ["system", "user", "system", "user"].map(message).into();
    let given = Tree::map([
        ("messages", Tree::List(messages)),
        ("add_generation_prompt", Tree::Bool(false)),
    ]);
    let mut environment = plain();
    if source::marks_generation(source)
        || environment
            .add_template_owned(NAME, source::read(source))
            .is_err()
    {
        return true;
    }
    let mut text = Text::new(RENDERED_LIMIT_BYTES);
    let render = || {
        let template = environment.get_template(NAME)?;
        template.render_captured_to(Value::from(Serde(&given)), &mut text)?;
        Ok::<(), Error>(())
    };
    // As where prompts are rendered: the library trusts a template in places.
    !matches!(catch_unwind(AssertUnwindSafe(render)), Ok(Ok(())))
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
        None => out.write_str(&python_text::str(value)?),
    };
    written.map_err(|_| Error::new(ErrorKind::WriteFailure, "the text could not be written"))
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

#[cfg(test)]
mod tests;
