//! Where events end: at a blank line, whichever of the three line ends the sender uses.
//!
//! Not here: what an event holds (`event`).

use memchr::memchr2;

/// Finds the ends of events in a stream that arrives in chunks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Boundary {
    /// Nothing of the present line has been seen.
    line_is_empty: bool,
    /// The last byte was a carriage return: a line feed now belongs to it.
    after_return: bool,
}

/// The end of an event, in the chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// After the blank line.
    pub(super) end: usize,
    /// After the line feed too, where one follows a blank line's carriage return in the same chunk.
    pub(super) tail_end: usize,
    /// Where the only line before the blank one ends, of those that end in this chunk.
    pub(super) only_line_end: Option<usize>,
}

impl Boundary {
    pub(super) const fn new() -> Self {
        Self {
            line_is_empty: true,
            after_return: false,
        }
    }

    /// Whether the next byte may be the line feed of a line that has ended.
    pub(super) const fn is_after_return(&self) -> bool {
        self.after_return
    }

    /// Whether this chunk starts with the line feed of a blank line that ended an event.
    pub(super) fn take_tail(&mut self, chunk: &[u8]) -> bool {
        if self.after_return && chunk.first() == Some(&b'\n') {
            self.after_return = false;
            return true;
        }
        false
    }

    /// The next end of an event at or after `from`.
    pub(super) fn next(&mut self, chunk: &[u8], from: usize) -> Option<Cut> {
        let mut at = from;
        let (mut lines, mut line_end) = (0, 0);
        loop {
            let byte = *chunk.get(at)?;
            if std::mem::take(&mut self.after_return) && byte == b'\n' {
                at += 1;
                continue;
            }
            if self.line_is_empty && byte == b'\n' {
                return Some(Cut {
                    end: at + 1,
                    tail_end: at + 1,
                    only_line_end: (lines == 1).then_some(line_end),
                });
            }
            if self.line_is_empty && byte == b'\r' {
                let line_feed = chunk.get(at + 1) == Some(&b'\n');
                self.after_return = !line_feed;
                return Some(Cut {
                    end: at + 1,
                    tail_end: at + 1 + usize::from(line_feed),
                    only_line_end: (lines == 1).then_some(line_end),
                });
            }
            let Some(length) = memchr2(b'\n', b'\r', chunk.get(at..)?) else {
                self.line_is_empty = false;
                return None;
            };
            at += length;
            (lines, line_end) = (lines + 1, at);
            self.after_return = chunk.get(at) == Some(&b'\r');
            self.line_is_empty = true;
            at += 1;
        }
    }
}
