//! Methods of Python's text.
//!
//! Invariant: places and widths count characters. What is not here is `pycompat`'s, or fails.
//! Not here: operators and filters (the parent).

use minijinja::value::{Kwargs, ValueKind, from_args};
use minijinja::{Error, ErrorKind, State, Value};
use minijinja_contrib::pycompat;

/// Most characters that a text is filled up to.
const MAX_WIDTH: usize = 1 << 16;

/// What Python takes for white space: Unicode's, and four separators.
fn is_space(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '\u{1c}'..='\u{1f}')
}

/// Calls a method that minijinja does not know.
pub(super) fn of_text(
    state: &mut State,
    value: &Value,
    name: &str,
    given: &[Value],
) -> Result<Value, Error> {
    let known = match value.as_str() {
        Some(text) if value.kind() == ValueKind::String => method(text, name, given)?,
        _ => None,
    };
    match known {
        Some(made) => Ok(made),
        None => pycompat::unknown_method_callback(state, value, name, given),
    }
}

fn method(text: &str, name: &str, given: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match name {
        "split" | "rsplit" => split(text, name == "rsplit", given)?,
        "partition" | "rpartition" => {
            let (of,): (&str,) = from_args(given)?;
            let cut = if name == "partition" {
                text.split_once(of)
            } else {
                text.rsplit_once(of)
            };
            let parts = match (cut, name) {
                (Some((before, behind)), _) => [before, of, behind],
                (None, "partition") => [text, "", ""],
                (None, _) => ["", "", text],
            };
            Value::from(parts.map(Value::from).to_vec())
        }
        "removeprefix" => {
            let (of,): (&str,) = from_args(given)?;
            Value::from(text.strip_prefix(of).unwrap_or(text))
        }
        "removesuffix" => {
            let (of,): (&str,) = from_args(given)?;
            Value::from(text.strip_suffix(of).unwrap_or(text))
        }
        "strip" | "lstrip" | "rstrip" => {
            let (of,): (Option<&str>,) = from_args(given)?;
            Value::from(stripped(text, of, name != "rstrip", name != "lstrip"))
        }
        "find" | "rfind" | "index" | "rindex" => found(text, name, given)?,
        "startswith" | "endswith" => bounded(text, name == "startswith", given)?,
        "splitlines" => lines(text, given)?,
        "title" => Value::from(titled(text)),
        "swapcase" => {
            let swapped = |letter: char| -> String {
                if letter.is_uppercase() {
                    letter.to_lowercase().collect()
                } else {
                    letter.to_uppercase().collect()
                }
            };
            Value::from(text.chars().map(swapped).collect::<String>())
        }
        "casefold" => Value::from(text.to_lowercase().replace('ß', "ss")),
        "zfill" => {
            let (width,): (usize,) = from_args(given)?;
            let (sign, digits) = text.split_at(usize::from(text.starts_with(['+', '-'])));
            Value::from(format!("{sign}{}{digits}", fill(text, width, '0')))
        }
        "ljust" | "rjust" | "center" => {
            let (width, with): (usize, Option<char>) = from_args(given)?;
            let with = with.unwrap_or(' ');
            Value::from(match name {
                "ljust" => format!("{text}{}", fill(text, width, with)),
                "rjust" => format!("{}{text}", fill(text, width, with)),
                _ => centered(text, width, with),
            })
        }
        "isspace" => Value::from(!text.is_empty() && text.chars().all(is_space)),
        "isidentifier" => {
            let mut letters = text.chars();
            let begins = letters
                .next()
                .is_some_and(|first| first.is_alphabetic() || first == '_');
            Value::from(begins && letters.all(|letter| letter.is_alphanumeric() || letter == '_'))
        }
        "isprintable" => {
            let mut bytes = [0; 4];
            let hides = |letter: char| super::text::is_hidden(letter.encode_utf8(&mut bytes));
            Value::from(!text.chars().any(hides))
        }
        "isdigit" => {
            // A fraction is a number and no digit.
            let is_digit =
                |letter: char| letter.is_numeric() && !matches!(letter, '¼'..='¾' | '⅐'..='⅟');
            Value::from(!text.is_empty() && text.chars().all(is_digit))
        }
        "isdecimal" => {
            Value::from(!text.is_empty() && text.chars().all(|letter| letter.is_ascii_digit()))
        }
        "istitle" => Value::from(text.chars().any(char::is_alphabetic) && titled(text) == text),
        _ => return Ok(None),
    }))
}

/// Without white space, or without any of these letters, at its ends.
pub(super) fn stripped<'t>(text: &'t str, of: Option<&str>, front: bool, back: bool) -> &'t str {
    let goes = |letter: char| of.map_or_else(|| is_space(letter), |of| of.contains(letter));
    let text = if front {
        text.trim_start_matches(goes)
    } else {
        text
    };
    if back {
        text.trim_end_matches(goes)
    } else {
        text
    }
}

/// What a text lacks to be so wide.
fn fill(text: &str, width: usize, with: char) -> String {
    let lacks = width.min(MAX_WIDTH).saturating_sub(text.chars().count());
    std::iter::repeat_n(with, lacks).collect()
}

