//! Counts server-sent events by their boundaries (an empty line), without decoding them.
//!
//! Invariant: the count is the same wherever the bytes are cut; comments and empty blocks count
//! only when they hold at least one line.
//! Not here: the text of an event.

#[cfg(test)]
mod tests;

/// Counts the events of one stream.
#[derive(Debug, Default, Clone, Copy)]
pub struct EventCounter {
    /// The current line holds a byte other than a line end.
    line_filled: bool,
    /// The current event holds a line.
    event_filled: bool,
}

impl EventCounter {
    /// Takes the next bytes; the number of events that ended in them.
    pub fn feed(&mut self, bytes: &[u8]) -> u64 {
        let (mut ended, mut line_start) = (0, 0);
        for newline in memchr::memchr_iter(b'\n', bytes) {
            self.line_filled |= filled(&bytes[line_start..newline]);
            if self.line_filled {
                self.event_filled = true;
            } else if self.event_filled {
                ended += 1;
                self.event_filled = false;
            }
            self.line_filled = false;
            line_start = newline + 1;
        }
        self.line_filled |= filled(&bytes[line_start..]);
        ended
    }
}

/// Whether the part of a line holds anything but a carriage return.
const fn filled(part: &[u8]) -> bool {
    !matches!(part, [] | [b'\r'])
}
