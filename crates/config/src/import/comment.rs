//! Comments of the document that is made.
//!
//! Invariant: a comment stays a comment whatever the other file says: no line break of it gets into one, and nothing that looks
//! like a key.

use std::fmt::Write as _;

use crate::decode::Place;
use crate::mask::masked;

/// Columns of a comment.
const WIDTH: usize = 118;

/// Writes a comment, broken into lines.
pub(super) fn write(text: &mut String, indent: usize, says: &str) {
    let says: String = masked(says)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let begin = format!("{:indent$}#", "");
    let mut line = begin.clone();
    for word in says.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH && line != begin {
            let _ = writeln!(text, "{line}");
            line.clone_from(&begin);
            // What goes on stands under what it belongs to.
            if says.starts_with("- ") {
                line.push_str("  ");
            }
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(text, "{line}");
}

/// A setting and its line, before what is said of it.
pub(super) fn of(place: &Place, says: &str) -> String {
    format!("{} (line {}): {says}", place.path, place.line)
}
