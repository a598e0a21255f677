//! What a pattern of a tokenizer asks of a character.
//!
//! Unicode's general categories as `regex-syntax` has them; the build script writes the tables.
//! Not here: what follows from a class (`pieces`).

/// A class of characters; each character has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Class {
    /// None of the others: controls, what is not assigned.
    Other = 0,
    /// White space but no [`Self::Newline`].
    Blank = 1,
    /// `\r` or `\n`.
    Newline = 2,
    /// A letter, upper case or title case.
    Upper = 3,
    /// A letter, lower case.
    Lower = 4,
    /// A letter that is neither: of scripts without case, and modifiers.
    Caseless = 5,
    /// A mark.
    Mark = 6,
    /// A number.
    Number = 7,
    /// A sign of punctuation or a symbol.
    Sign = 8,
}

const ROWS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/rows.classes"));
const CHARACTERS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/characters.classes"));

impl Class {
    #[inline]
    pub(super) fn of(character: char) -> Self {
        let number = character as usize;
        let row = ROWS.get(number >> 8).copied().unwrap_or(0);
        let place = usize::from(row) << 8 | number & 0xFF;
        match CHARACTERS.get(place) {
            Some(1) => Self::Blank,
            Some(2) => Self::Newline,
            Some(3) => Self::Upper,
            Some(4) => Self::Lower,
            Some(5) => Self::Caseless,
            Some(6) => Self::Mark,
            Some(7) => Self::Number,
            Some(8) => Self::Sign,
            _ => Self::Other,
        }
    }

    #[inline]
    pub(super) const fn is_letter(self) -> bool {
        matches!(self, Self::Upper | Self::Lower | Self::Caseless)
    }

    #[inline]
    pub(super) const fn is_space(self) -> bool {
        matches!(self, Self::Blank | Self::Newline)
    }
}
