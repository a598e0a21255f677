//! Values in paths, queries, headers and cookies, each in the style that its parameter has.
//!
//! Invariant: what stands between values is written here alone: within a value it is encoded, or the value is refused. No value makes a
//! path lead elsewhere.
//! Not here: which parameter has which style (`parameter`).

use std::borrow::Cow;

use wire::head::percent_decoded;

use crate::arguments::Written;

/// How values are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Simple,
    Label,
    Matrix,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
}

/// A parameter's own way to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    pub(crate) style: Style,
    pub(crate) explode: bool,
    /// Some characters of a query's own stand as they are.
    pub(crate) keeps_reserved: bool,
}

/// Percent-encodes what is not unreserved.
pub(crate) fn encoded(text: &str) -> String {
    kept(text, "")
}

fn kept(text: &str, further: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if is_plain || further.as_bytes().contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

/// What of a query's own characters may stand in a value: none that ends it, or that some parsers read otherwise.
const RESERVED_KEPT: &str = ":/?@!$'()*,;";

/// A value in a path.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn in_path(name: &str, value: &Written, manner: Manner) -> Result<String, String> {
    let one = |value: &Written| {
        let text = text_of(value)?;
        leads_nowhere_else(&text)?;
        Ok(encoded(&text))
    };
    let (begins, between) = match (manner.style, manner.explode) {
        (Style::Label, true) => (".", "."),
        (Style::Label, false) => (".", ","),
        (Style::Matrix, true) => (";", ";"),
        (Style::Matrix, false) => (";", ","),
        _ => ("", ","),
    };
    let is_matrix = manner.style == Style::Matrix;
    let name = encoded(name);
    let named = |text: String| {
        if is_matrix {
            format!("{name}={text}")
        } else {
            text
        }
    };
    let made = match value {
        Written::Nothing => return Err("must have a value, since it stands in the path".into()),
        Written::Text(_) => named(one(value)?),
        Written::List(items) => {
            let items: Vec<String> = items.iter().map(one).collect::<Result<_, String>>()?;
            if is_matrix && manner.explode {
                let items: Vec<String> = items.into_iter().map(named).collect();
                items.join(between)
            } else {
                named(items.join(between))
            }
        }
        Written::Object(members) => {
            let mut parts = Vec::new();
            for (key, of) in members {
                leads_nowhere_else(key)?;
                let (key, of) = (encoded(key), one(of)?);
                match manner.explode {
                    true => parts.push(format!("{key}={of}")),
                    false => parts.extend([key, of]),
                }
            }
            match manner.explode {
                true => parts.join(between),
                false => named(parts.join(between)),
            }
        }
    };
    if made.is_empty() {
        return Err("must have a value, since it stands in the path".into());
    }
    Ok(format!("{begins}{made}"))
}

/// How often a value may be decoded on its way: by what stands before a server, and by that itself.
const DECODED_MAX: usize = 3;

/// Some servers decode a path before they take its dots apart, also one that was decoded before: neither then nor now may one lead to its
/// parent.
fn leads_nowhere_else(text: &str) -> Result<(), String> {
    let mut now = Cow::Borrowed(text);
    for _ in 0..=DECODED_MAX {
        let is_encoded = matches!(now, Cow::Owned(_));
        let mut parts = now.split(['/', '\\']);
        let is_of_parts = is_encoded || now.contains(['/', '\\']);
        if is_of_parts && parts.any(|part| matches!(part, "." | "..")) {
            return Err("leads elsewhere in the path".into());
        }
        if now.chars().any(char::is_control) {
            return Err("has a control character, and stands in the path".into());
        }
        let decoded = percent_decoded(&now);
        let decoded = String::from_utf8_lossy(&decoded);
        if decoded == now {
            return Ok(());
        }
        now = Cow::Owned(decoded.into_owned());
    }
    Err("is encoded again and again, and stands in the path".into())
}

