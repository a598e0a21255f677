//! A template's source, as the engine is given it.
//!
//! Jinja reads all line ends as one; `{% generation %}` marks what training learns from and becomes a scope, as which it
//! works; strings have the escapes of Python's.
//! Invariant: only tags change, and in comments and raw text nothing does but line ends.
//! Not here: what the source says (`form`).

/// The source as it is compiled.
pub(super) fn read(source: &str) -> String {
    let source = with_line_ends(source);
    let mut out = String::with_capacity(source.len());
    let mut rest = source.as_str();
    while let Some((before, opened)) = next_tag(rest) {
        out.push_str(before);
        let (tag, after) = opened.split_at(tag_length(opened));
        match word(tag) {
            "raw" => {
                let end = end_of_raw(after);
                let (raw, after) = after.split_at(end);
                out.push_str(tag);
                out.push_str(raw);
                rest = after;
                continue;
            }
            word @ "generation" => out.push_str(&tag.replacen(word, "with", 1)),
            word @ "endgeneration" => out.push_str(&tag.replacen(word, "endwith", 1)),
            _ => push_escaped(tag, &mut out),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Whether training's marks are in it, which Jinja by itself does not know.
pub(super) fn marks_generation(source: &str) -> bool {
    let mut rest = source;
    while let Some((_, opened)) = next_tag(rest) {
        let (tag, after) = opened.split_at(tag_length(opened));
        match word(tag) {
            "generation" => return true,
            "raw" => rest = after.get(end_of_raw(after)..).unwrap_or_default(),
            _ => rest = after,
        }
    }
    false
}

fn with_line_ends(source: &str) -> String {
    source.replace("\r\n", "\n").replace('\r', "\n")
}

/// What is before the next tag or comment, and from there on.
fn next_tag(text: &str) -> Option<(&str, &str)> {
    let at = ["{{", "{%", "{#"]
        .iter()
        .filter_map(|mark| text.find(mark))
        .min()?;
    text.split_at_checked(at)
}

/// The bytes of a tag or comment up to its end, which does not count in a string.
fn tag_length(opened: &str) -> usize {
    let until = match opened.get(..2) {
        Some("{#") => return opened.find("#}").map_or(opened.len(), |at| at + 2),
        Some("{%") => "%}",
        _ => "}}",
    };
    let mut string = None;
    let mut braces = 0_u32;
    let mut chars = opened.char_indices().skip(2);
    while let Some((at, char)) = chars.next() {
        match (string, char) {
            (Some(_), '\\') => {
                chars.next();
            }
            (Some(quote), _) if char == quote => string = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => string = Some(char),
            (None, '{') => braces += 1,
            (None, '}') if braces > 0 => braces -= 1,
            (None, _) => {
                if opened.get(at..).is_some_and(|rest| rest.starts_with(until)) {
                    return at + 2;
                }
            }
        }
    }
    opened.len()
}

/// The first word of a statement.
fn word(tag: &str) -> &str {
    let Some(inner) = tag.strip_prefix("{%") else {
        return "";
    };
    let inner = inner.trim_start_matches(['-', '+']).trim_start();
    let end = inner.find(|char: char| !char.is_alphanumeric() && char != '_');
    inner.get(..end.unwrap_or(inner.len())).unwrap_or_default()
}

/// Where the raw text that begins here ends, at its closing tag.
fn end_of_raw(text: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text.get(from..).and_then(|rest| rest.find("{%")) {
        let tag = text.get(from + at..).unwrap_or_default();
        if word(tag) == "endraw" {
            return from + at;
        }
        from += at + 2;
    }
    text.len()
}

/// Writes a tag whose strings have other escapes for what is not known: a bell, a vertical tab, a wide character, and
/// `\/`, which is two characters to Python.
fn push_escaped(tag: &str, out: &mut String) {
    if tag.starts_with("{#") || !tag.contains('\\') {
        out.push_str(tag);
        return;
    }
    let mut string = None;
    let mut chars = tag.chars();
    while let Some(char) = chars.next() {
        match (string, char) {
            (Some(_), '\\') => push_escape(&mut chars, out),
            (Some(quote), _) if char == quote => {
                string = None;
                out.push(char);
            }
            (None, '"' | '\'') => {
                string = Some(char);
                out.push(char);
            }
            _ => out.push(char),
        }
    }
}

fn push_escape(chars: &mut std::str::Chars<'_>, out: &mut String) {
    match chars.next() {
        Some('a') => out.push_str("\\x07"),
        Some('v') => out.push_str("\\x0b"),
        Some('/') => out.push_str("\\\\/"),
        Some('\n') => {}
        Some('U') => {
            let digits = chars.as_str().get(..8);
            let number = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            match number.and_then(char::from_u32) {
                Some(char) => {
                    out.push(char);
                    *chars = chars.as_str().get(8..).unwrap_or_default().chars();
                }
                None => out.push_str("\\U"),
            }
        }
        other => out.extend(['\\'].into_iter().chain(other)),
    }
}
