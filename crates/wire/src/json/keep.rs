//! A few bytes kept in place; more than usual go to the heap.
//!
//! Invariant: the bytes lie in `inline` exactly as long as `spill` is empty.
//! Not here: what is kept and how much of it may be (`found`).

use std::ops::Range;

/// The bytes of a model name and some counts, or of most usage objects.
const INLINE_BYTES: usize = 256;

#[derive(Clone, Debug)]
pub(super) struct Kept {
    inline: [u8; INLINE_BYTES],
    len: usize,
    spill: Vec<u8>,
}

impl Kept {
    pub(super) const fn new() -> Self {
        Self {
            inline: [0; INLINE_BYTES],
            len: 0,
            spill: Vec::new(),
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn bytes(&self) -> &[u8] {
        if self.spill.is_empty() {
            self.inline.get(..self.len).unwrap_or_default()
        } else {
            &self.spill
        }
    }

    pub(super) fn extend(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if self.spill.is_empty() {
            if let Some(room) = self.inline.get_mut(self.len..end) {
                room.copy_from_slice(bytes);
                self.len = end;
                return;
            }
            self.spill.reserve(end * 2);
            self.spill
                .extend_from_slice(self.inline.get(..self.len).unwrap_or_default());
        }
        self.spill.extend_from_slice(bytes);
        self.len = end;
    }

    /// Forgets these bytes; later ones move up.
    pub(super) fn remove(&mut self, gone: Range<usize>) {
        if gone.is_empty() || gone.end > self.len {
            return;
        }
        if self.spill.is_empty() {
            self.inline.copy_within(gone.end..self.len, gone.start);
        } else {
            self.spill.drain(gone.clone());
        }
        self.len -= gone.len();
    }
}
