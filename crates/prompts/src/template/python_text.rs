//! Values as Python's `str` and `repr` write them, for templates that print other things than text.
//!
//! What cannot be printed is that of the `regex-syntax` crate's Unicode, as Python's `str.isprintable` defines it.
//! Not here: JSON (`tree::python_json`).

use std::fmt::Write;

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use crate::RENDERED_LIMIT_BYTES;
use crate::tree::python_float;

/// The deepest value that is written.
const DEPTH_MAX: usize = 128;

/// `str(value)`; what is undefined is nothing.
pub(super) fn str(value: &Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_owned());
    }
    let mut out = String::new();
    if !value.is_undefined() {
        write_repr(value, 0, &mut out)?;
    }
    Ok(out)
}

fn write_repr(value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
    if depth > DEPTH_MAX {
        return Err(unprintable("it is too deep"));
    }
    if out.len() > RENDERED_LIMIT_BYTES {
        return Err(unprintable("it is too long"));
    }
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number if value.is_integer() => {
            let written = write!(out, "{value}");
            written.map_err(|_| unprintable("it is not a number"))?;
        }
        ValueKind::Number => {
            let float = f64::try_from(value.clone())?;
            python_float(float, out);
        }
        ValueKind::String => out.push_str(&quoted(value.as_str().unwrap_or_default())),
        ValueKind::Seq | ValueKind::Iterable => {
            let is_tuple = value.downcast_object_ref::<Tuple>().is_some();
            out.push(if is_tuple { '(' } else { '[' });
            let mut length = 0;
            for item in value.try_iter()? {
                if length > 0 {
                    out.push_str(", ");
                }
                write_repr(&item, depth + 1, out)?;
                length += 1;
            }
            if is_tuple && length == 1 {
                out.push(',');
            }
            out.push(if is_tuple { ')' } else { ']' });
        }
        ValueKind::Map => {
            out.push('{');
            for (at, key) in value.try_iter()?.enumerate() {
                if at > 0 {
                    out.push_str(", ");
                }
                write_repr(&key, depth + 1, out)?;
                out.push_str(": ");
                write_repr(&value.get_item(&key)?, depth + 1, out)?;
            }
            out.push('}');
        }
        _ => return Err(unprintable("its kind is not known")),
    }
    Ok(())
}

fn unprintable(why: &str) -> Error {
    Error::new(
        ErrorKind::InvalidOperation,
        format!("a value cannot be printed: {why}"),
    )
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
            _ if is_printable(char) => out.push(char),
            _ => {
                let number = u32::from(char);
                out.push_str(&match number {
                    ..=0xff => format!("\\x{number:02x}"),
                    0x100..=0xffff => format!("\\u{number:04x}"),
                    _ => format!("\\U{number:08x}"),
                });
            }
        }
    }
    out.push(quote);
    out
}

/// `str.isprintable` of one character.
pub(super) fn is_printable(char: char) -> bool {
    !is_in(UNPRINTABLE, char)
}

/// `str.isdecimal` of one character.
pub(super) fn is_decimal(char: char) -> bool {
    is_in(DECIMAL, char)
}

/// Sorted pairs of first and last, four bytes each.
static UNPRINTABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/unprintable.ranges"));
static DECIMAL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/decimal.ranges"));

fn is_in(ranges: &[u8], char: char) -> bool {
    let (pairs, _) = ranges.as_chunks::<8>();
    let last = |pair: &[u8; 8]| {
        let [_, _, _, _, last @ ..] = *pair;
        u32::from_le_bytes(last)
    };
    let first = |pair: &[u8; 8]| {
        let [first @ .., _, _, _, _] = *pair;
        u32::from_le_bytes(first)
    };
    let number = u32::from(char);
    let at = pairs.partition_point(|pair| last(pair) < number);
    pairs.get(at).is_some_and(|pair| first(pair) <= number)
}
