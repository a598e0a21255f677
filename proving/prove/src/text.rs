//! Lines of at most eighty columns, for what people read.
//!
//! Not here: what is said.

/// Columns of a line.
pub(crate) const WIDTH: usize = 80;

/// A text broken between words, lines after the first indented by `indent`.
pub(crate) fn wrapped(text: &str, indent: usize) -> String {
    let words = text.trim_start_matches(' ');
    let mut out = " ".repeat(text.len() - words.len());
    let mut start = out.len();
    let mut column = start;
    for word in words.split(' ') {
        let length = word.chars().count();
        if column > start && column + 1 + length > WIDTH {
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
