//! Bounds on what others wrote, so that no text makes a page as long as it likes.
//!
//! Not here: what is harmless in HTML or Markdown.

use std::borrow::Cow;

/// Characters of a sentence, a cell or a name.
const MOST: usize = 600;
/// Lines of a text that is shown as it is, and bytes of each.
const MOST_LINES: usize = 2_000;
const MOST_OF_LINE: usize = 2_000;

/// At most so many characters, the last of them a sign that there is more.
pub(super) fn clipped(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MOST) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// At most so many lines, each at most so long.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().take(MOST_LINES).map(|line| {
        let end = line.floor_char_boundary(MOST_OF_LINE);
        line.get(..end).unwrap_or_default()
    })
}
