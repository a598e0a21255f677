//! Lines of at most eighty columns, for what people read, and nothing in them that a terminal would obey.
//!
//! Not here: what is said.

use std::io::{self, IsTerminal, Write as _};

/// Columns of a line.
pub(crate) const WIDTH: usize = 80;

/// Adds a line to a page that is said in one piece.
macro_rules! add {
    ($page:expr) => { $page.push('\n') };
    ($page:expr, $($text:tt)*) => {{
        $page.push_str(&format!($($text)*));
        $page.push('\n');
    }};
}
pub(crate) use add;

/// Writes to stdout; whoever reads it may stop reading, as `head` does.
pub(crate) fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done,
    }
}

/// Whether stdout is a terminal that may be given bold letters.
pub(crate) fn is_bold() -> bool {
    is_coloured(&io::stdout())
}

/// Whether this is a terminal that may be given colours and bold letters: `NO_COLOR` is not set.
pub(crate) fn is_coloured(out: &impl IsTerminal) -> bool {
    out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A text that others chose, as a terminal may show it: U+FFFD stands for each control character (of the first 32 and
/// of U+007F to U+009F) and for each character that turns the direction of the text around it.
pub(crate) fn printable(text: &str) -> String {
    let turns = |c| matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let shown = |c: char| {
        if c.is_control() || turns(c) {
            '\u{fffd}'
        } else {
            c
        }
    };
    text.chars().map(shown).collect()
}

/// Whether a header of this name may carry a credential, so that no page shows its value. Names are told apart by their
/// parts, as gateways give such headers names of their own.
pub(crate) fn is_secret(header: &str) -> bool {
    const PARTS: [&str; 6] = ["auth", "key", "token", "cookie", "secret", "credential"];
    let header = header.to_ascii_lowercase();
    PARTS.iter().any(|part| header.contains(part))
}

/// With commas between thousands.
pub(crate) fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A text broken between words, lines after the first indented by `indent`.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    wrapped_to(WIDTH, text, indent)
}

/// As [`wrapped`], in lines of at most `width`: words that no line holds are broken, and nothing is left that a terminal
/// would obey.
pub(crate) fn folded(width: usize, text: &str, indent: usize) -> String {
    let room = width.saturating_sub(indent).max(1);
    let (mut words, mut length) = (String::new(), 0);
    for c in printable(text).chars() {
        length = if c == ' ' { 0 } else { length + 1 };
        if length > room {
            words.push(' ');
            length = 1;
        }
        words.push(c);
    }
    wrapped_to(width, &words, indent)
}

fn wrapped_to(width: usize, text: &str, indent: usize) -> String {
    let words = text.trim_start_matches(' ');
    let mut out = " ".repeat(text.len() - words.len());
    let mut start = out.len();
    let mut column = start;
    for word in words.split(' ') {
        let length = word.chars().count();
        if column > start && column + 1 + length > width {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent));
            (start, column) = (indent, indent);
        } else if column > start {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out
}

#[cfg(test)]
mod tests;
