//! Cuts a stream into server-sent events at their boundaries (an empty line), without decoding them.
//!
//! Invariant: events are the same wherever the bytes are cut; comments and empty blocks count only when they hold at
//! least one line. Of an event that came in pieces at most [`EVENT_BYTES`] are kept, and its rest is passed over.
//! Not here: what an event says (`event`).

#[cfg(test)]
mod tests;

/// What is kept of one event that came in pieces.
pub(super) const EVENT_BYTES: usize = 256 << 10;

/// The events of one stream after another.
#[derive(Debug, Default, Clone)]
pub struct Events {
    /// The event under way, as far as it came in earlier pieces.
    carry: Vec<u8>,
    /// The current line holds a byte other than a line end.
    line_filled: bool,
    /// The current event holds a line.
    event_filled: bool,
}

impl Events {
    /// Ready for the next stream.
    pub fn reset(&mut self) {
        self.carry.clear();
        (self.line_filled, self.event_filled) = (false, false);
    }

    /// Takes the next bytes; `on_event` is handed each event that ended in them, perhaps with line ends behind it.
    pub fn feed(&mut self, bytes: &[u8], on_event: &mut impl FnMut(&[u8])) {
        let (mut event_start, mut line_start) = (0, 0);
        for newline in memchr::memchr_iter(b'\n', bytes) {
            self.line_filled |= filled(&bytes[line_start..newline]);
            if self.line_filled {
                self.event_filled = true;
            } else {
                if self.event_filled {
                    self.end(&bytes[event_start..line_start], on_event);
                }
                self.carry.clear();
                self.event_filled = false;
                event_start = newline + 1;
            }
            self.line_filled = false;
            line_start = newline + 1;
        }
        self.line_filled |= filled(&bytes[line_start..]);
        self.keep(&bytes[event_start..]);
    }

    fn end(&mut self, last: &[u8], on_event: &mut impl FnMut(&[u8])) {
        if self.carry.is_empty() {
            on_event(last);
        } else {
            self.keep(last);
            on_event(&self.carry);
        }
    }

    fn keep(&mut self, part: &[u8]) {
        let room = EVENT_BYTES - self.carry.len();
        self.carry.extend_from_slice(&part[..part.len().min(room)]);
    }
}

/// Whether the part of a line holds anything but a carriage return.
const fn filled(part: &[u8]) -> bool {
    !matches!(part, [] | [b'\r'])
}