/// A value in a query, as pairs that are encoded.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn in_query(
    name: &str,
    value: &Written,
    manner: Manner,
) -> Result<Vec<(String, String)>, String> {
    let further = if manner.keeps_reserved {
        RESERVED_KEPT
    } else {
        ""
    };
    let one = |value: &Written| text_of(value).map(|text| kept(&text, further));
    let name = encoded(name);
    let joined = |items: &[Written], between: &str| {
        let items: Vec<String> = items.iter().map(one).collect::<Result<_, String>>()?;
        Ok::<_, String>(items.join(between))
    };
    Ok(match value {
        Written::Nothing => Vec::new(),
        Written::Text(_) => vec![(name, one(value)?)],
        Written::List(items) if items.is_empty() => Vec::new(),
        Written::List(items) => match manner {
            Manner { explode: true, .. }
            | Manner {
                style: Style::DeepObject,
                ..
            } => {
                let pairs = items.iter().map(|item| Ok((name.clone(), one(item)?)));
                pairs.collect::<Result<_, String>>()?
            }
            Manner {
                style: Style::SpaceDelimited,
                ..
            } => vec![(name, joined(items, "%20")?)],
            Manner {
                style: Style::PipeDelimited,
                ..
            } => vec![(name, joined(items, "%7C")?)],
            _ => vec![(name, joined(items, ",")?)],
        },
        Written::Object(members) if manner.style == Style::DeepObject => {
            let mut pairs = Vec::new();
            for (key, of) in members {
                deep(
                    &format!("{name}%5B{}%5D", encoded(key)),
                    of,
                    &one,
                    &mut pairs,
                )?;
            }
            pairs
        }
        Written::Object(members) if manner.explode => {
            let pairs = members.iter().map(|(key, of)| Ok((encoded(key), one(of)?)));
            pairs.collect::<Result<_, String>>()?
        }
        Written::Object(members) => {
            let between = match manner.style {
                Style::SpaceDelimited => "%20",
                Style::PipeDelimited => "%7C",
                _ => ",",
            };
            let mut parts = Vec::new();
            for (key, of) in members {
                parts.extend([encoded(key), one(of)?]);
            }
            vec![(name, parts.join(between))]
        }
    })
}

fn deep(
    name: &str,
    value: &Written,
    one: &dyn Fn(&Written) -> Result<String, String>,
    pairs: &mut Vec<(String, String)>,
) -> Result<(), String> {
    match value {
        Written::Nothing => {}
        Written::Text(_) => pairs.push((name.to_owned(), one(value)?)),
        Written::List(items) => {
            for item in items {
                pairs.push((name.to_owned(), one(item)?));
            }
        }
        Written::Object(members) => {
            for (key, of) in members {
                deep(&format!("{name}%5B{}%5D", encoded(key)), of, one, pairs)?;
            }
        }
    }
    Ok(())
}

/// A value in a header.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn in_header(value: &Written, explode: bool) -> Result<String, String> {
    let made = match value {
        Written::Nothing => String::new(),
        Written::Text(text) => text.clone(),
        Written::List(items) => {
            let items: Vec<String> = items.iter().map(listed).collect::<Result<_, String>>()?;
            items.join(",")
        }
        Written::Object(members) => {
            let mut parts = Vec::new();
            for (key, of) in members {
                if key.contains([',', '=']) {
                    return Err(format!("has the member `{key}`, which no header can have"));
                }
                match explode {
                    true => parts.push(format!("{key}={}", listed(of)?)),
                    false => parts.extend([key.clone(), listed(of)?]),
                }
            }
            parts.join(",")
        }
    };
    let is_fine = |b: u8| (b' '..0x7f).contains(&b) || b == b'\t';
    if !made.bytes().all(is_fine) || made.trim_ascii().len() != made.len() {
        return Err("has a character that no header can have".into());
    }
    Ok(made)
}

/// One of several values in a header.
fn listed(value: &Written) -> Result<String, String> {
    let text = text_of(value)?;
    match text.contains(',') {
        true => Err("has a comma in one of several values, which a header cannot have".into()),
        false => Ok(text),
    }
}

/// A value of cookies, as pairs that are encoded.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn in_cookie(
    name: &str,
    value: &Written,
    explode: bool,
) -> Result<Vec<(String, String)>, String> {
    let style = Style::Form;
    let manner = Manner {
        style,
        explode,
        keeps_reserved: false,
    };
    in_query(name, value, manner)
}

fn text_of(value: &Written) -> Result<String, String> {
    match value {
        Written::Text(text) => Ok(text.clone()),
        Written::Nothing => Ok(String::new()),
        Written::List(_) | Written::Object(_) => {
            Err("has a list or an object within, which cannot be written in its place".into())
        }
    }
}

#[cfg(test)]
mod tests;
