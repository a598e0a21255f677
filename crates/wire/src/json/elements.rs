//! What a list holds, counted as its bytes come.
//!
//! Invariant: the counts are the same for every way to cut the bytes. The bytes are those of a list by the
//! grammar; the scanner that gives them refuses all others.
//! Not here: what a count means (`call`).

use memchr::memchr2;

/// The values directly in a list, and the numbers one level deeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements {
    /// Values that are no numbers.
    pub others: u64,
    /// Of these, strings.
    pub strings: u64,
    /// Numbers.
    pub numbers: u64,
    /// Numbers in a list or an object that stands directly in the list.
    pub inner_numbers: u64,
    depth: u32,
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Between,
    Number,
    String,
    Escape,
}

impl Elements {
    /// No bytes yet.
    pub(super) const NONE: Self = Self {
        others: 0,
        strings: 0,
        numbers: 0,
        inner_numbers: 0,
        depth: 0,
        place: Place::Between,
    };

    /// Counts in a whole list.
    pub fn of(list: &[u8]) -> Self {
        let mut elements = Self::NONE;
        elements.read(list);
        elements
    }

    /// Goes on with the next bytes of the list.
    pub fn read(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        loop {
            rest = match self.place {
                Place::String => match memchr2(b'"', b'\\', rest) {
                    None => return,
                    Some(at) => {
                        let is_end = rest.get(at) == Some(&b'"');
                        self.place = if is_end {
                            Place::Between
                        } else {
                            Place::Escape
                        };
                        rest.get(at + 1..).unwrap_or_default()
                    }
                },
                Place::Between | Place::Number | Place::Escape => match rest.split_first() {
                    None => return,
                    Some((byte, after)) => {
                        self.byte(*byte);
                        after
                    }
                },
            };
        }
    }

    fn byte(&mut self, byte: u8) {
        let in_number = self.place == Place::Number;
        match (self.place, byte) {
            (Place::Escape, _) => self.place = Place::String,
            (_, b'"') => {
                self.strings += u64::from(self.depth == 1);
                self.other();
                self.place = Place::String;
            }
            (_, b'[' | b'{') => {
                self.other();
                self.depth += 1;
            }
            (_, b']' | b'}') => {
                self.depth = self.depth.saturating_sub(1);
                self.place = Place::Between;
            }
            (_, b',') => self.place = Place::Between,
            (Place::Between, b'-' | b'0'..=b'9') => {
                self.place = Place::Number;
                self.numbers += u64::from(self.depth == 1);
                self.inner_numbers += u64::from(self.depth == 2);
            }
            // The first letters of `true`, `false` and `null`; no literal and no number holds another.
            (_, b't' | b'f' | b'n') if !in_number => self.other(),
            _ => {}
        }
    }

    /// A value begins that is no number.
    fn other(&mut self) {
        self.others += u64::from(self.depth == 1);
    }
}

#[cfg(test)]
mod tests;