/// In the middle, as Python rounds it.
pub(super) fn centered(text: &str, width: usize, with: char) -> String {
    let fill = fill(text, width, with);
    let lacks = fill.chars().count();
    let left = lacks / 2 + (lacks & width & 1);
    let some = |n: usize| std::iter::repeat_n(with, n).collect::<String>();
    format!("{}{text}{}", some(left), some(lacks - left))
}

fn titled(text: &str) -> String {
    let mut behind_letter = false;
    let letter = |letter: char| -> String {
        let made = match behind_letter {
            true => letter.to_lowercase().collect(),
            false => letter.to_uppercase().collect(),
        };
        behind_letter = letter.is_alphabetic();
        made
    };
    text.chars().map(letter).collect()
}

fn split(text: &str, from_behind: bool, given: &[Value]) -> Result<Value, Error> {
    let (at, most, named): (Option<Value>, Option<i64>, Kwargs) = from_args(given)?;
    let at = match at {
        None => named.get::<Option<Value>>("sep")?,
        at => at,
    };
    let most = most.or(named.get("maxsplit")?).unwrap_or(-1);
    named.assert_all_used()?;
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let at = at.filter(|at| !at.is_none());
    let mut parts: Vec<&str> = Vec::new();
    match at.as_ref().and_then(Value::as_str) {
        Some("") => return Err(Error::new(ErrorKind::InvalidOperation, "empty separator")),
        Some(at) if from_behind => {
            parts.extend(text.rsplitn(most.saturating_add(1), at));
            parts.reverse();
        }
        Some(at) => parts.extend(text.splitn(most.saturating_add(1), at)),
        None if from_behind => {
            let mut rest = text.trim_end_matches(is_space);
            while !rest.is_empty() {
                let cut = rest.rfind(is_space).filter(|_| parts.len() < most);
                let from = cut.map_or(0, |cut| {
                    cut + rest[cut..].chars().next().map_or(0, char::len_utf8)
                });
                parts.push(if cut.is_some() {
                    &rest[from..]
                } else {
                    rest.trim_start_matches(is_space)
                });
                rest = cut.map_or("", |cut| rest[..cut].trim_end_matches(is_space));
            }
            parts.reverse();
        }
        None => {
            let mut rest = text.trim_start_matches(is_space);
            while !rest.is_empty() {
                let cut = rest.find(is_space).filter(|_| parts.len() < most);
                parts.push(&rest[..cut.unwrap_or(rest.len())]);
                rest = cut.map_or("", |cut| rest[cut..].trim_start_matches(is_space));
            }
        }
    }
    Ok(Value::from(
        parts.into_iter().map(Value::from).collect::<Vec<_>>(),
    ))
}

/// A part of a text between two places, which count from behind if they are negative.
fn between(text: &str, from: Option<i64>, to: Option<i64>) -> (usize, &str) {
    let count = text.chars().count();
    let place = |place: i64| match usize::try_from(place) {
        Ok(place) => place.min(count),
        Err(_) => count.saturating_sub(usize::try_from(place.unsigned_abs()).unwrap_or(count)),
    };
    let (from, to) = (from.map_or(0, place), to.map_or(count, place));
    let byte = |place: usize| {
        text.char_indices()
            .nth(place)
            .map_or(text.len(), |(at, _)| at)
    };
    (from, &text[byte(from)..byte(to.max(from))])
}

fn found(text: &str, name: &str, given: &[Value]) -> Result<Value, Error> {
    let (of, from, to): (&str, Option<i64>, Option<i64>) = from_args(given)?;
    let (start, part) = between(text, from, to);
    let at = if name.starts_with('r') {
        part.rfind(of)
    } else {
        part.find(of)
    };
    match at {
        Some(at) => Ok(Value::from(start + part[..at].chars().count())),
        None if name.ends_with("find") => Ok(Value::from(-1)),
        None => Err(Error::new(
            ErrorKind::InvalidOperation,
            "substring not found",
        )),
    }
}

fn bounded(text: &str, at_start: bool, given: &[Value]) -> Result<Value, Error> {
    let (of, from, to): (Value, Option<i64>, Option<i64>) = from_args(given)?;
    let (_, part) = between(text, from, to);
    let is = |of: &str| {
        if at_start {
            part.starts_with(of)
        } else {
            part.ends_with(of)
        }
    };
    Ok(Value::from(match of.as_str() {
        Some(of) => is(of),
        None => of.try_iter()?.any(|one| one.as_str().is_some_and(is)),
    }))
}

fn lines(text: &str, given: &[Value]) -> Result<Value, Error> {
    let (keeps,): (Option<bool>,) = from_args(given)?;
    let is_end = |letter: char| {
        matches!(
            letter,
            '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'
                ..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
        )
    };
    let (mut lines, mut rest) = (Vec::new(), text);
    while let Some(at) = rest.find(is_end) {
        let width = match rest[at..].starts_with("\r\n") {
            true => 2,
            false => rest[at..].chars().next().map_or(1, char::len_utf8),
        };
        let end = if keeps == Some(true) { at + width } else { at };
        lines.push(Value::from(&rest[..end]));
        rest = &rest[at + width..];
    }
    if !rest.is_empty() {
        lines.push(Value::from(rest));
    }
    Ok(Value::from(lines))
}
