//! A Rust source as its words: names, numbers and marks, without comments and without what literals hold.
//!
//! Invariant: nothing inside a comment, a string or a character is a word.
//! Not here: the grammar (`modules` reads the few items that it needs).

/// The words of a source that compiles. `::` is one word, every other mark is a word of its own.
pub(super) fn words(source: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => string(rest, words.last().copied()),
            '\'' => character(rest),
            _ if first.is_whitespace() => first.len_utf8(),
            _ => {
                let length = word(rest, first);
                words.extend(rest.get(..length));
                length
            }
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    words
}

fn word(rest: &str, first: char) -> usize {
    let is_in_name = |c: char| c.is_alphanumeric() || c == '_';
    if is_in_name(first) {
        // `r#"…"#`: the hashes go with the letter, so that the string knows its end.
        let end = rest.find(|c| !is_in_name(c)).unwrap_or(rest.len());
        let hashes = rest.get(end..).unwrap_or_default();
        let raw = hashes.len() - hashes.trim_start_matches('#').len();
        let is_raw = matches!(rest.get(..end), Some("r" | "br"))
            && hashes
                .get(raw..)
                .is_some_and(|after| after.starts_with('"'));
        return if is_raw { end + raw } else { end };
    }
    if rest.starts_with("::") {
        2
    } else {
        first.len_utf8()
    }
}

/// Length of a string; `before` is the word before it, which may say that it is raw.
fn string(rest: &str, before: Option<&str>) -> usize {
    let before = before.unwrap_or_default();
    let hashes = before.trim_start_matches(['b', 'r']);
    if before.contains('r') && hashes.chars().all(|c| c == '#') && before.len() <= hashes.len() + 2
    {
        let end = format!("\"{hashes}");
        let inside = rest.get(1..).unwrap_or_default();
        return inside
            .find(&end)
            .map_or(rest.len(), |at| 1 + at + end.len());
    }
    let mut escaped = true;
    for (at, c) in rest.char_indices() {
        match c {
            '"' if !escaped => return at + 1,
            '\\' if !escaped => escaped = true,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// Length of a character, or of the quote alone where it begins a lifetime.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some(_)) => {
            let end = chars.find(|(_, c)| *c == '\'');
            end.map_or(rest.len(), |(at, _)| at + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}
