//! A place in a body that is good by the grammar, for who walks through it.
//!
//! Invariant: it never goes back, and at the end of the text it stays there.
//! Not here: what is looked for (`stored`, `besides`), the grammar (`json`).

use memchr::memchr2;

/// A place in a text that is good by the grammar.
pub(super) struct Cursor<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
}

impl<'a> Cursor<'a> {
    /// Goes past a value, and gives its bytes.
    pub(super) fn value(&mut self) -> &'a [u8] {
        let first = self.next();
        let from = self.at;
        match first {
            Some(b'"') => {
                self.string();
            }
            Some(b'{' | b'[') => self.container(),
            _ => self.scalar(),
        }
        self.text.get(from..self.at).unwrap_or_default()
    }

    /// Goes past a container without a look.
    pub(super) fn container(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    /// Goes past a number or a word.
    pub(super) fn scalar(&mut self) {
        let is_over = |byte: &u8| matches!(byte, b',' | b'}' | b']') || *byte <= b' ';
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(is_over).unwrap_or(rest.len());
        self.at += length.max(1);
    }

    /// Goes past a string, and gives what stands between its quotes.
    pub(super) fn string(&mut self) -> &'a [u8] {
        let from = self.at + 1;
        let mut at = from;
        loop {
            let rest = self.text.get(at..).unwrap_or_default();
            let Some(found) = memchr2(b'"', b'\\', rest) else {
                self.at = self.text.len();
                return self.text.get(from..).unwrap_or_default();
            };
            at += found;
            if self.text.get(at) == Some(&b'"') {
                self.at = at + 1;
                return self.text.get(from..at).unwrap_or_default();
            }
            at += 2;
        }
    }

    /// The next byte that is not blank, and goes to it.
    pub(super) fn next(&mut self) -> Option<u8> {
        loop {
            match self.text.get(self.at)? {
                b' ' | b'\t' | b'\r' | b'\n' => self.at += 1,
                byte => return Some(*byte),
            }
        }
    }
}
