//! What a template writes, up to a bound.
//!
//! Invariant: no more than the bound is kept, and the first write beyond it ends the rendering.
//! Not here: who writes (`template`).

use std::io;

/// A text that is being rendered.
pub(super) struct Text {
    text: Vec<u8>,
    longest: usize,
    /// The length that it would have had.
    refused: Option<usize>,
}

impl Text {
    /// One of at most so many bytes.
    pub(super) const fn new(longest: usize) -> Self {
        Self {
            text: Vec::new(),
            longest,
            refused: None,
        }
    }

    /// The length, where that was too much.
    pub(super) const fn refused(&self) -> Option<usize> {
        self.refused
    }

    /// All that was written.
    pub(super) fn into_string(self) -> String {
        // Templates write whole characters.
        String::from_utf8(self.text)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.text.len() + bytes.len();
        if length > self.longest {
            self.refused = Some(length);
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
