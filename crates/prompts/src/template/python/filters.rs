//! Jinja's filters, where the library has none or another one.
//!
//! Not here: those that the library has as Jinja does.

use minijinja::value::{Rest, Tuple, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, Value};

use super::{Bound, fault, methods, text};

pub(super) fn add(environment: &mut Environment<'static>) {
    for name in ["length", "count"] {
        environment.add_filter(name, length);
    }
    environment.add_filter("first", first);
    environment.add_filter("last", last);
    environment.add_filter("items", items);
    for name in ["default", "d"] {
        environment.add_filter(name, default);
    }
    environment.add_filter("replace", replace);
    environment.add_filter("trim", trim);
    environment.add_filter("center", center);
    environment.add_filter("wordcount", wordcount);
    environment.add_filter("int", int);
    environment.add_filter("float", float);
    environment.add_filter("indent", indent);
    environment.add_filter("dictsort", dictsort);
    environment.add_filter("capitalize", |value: &Value| {
        written(value).map(|it| text::capitalize(&it))
    });
    environment.add_filter("title", title);
    for name in ["escape", "e"] {
        environment.add_filter(name, escape);
    }
}

fn length(value: &Value) -> Result<usize, Error> {
    if value.is_undefined() {
        return Ok(0);
    }
    minijinja::filters::length(value)
}

fn first(value: &Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Ok(Value::UNDEFINED);
    }
    if let ValueKind::Map = value.kind() {
        return Ok(value.try_iter()?.next().unwrap_or(Value::UNDEFINED));
    }
    minijinja::filters::first(value)
}

fn last(value: Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Ok(Value::UNDEFINED);
    }
    minijinja::filters::last(value)
}

fn items(value: &Value) -> Result<Value, Error> {
    if value.is_undefined() {
        return Ok(Value::from(Vec::<Value>::new()));
    }
    minijinja::filters::items(value)
}

fn default(value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let given = Bound::new(&args.into_values(), ["default_value", "boolean"])?;
    let other = || given.get(0).cloned().unwrap_or_else(|| Value::from(""));
    if value.is_undefined() || (given.is_true(1) && !value.is_true()) {
        return Ok(other());
    }
    Ok(value.clone())
}

fn written(value: &Value) -> Result<String, Error> {
    match value.as_str() {
        Some(text) => Ok(text.to_owned()),
        None if value.is_undefined() => Ok(String::new()),
        None => super::super::python_text::str(value),
    }
}

fn replace(value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let given = Bound::new(&args.into_values(), ["old", "new", "count"])?;
    let (Some(old), Some(new)) = (given.get(0), given.get(1)) else {
        return Err(fault("`replace` needs two texts"));
    };
    let (it, old, new) = (written(value)?, written(old)?, written(new)?);
    let count = given
        .whole(2)?
        .and_then(|count| usize::try_from(count).ok());
    Ok(match count {
        Some(count) => it.replacen(&old, &new, count),
        None => it.replace(&old, &new),
    }
    .into())
}

fn trim(value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let given = Bound::new(&args.into_values(), ["chars"])?;
    let it = written(value)?;
    let chars = given.text(0)?;
    Ok(it
        .trim_matches(|char| match chars {
            Some(chars) => chars.contains(char),
            None => text::is_space(char),
        })
        .into())
}

fn center(value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let given = Bound::new(&args.into_values(), ["width"])?;
    let width = given.whole(0)?.unwrap_or(80);
    let width = usize::try_from(width).unwrap_or(0).min(1 << 20);
    Ok(methods::pad(&written(value)?, "center", width, " ").into())
}

fn wordcount(value: &Value) -> Result<usize, Error> {
    let text = written(value)?;
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    Ok(text
        .split(|char| !is_part(char))
        .filter(|word| !word.is_empty())
        .count())
}

/// Words begin behind space, hyphens and opening brackets.
fn title(value: &Value) -> Result<String, Error> {
    let it = written(value)?;
    let mut out = String::with_capacity(it.len());
    let mut is_first = true;
    for char in it.chars() {
        let is_between = text::is_space(char) || matches!(char, '-' | '(' | '{' | '[' | '<');
        if is_first {
            out.extend(char.to_uppercase());
        } else {
            out.extend(char.to_lowercase());
        }
        is_first = is_between;
    }
    Ok(out)
}

