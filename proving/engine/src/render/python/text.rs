//! Values as Python prints them: its `str`, and within lists and maps its `repr`.
//!
//! Invariant: what is printed in another way than minijinja does is printed here: numbers with exponents, lists, maps.
//! Not here: tuples, which are lists.

use std::fmt::Write as _;
use std::sync::LazyLock;

use minijinja::Value;
use minijinja::value::ValueKind;
use regex::Regex;

/// Letters that Python escapes: all of the categories C and Z but the space.
static HIDDEN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^[\p{C}\p{Z}&&[^ ]]$").expect("a class of letters"));

/// `str` of a value, where it is another than minijinja's.
pub(super) fn of(value: &Value) -> Option<String> {
    match value.kind() {
        ValueKind::Number => number(value),
        ValueKind::Seq | ValueKind::Map => {
            let mut out = String::new();
            write(value, &mut out)?;
            Some(out)
        }
        _ => None,
    }
}

/// `repr` of a float: shortest digits, with an exponent from 1e16 and below 1e-4.
fn number(value: &Value) -> Option<String> {
    if value.is_integer() {
        return None;
    }
    let number = f64::try_from(value.clone()).ok()?;
    let size = number.abs();
    if !number.is_finite() || number == 0.0 || (1e-4..1e16).contains(&size) {
        return None;
    }
    let written = format!("{number:e}");
    let (digits, exponent) = written.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let sign = if exponent < 0 { '-' } else { '+' };
    Some(format!("{digits}e{sign}{:02}", exponent.abs()))
}

fn write(value: &Value, out: &mut String) -> Option<()> {
    match value.kind() {
        ValueKind::String => quoted(value.as_str()?, out),
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Seq if value.to_string().starts_with('(') => out.push_str(&value.to_string()),
        ValueKind::Seq => {
            out.push('[');
            for (at, one) in value.try_iter().ok()?.enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write(&one, out)?;
            }
            out.push(']');
        }
        ValueKind::Map => {
            out.push('{');
            for (at, key) in value.try_iter().ok()?.enumerate() {
                out.push_str(if at > 0 { ", " } else { "" });
                write(&key, out)?;
                out.push_str(": ");
                write(&value.get_item(&key).ok()?, out)?;
            }
            out.push('}');
        }
        _ => out.push_str(&number(value).unwrap_or_else(|| value.to_string())),
    }
    Some(())
}

fn quoted(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    let mut bytes = [0; 4];
    for letter in text.chars() {
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            letter if letter == quote => out.extend(['\\', letter]),
            letter if is_hidden(letter.encode_utf8(&mut bytes)) => {
                let code = u32::from(letter);
                let _ = match code {
                    0..0x100 => write!(out, "\\x{code:02x}"),
                    0x100..0x1_0000 => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                };
            }
            letter => out.push(letter),
        }
    }
    out.push(quote);
}

/// Whether a letter is one that Python does not print.
pub(super) fn is_hidden(letter: &str) -> bool {
    !letter.bytes().all(|byte| (b' '..=b'~').contains(&byte)) && HIDDEN.is_match(letter)
}
