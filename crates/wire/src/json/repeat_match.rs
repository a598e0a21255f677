//! What stands between the long strings of a list: as a rule what stood there one or two turns before.
//!
//! A conversation repeats `"},{"role":"user","content":"` between its texts. Once it was read token by token,
//! to find the same bytes again is to have read them.
//! Invariant: what is matched begins behind a string and ends in front of one, in an object of the same list; what is
//! passed over is, byte for byte, what was read.
//! Not here: reading token by token (`skip`).

use std::ops::Range;

/// Strings from this length on are worth a look at what follows them.
const LONG_BYTES: usize = 64;
/// What is longer is not kept: it holds text of its own.
const MATCH_BYTES: usize = 96;

/// The last two texts between long strings of one list: the one before the last long string, and the one before that.
#[derive(Default)]
pub(super) struct RepeatMatch {
    other: Range<usize>,
    /// Where the last long string ended.
    end: Option<usize>,
}

impl RepeatMatch {
    /// A string has been read. Gives where the next long one starts, if what is between is known.
    #[inline]
    pub(super) fn after(&mut self, text: &[u8], string: Range<usize>) -> Option<usize> {
        if string.len() < LONG_BYTES {
            return None;
        }
        let before = self.end.replace(string.end)?..string.start;
        if before.len() > MATCH_BYTES {
            return None;
        }
        let rest = text.get(string.end..)?;
        let repeats = |earlier: &Range<usize>| {
            let known = text
                .get(earlier.clone())
                .filter(|known| !known.is_empty())?;
            rest.starts_with(known).then(|| string.end + known.len())
        };
        // Two sides take turns as a rule.
        let start = repeats(&self.other).or_else(|| repeats(&before));
        self.other = before;
        start
    }
}