/// As `markupsafe` does it.
fn escape(value: &Value) -> Result<Value, Error> {
    if value.is_safe() {
        return Ok(value.clone());
    }
    let mut out = String::new();
    for char in written(value)?.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            _ => out.push(char),
        }
    }
    Ok(Value::from_safe_string(out))
}

/// What cannot be read is the default, which is 0.
fn int(value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let given = Bound::new(&args.into_values(), ["default", "base"])?;
    if given.whole(1)?.is_some_and(|base| base != 10) {
        return Err(fault("`int` of another base than 10"));
    }
    let default = || given.get(0).cloned().unwrap_or_else(|| Value::from(0));
    let Some(text) = value.as_str() else {
        return Ok(match value.kind() {
            ValueKind::Bool => i64::from(value.is_true()).into(),
            ValueKind::Number if value.is_integer() => value.clone(),
            ValueKind::Number => whole(f64::try_from(value.clone())?)?,
            _ => default(),
        });
    };
    let text = text.trim_matches(text::is_space);
    if let Ok(number) = text.replace('_', "").parse::<i64>() {
        return Ok(number.into());
    }
    match text.parse::<f64>() {
        Ok(float) => whole(float),
        Err(_) => Ok(default()),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "within the bounds that are checked"
)]
fn whole(float: f64) -> Result<Value, Error> {
    if float.abs() < 9e18 {
        return Ok((float as i64).into());
    }
    Err(fault("a number beyond 64 bits"))
}

fn float(value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let given = Bound::new(&args.into_values(), ["default"])?;
    let default = || given.get(0).cloned().unwrap_or_else(|| Value::from(0.0));
    Ok(match value.as_str() {
        Some(text) => {
            let read = text.trim_matches(text::is_space).parse::<f64>();
            read.map_or_else(|_| default(), Value::from)
        }
        None if value.kind() == ValueKind::Bool => f64::from(value.is_true()).into(),
        None => f64::try_from(value.clone()).map_or_else(|_| default(), Value::from),
    })
}

/// The first line stays where it is unless told otherwise, and so do blank ones.
fn indent(value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let given = Bound::new(&args.into_values(), ["width", "first", "blank"])?;
    let by = match given.some(0).and_then(Value::as_str) {
        Some(by) => by.to_owned(),
        None => {
            let width = given.whole(0)?.unwrap_or(4);
            " ".repeat(usize::try_from(width).unwrap_or(0).min(1 << 10))
        }
    };
    let text = written(value)? + "\n";
    let mut lines = text::lines(&text, false);
    if given.is_true(2) {
        let joined = lines.join(&format!("\n{by}"));
        let before = if given.is_true(1) { by.as_str() } else { "" };
        return Ok(format!("{before}{joined}").into());
    }
    for (at, line) in lines.iter_mut().enumerate() {
        if (at > 0 || given.is_true(1)) && (at == 0 || !line.is_empty()) {
            line.insert_str(0, &by);
        }
    }
    Ok(lines.join("\n").into())
}

/// Pairs in the order of their names or their values; text without regard to its case unless told so.
fn dictsort(value: &Value, args: Rest<ValueOrKwargs>) -> Result<Value, Error> {
    let given = Bound::new(&args.into_values(), ["case_sensitive", "by", "reverse"])?;
    let place = match given.text(1)? {
        None | Some("key") => 0,
        Some("value") => 1,
        Some(_) => return Err(fault("`dictsort` by neither key nor value")),
    };
    if value.kind() != ValueKind::Map {
        return Err(fault("`dictsort` of no dict"));
    }
    let is_exact = given.is_true(0);
    let mut pairs = Vec::new();
    for key in value.try_iter()? {
        let item = value.get_item(&key)?;
        let by = if place == 0 { &key } else { &item };
        let by = match by.as_str() {
            Some(text) if !is_exact => Value::from(text.to_lowercase()),
            _ => by.clone(),
        };
        pairs.push((by, Value::from(Tuple::from([key, item]))));
    }
    pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
    if given.is_true(2) {
        pairs.reverse();
    }
    Ok(pairs.into_iter().map(|(_, pair)| pair).collect())
}
