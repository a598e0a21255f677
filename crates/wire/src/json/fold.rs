//! Names that some readers take for one another, because they differ only in the case of their letters.
//!
//! Go's `encoding/json` matches the names of members by Unicode's simple folding, and readers of Java and .NET
//! can be told to. A second spelling beside the known one is then a second value for the same member.
//! Invariant: a known name is lower-case ASCII; what is not, and is not equal to one, may be a spelling of it.
//! Not here: which names are known (`interest`), the refusal (`capture`, `call`).

use std::fmt::{self, Write};

/// Whether a reader that ignores case takes this name, without escapes, for the known one, which is ASCII.
pub fn is_spelling(name: &[u8], known: &[u8]) -> bool {
    let after = known.iter().try_fold(name, |rest, letter| {
        after_letter(rest, letter.to_ascii_lowercase())
    });
    after.is_some_and(<[u8]>::is_empty)
}

/// What follows a letter in any of the ways to write it: those of the simple folding of Unicode, and the
/// two letters I of Turkish, which Java's comparison without case equates with `i`.
fn after_letter(text: &[u8], letter: u8) -> Option<&[u8]> {
    match (letter, text) {
        (_, [first, after @ ..]) if first.to_ascii_lowercase() == letter => Some(after),
        // KELVIN SIGN; LONG S; dotted capital and dotless small I.
        (b'k', [0xe2, 0x84, 0xaa, after @ ..])
        | (b's', [0xc5, 0xbf, after @ ..])
        | (b'i', [0xc4, 0xb0 | 0xb1, after @ ..]) => Some(after),
        _ => None,
    }
}

/// The most bytes that one spelling of a known name has more than the name itself.
pub(super) const fn more_bytes(known: &str) -> usize {
    let mut more = 0;
    let mut rest = known.as_bytes();
    while let Some((letter, after)) = rest.split_first() {
        more += match *letter {
            b'k' => 2,
            b's' | b'i' => 1,
            _ => 0,
        };
        rest = after;
    }
    more
}

/// Whether a name holds no capital letter and nothing but ASCII: it is no other spelling of anything.
#[inline]
pub(super) fn is_lower(name: &[u8]) -> bool {
    let odd = |byte: &u8| byte.is_ascii_uppercase() | !byte.is_ascii();
    !name.iter().fold(false, |seen, byte| seen | odd(byte))
}

/// A spelling of a known name, as it came.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Spelling {
    bytes: [u8; Spelling::LIMIT_BYTES],
    length: u8,
}

impl Spelling {
    /// No spelling of a known name is longer.
    pub(super) const LIMIT_BYTES: usize = 40;

    pub(crate) fn of(name: &[u8]) -> Self {
        let mut bytes = [0; Self::LIMIT_BYTES];
        let length = name.len().min(bytes.len());
        bytes
            .iter_mut()
            .zip(name)
            .for_each(|(to, from)| *to = *from);
        Self {
            bytes,
            length: u8::try_from(length).unwrap_or_default(),
        }
    }
}

impl fmt::Display for Spelling {
    /// Letters that look like others are shown by their numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes.get(..usize::from(self.length));
        let text = String::from_utf8_lossy(bytes.unwrap_or_default());
        text.chars().try_for_each(|c| match c {
            ' '..='~' => f.write_char(c),
            _ => write!(f, "{}", c.escape_unicode()),
        })
    }
}

impl fmt::Debug for Spelling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{self}`")
    }
}

#[cfg(test)]
mod tests;
