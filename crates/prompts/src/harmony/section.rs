//! The text of a developer message, of bounded length.
//!
//! Invariant: what does not fit is not written, and the first write that does not fit fails.
//! Not here: what is written (`turns`, `typescript`).

use std::fmt;

const NULL: &[u8] = b"null";

/// A text that is being written.
pub(super) struct Section {
    text: String,
    longest: usize,
    /// How far [`Self::says_null`] has looked, and the last place where it found it.
    looked: usize,
    null_at: Option<usize>,
}

impl Section {
    /// One of at most so many bytes.
    pub(super) const fn new(longest: usize) -> Self {
        Self {
            text: String::new(),
            longest,
            looked: 0,
            null_at: None,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Writes so many spaces.
    pub(super) fn indent(&mut self, by: usize) -> fmt::Result {
        self.room(by)?;
        self.text.extend(std::iter::repeat_n(' ', by));
        Ok(())
    }

    /// Writes a line of comment.
    pub(super) fn comment(&mut self, indent: usize, text: &str) -> fmt::Result {
        self.indent(indent)?;
        fmt::Write::write_fmt(self, format_args!("// {text}\n"))
    }

    /// Whether `null` stands anywhere from a place on. However often it is asked, each byte is looked at about once: only the
    /// last place counts.
    pub(super) fn says_null(&mut self, from: usize) -> bool {
        // The word may have begun before what is new.
        let start = self.looked.saturating_sub(NULL.len() - 1);
        let new = self.text.as_bytes().get(start..).unwrap_or_default();
        if let Some(at) = new.windows(NULL.len()).rposition(|word| word == NULL) {
            self.null_at = Some(start + at);
        }
        self.looked = self.text.len();
        self.null_at.is_some_and(|at| at >= from)
    }

    fn room(&self, bytes: usize) -> fmt::Result {
        if bytes > self.longest.saturating_sub(self.text.len()) {
            return Err(fmt::Error);
        }
        Ok(())
    }
}

impl fmt::Write for Section {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.room(text.len())?;
        self.text.push_str(text);
        Ok(())
    }
}
