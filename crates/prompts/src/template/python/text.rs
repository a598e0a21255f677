//! Python's view of characters.
//!
//! Not here: what can be printed (`python_text`).

/// `str.isspace` of one character.
pub(in crate::template) fn is_space(char: char) -> bool {
    char.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&char)
}

/// Where Python's `splitlines` ends a line.
pub(super) fn ends_line(char: char) -> bool {
    matches!(
        char,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Digits that are no decimal numerals: superscripts, circled ones and the like.
pub(super) fn is_other_digit(char: char) -> bool {
    matches!(
        u32::from(char),
        0xb2 | 0xb3
            | 0xb9
            | 0x1369..=0x1371
            | 0x19da
            | 0x2070
            | 0x2074..=0x2079
            | 0x2080..=0x2089
            | 0x2460..=0x2468
            | 0x2474..=0x247c
            | 0x2488..=0x2490
            | 0x24ea
            | 0x24f5..=0x24fd
            | 0x24ff
            | 0x2776..=0x277e
            | 0x2780..=0x2788
            | 0x278a..=0x2792
            | 0x1_0a40..=0x1_0a43
            | 0x1_0e60..=0x1_0e68
            | 0x1_1052..=0x1_105a
            | 0x1_f100..=0x1_f10a
    )
}

/// Letters of which some are numerals to Python, by a table that is not here.
pub(super) fn may_be_numeral(char: char) -> bool {
    matches!(u32::from(char), 0x3400..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff)
}

fn is_cased(char: char) -> bool {
    char.is_lowercase() || char.is_uppercase() || is_titlecase(char)
}

fn is_titlecase(char: char) -> bool {
    matches!(
        u32::from(char),
        0x1c5 | 0x1c8 | 0x1cb | 0x1f2 | 0x1f88..=0x1f8f | 0x1f98..=0x1f9f | 0x1fa8..=0x1faf | 0x1fbc | 0x1fcc | 0x1ffc
    )
}

/// `str.title`.
pub(super) fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut follows = false;
    for char in text.chars() {
        if follows {
            out.extend(char.to_lowercase());
        } else {
            push_titlecase(char, &mut out);
        }
        follows = is_cased(char);
    }
    out
}

/// `str.capitalize`.
pub(super) fn capitalize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    if let Some(first) = chars.next() {
        push_titlecase(first, &mut out);
        out.push_str(&chars.as_str().to_lowercase());
    }
    out
}

/// A letter that becomes several keeps but the first of them large.
fn push_titlecase(char: char, out: &mut String) {
    if let Some(title) = titlecase(char) {
        out.push(title);
        return;
    }
    if char == 'ŉ' {
        out.push_str("ʼN");
        return;
    }
    let mut upper = char.to_uppercase();
    out.extend(upper.next());
    out.extend(upper.flat_map(char::to_lowercase));
}

/// The letter that only begins words, where there is one.
fn titlecase(char: char) -> Option<char> {
    let number = u32::from(char);
    let title = match number {
        0x1c4..=0x1c6 => 0x1c5,
        0x1c7..=0x1c9 => 0x1c8,
        0x1ca..=0x1cc => 0x1cb,
        0x1f1..=0x1f3 => 0x1f2,
        0x1f80..=0x1f87 | 0x1f90..=0x1f97 | 0x1fa0..=0x1fa7 => number + 8,
        0x1fb3 | 0x1fc3 | 0x1ff3 => number + 9,
        _ if is_titlecase(char) => number,
        _ => return None,
    };
    char::from_u32(title)
}

/// `str.swapcase`.
pub(super) fn swapcase(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if char.is_uppercase() {
            out.extend(char.to_lowercase());
        } else {
            out.extend(char.to_uppercase());
        }
    }
    out
}

/// `str.istitle`.
pub(super) fn is_title(text: &str) -> bool {
    let (mut follows, mut any) = (false, false);
    for char in text.chars() {
        if char.is_uppercase() || is_titlecase(char) {
            if follows {
                return false;
            }
            (follows, any) = (true, true);
        } else if char.is_lowercase() {
            if !follows {
                return false;
            }
            any = true;
        } else {
            follows = false;
        }
    }
    any
}

/// `str.splitlines`.
pub(super) fn lines(text: &str, keeps_ends: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        if !ends_line(char) {
            line.push(char);
            continue;
        }
        let mut end = String::from(char);
        if char == '\r' {
            end.extend(chars.next_if_eq(&'\n'));
        }
        if keeps_ends {
            line.push_str(&end);
        }
        lines.push(std::mem::take(&mut line));
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
}

/// `str.split` with no separator: at runs of space.
pub(super) fn words(text: &str, most: Option<usize>) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_start_matches(is_space);
    while !rest.is_empty() {
        if most.is_some_and(|most| words.len() >= most) {
            words.push(rest.to_owned());
            break;
        }
        let end = rest.find(is_space).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        words.push(word.to_owned());
        rest = after.trim_start_matches(is_space);
    }
    words
}

/// `str.rsplit` with no separator.
pub(super) fn words_from_the_end(text: &str, most: Option<usize>) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text.trim_end_matches(is_space);
    while !rest.is_empty() {
        if most.is_some_and(|most| words.len() >= most) {
            words.push(rest.to_owned());
            break;
        }
        let start = rest
            .char_indices()
            .rev()
            .find(|(_, char)| is_space(*char))
            .map_or(0, |(at, char)| at + char.len_utf8());
        let (before, word) = rest.split_at(start);
        words.push(word.to_owned());
        rest = before.trim_end_matches(is_space);
    }
    words.reverse();
    words
}

/// Some characters of a text, by their places as Python counts them; negative ones from the end. None where the start
/// lies behind the end.
pub(super) fn part(text: &str, start: Option<i64>, end: Option<i64>) -> Option<(usize, &str)> {
    let length = i64::try_from(text.chars().count()).ok()?;
    let place = |at: i64| if at < 0 { (at + length).max(0) } else { at };
    let (start, end) = (
        place(start.unwrap_or(0)),
        place(end.unwrap_or(length)).min(length),
    );
    if start > end {
        return None;
    }
    let (start, end) = (usize::try_from(start).ok()?, usize::try_from(end).ok()?);
    let byte = |at: usize| {
        text.char_indices()
            .nth(at)
            .map_or(text.len(), |(byte, _)| byte)
    };
    Some((start, text.get(byte(start)..byte(end))?))
}
