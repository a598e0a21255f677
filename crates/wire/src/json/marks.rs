//! The way through a text's strings: from each quote, backslash or control character to the next.
//!
//! The text is looked at once, half a kilobyte at a time; most strings end at a bit that is known already.
//! Invariant: what is known of a place does not depend on where the look began.
//! Not here: the look itself (`block`), what stands between strings (`skip`).

use super::token::escape_length;
use crate::block::{BLOCK_BYTES, WIDE_BYTES, WORD_BYTES, WORDS, special, specials};

/// What is known of one text, from some place on.
#[derive(Debug)]
pub(super) struct Marks {
    /// Where in the text the first word's first byte is.
    from: usize,
    words: [u64; WORDS],
}

impl Marks {
    /// Knows nothing so far.
    pub(super) const fn new() -> Self {
        Self {
            from: usize::MAX / 2,
            words: [0; WORDS],
        }
    }

    /// Where a string ends whose first byte after the quote is at `from`: the place after its closing quote.
    ///
    /// # Errors
    /// The place to go on byte by byte, still inside: the text's end, or what needs a closer look.
    #[inline(always)]
    pub(super) fn string_end(&mut self, text: &[u8], from: usize) -> Result<usize, usize> {
        let at = self.next(text, from);
        if text.get(at) == Some(&b'"') {
            return Ok(at + 1);
        }
        self.end_after_escapes(text, at)
    }

    #[inline(never)]
    fn end_after_escapes(&mut self, text: &[u8], from: usize) -> Result<usize, usize> {
        let mut at = from;
        loop {
            match text.get(at) {
                Some(b'"') => return Ok(at + 1),
                Some(b'\\') => {
                    let after = at + escape_length(text, at).ok_or(at)?;
                    at = self.next(text, after);
                }
                _ => return Err(at),
            }
        }
    }

    /// Where the first quote, backslash or control character is, at or after `at`; the text's length where
    /// there is none.
    #[inline(always)]
    pub(super) fn next(&mut self, text: &[u8], at: usize) -> usize {
        let place = at.wrapping_sub(self.from);
        if let Some(word) = self.words.get(place / WORD_BYTES) {
            let rest = word >> (place % WORD_BYTES);
            if rest != 0 {
                return at + rest.trailing_zeros() as usize;
            }
        }
        self.search(text, at)
    }

    /// The same where the word of that place, if it is known, tells of nothing more.
    #[inline(never)]
    fn search(&mut self, text: &[u8], at: usize) -> usize {
        let place = at.wrapping_sub(self.from);
        if place >= WIDE_BYTES {
            return self.look_on(text, at);
        }
        match self.first_from(place / WORD_BYTES + 1) {
            Some(at) => at,
            None => self.look_on(text, self.from + WIDE_BYTES),
        }
    }

    #[inline]
    fn first_from(&self, word: usize) -> Option<usize> {
        let mut word = word;
        loop {
            let bits = *self.words.get(word)?;
            if bits != 0 {
                return Some(self.from + word * WORD_BYTES + bits.trailing_zeros() as usize);
            }
            word += 1;
        }
    }

    /// Looks at the text from this place on, and further until there is something.
    #[inline(never)]
    fn look_on(&mut self, text: &[u8], from: usize) -> usize {
        self.from = from;
        while let Some(rest) = text.get(self.from..).filter(|rest| !rest.is_empty()) {
            if specials(rest, &mut self.words)
                && let Some(at) = self.first_from(0)
            {
                return at;
            }
            self.from += WIDE_BYTES;
        }
        // Nothing is known of where it stands now.
        self.words = [0; WORDS];
        text.len()
    }
}

/// Where a string ends whose first byte after the quote is at `from`, for a reader of one string.
///
/// # Errors
/// As [`Marks::string_end`].
#[inline]
pub(super) fn string_end(chunk: &[u8], from: usize) -> Result<usize, usize> {
    if let Some(block) = chunk
        .get(from..)
        .and_then(<[u8]>::first_chunk::<BLOCK_BYTES>)
    {
        let hits = special(block);
        if hits != 0 {
            let at = from + hits.trailing_zeros() as usize;
            if chunk.get(at) == Some(&b'"') {
                return Ok(at + 1);
            }
        }
    }
    Marks::new().string_end(chunk, from)
}
