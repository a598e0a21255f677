//! The language of chat templates, where it is another than minijinja's: what Python and Jinja2 make of tests, filters and
//! methods of text.
//!
//! Invariant: a template is bounded in steps. Names that are not here are minijinja's, or fail.
//! Not here: what a template is given (`template`), dates (`strftime`).

mod methods;
mod text;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, Serde, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Output, State, Value};
use serde::Serialize;

use crate::json::{Json, Spaced};

/// Steps after which a template is taken to be endless.
pub(super) const MAX_STEPS: u64 = 50_000_000;

#[cfg(test)]
thread_local! {
    /// What the templates of a test's own thread have instead.
    pub(super) static STEPS_OF_TEST: std::cell::Cell<Option<u64>> = const { std::cell::Cell::new(None) };
}

/// An environment as transformers 5.19 sets it up, without the functions that it adds.
pub(super) fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .build();
    environment.set_syntax(syntax?);
    environment.set_fuel(Some(MAX_STEPS));
    #[cfg(test)]
    environment.set_fuel(STEPS_OF_TEST.get().or(Some(MAX_STEPS)));
    environment.set_unknown_method_callback(methods::of_text);
    environment.add_filter("tojson", to_json);
    environment.add_test("iterable", is_iterable);
    environment.add_test("sequence", is_iterable);
    environment.add_filter("length", length);
    environment.add_filter("count", length);
    environment.add_filter("first", |state: &State, value: Value| {
        of_ends(state, value, "first")
    });
    environment.add_filter("last", |state: &State, value: Value| {
        of_ends(state, value, "last")
    });
    environment.set_formatter(print);
    environment.add_filter("items", items);
    environment.add_filter("string", string);
    environment.add_filter("join", join);
    // Undefined is called to complain.
    environment.add_test("callable", |value: &Value| {
        value.is_undefined() || value.kind() == ValueKind::Plain
    });
    environment.add_filter("trim", |text: Value, of: Option<String>| {
        let text = text
            .as_str()
            .map_or_else(|| text.to_string(), str::to_owned);
        methods::stripped(&text, of.as_deref(), true, true).to_owned()
    });
    environment.add_filter("replace", replace);
    environment.add_filter("default", default);
    environment.add_filter("d", default);
    environment.add_filter("center", |text: String, width: Option<usize>| {
        methods::centered(&text, width.unwrap_or(80), ' ')
    });
    environment.add_filter("wordcount", |text: String| text.split_whitespace().count());
    Ok(environment)
}

/// A value with its members in their order.
pub(super) fn value(json: &Json) -> Value {
    Value::from(Serde(json.clone()))
}

/// What Python can go through: text and what is undefined too, but not none.
fn is_iterable(value: &Value) -> bool {
    use ValueKind::{Iterable, Map, Seq, String, Undefined};
    matches!(value.kind(), Undefined | String | Seq | Map | Iterable)
}

/// Undefined has length 0.
fn length(value: &Value) -> Result<usize, Error> {
    match value.is_undefined() {
        true => Ok(0),
        false => value.len().ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidOperation,
                format!("a {} has no length", value.kind()),
            )
        }),
    }
}

/// The end of nothing is undefined.
fn of_ends(_state: &State, value: Value, end: &str) -> Result<Value, Error> {
    if value.is_undefined() {
        return Ok(Value::UNDEFINED);
    }
    if let Some(text) = value.as_str() {
        let letter = if end == "first" {
            text.chars().next()
        } else {
            text.chars().next_back()
        };
        return Ok(letter.map_or(Value::UNDEFINED, Value::from));
    }
    let mut all = value.try_iter()?;
    Ok(if end == "first" {
        all.next()
    } else {
        all.last()
    }
    .unwrap_or(Value::UNDEFINED))
}

fn replace(text: Value, from: String, to: String, most: Option<usize>) -> String {
    let text = text
        .as_str()
        .map_or_else(|| text.to_string(), str::to_owned);
    match most {
        Some(most) => text.replacen(&from, &to, most),
        None => text.replace(&from, &to),
    }
}

fn default(
    value: Value,
    other: Option<Value>,
    falsy: Option<Value>,
    named: Kwargs,
) -> Result<Value, Error> {
    let other = other.or(named.get("default_value")?);
    let falsy = falsy.or(named.get("boolean")?);
    named.assert_all_used()?;
    let goes =
        value.is_undefined() || (falsy.is_some_and(|falsy| falsy.is_true()) && !value.is_true());
    Ok(if goes {
        other.unwrap_or_else(|| Value::from(""))
    } else {
        value
    })
}

/// The pairs of a map; of nothing none.
fn items(value: Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Ok(Value::from(Vec::<Value>::new()));
    }
    minijinja::filters::items(&value)
}

/// Writes what a template prints, as Python's `str`.
fn print(out: &mut Output<'_>, state: &mut State<'_, '_>, value: &Value) -> Result<(), Error> {
    match text::of(value) {
        Some(text) => out.write_str(&text).map_err(Error::from),
        None => minijinja::escape_formatter(out, state, value),
    }
}

fn string(value: Value) -> String {
    text::of(&value).unwrap_or_else(|| value.to_string())
}

fn join(all: Value, between: Option<Value>, named: Kwargs) -> Result<String, Error> {
    let attribute: Option<String> = named.get("attribute")?;
    let between = between.or(named.get("d")?).map(string).unwrap_or_default();
    named.assert_all_used()?;
    if all.is_undefined() {
        return Ok(String::new());
    }
    let mut texts = Vec::new();
    for one in all.try_iter()? {
        texts.push(string(match &attribute {
            Some(name) => one.get_attr(name)?,
            None => one,
        }));
    }
    Ok(texts.join(&between))
}

/// As Python's `json.dumps(ensure_ascii=False)`: a space after `:` and `,` unless it is indented.
fn to_json(value: &Value, options: Kwargs) -> Result<Value, Error> {
    let fault =
        |error: serde_json::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
    let indent: Option<usize> = options.get("indent")?;
    let mut out = Vec::new();
    match indent {
        Some(n) => {
            let spaces = vec![b' '; n.min(16)];
            let form = serde_json::ser::PrettyFormatter::with_indent(&spaces);
            value
                .serialize(&mut serde_json::Serializer::with_formatter(&mut out, form))
                .map_err(fault)?;
        }
        None => value
            .serialize(&mut serde_json::Serializer::with_formatter(
                &mut out, Spaced,
            ))
            .map_err(fault)?,
    }
    Ok(Value::from_safe_string(
        String::from_utf8_lossy(&out).into_owned(),
    ))
}
