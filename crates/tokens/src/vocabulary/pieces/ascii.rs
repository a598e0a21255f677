//! The pieces of ASCII text, up to 64 bytes at a time, by masks of its bytes.
//!
//! A window begins where a piece begins, and a pattern looks at nothing before that. A start of a piece is told by the
//! byte itself, by what stands before it in the window and by the byte behind it; where that is not enough (a
//! contraction, a letter beyond ASCII, the end of the window), nothing is told from there on.
//! Not here: those (`super`), how masks are made (`window`).

use super::super::processor::Level;
use super::super::window::{self, Masks};
use super::Grammar;
use crate::work;

pub(super) const BYTES: usize = window::BYTES;
/// With those behind the window that are handed on with the last piece in it.
const SEEN: usize = BYTES + 16;

/// Tells where each of the next pieces begins and ends, of those that are sure, and the 16 bytes from its beginning on; where
/// the last of them ends.
#[inline(always)]
pub(super) fn pieces<L: Level>(
    level: L,
    grammar: Grammar,
    text: &[u8],
    at: usize,
    mut tell: impl FnMut(usize, usize, &[u8; 16]),
) -> usize {
    work::note(SEEN);
    let rest = text.get(at..).unwrap_or_default();
    let mut ending;
    let (seen, length) = match rest.first_chunk::<SEEN>() {
        Some(seen) => (seen, BYTES),
        None => {
            ending = [0; SEEN];
            for (to, from) in ending.iter_mut().zip(rest) {
                *to = *from;
            }
            (&ending, rest.len().min(BYTES))
        }
    };
    let Some(window) = seen.first_chunk() else {
        return at;
    };
    // Elsewhere a control character is a sign.
    if grammar == Grammar::DeepSeek3 && rest.iter().take(length).any(is_control) {
        return at;
    }
    let mut starts = starts(grammar, &level.masks(window), length) & !1;
    let mut from = 0;
    while starts != 0 {
        let to = starts.trailing_zeros() as usize;
        starts &= starts - 1;
        if let Some(bytes) = seen.get(from..).and_then(<[u8]>::first_chunk) {
            tell(at + from, at + to, bytes);
        }
        from = to;
    }
    at + from
}

fn is_control(byte: &u8) -> bool {
    byte.is_ascii_control() && !matches!(byte, b'\t'..=b'\r')
}

/// One bit for each byte at which a piece begins, as far as that is sure.
#[inline(always)]
fn starts(grammar: Grammar, masks: &Masks, length: usize) -> u64 {
    let Masks {
        letter,
        upper,
        digit,
        space,
        blank,
        newline,
        apostrophe,
        slash,
        beyond,
    } = *masks;
    let white = blank | newline;
    let sign = !(letter | digit | white | beyond);
    let before = |mask: u64| mask << 1;
    let behind = |mask: u64| mask >> 1;

    // A run of signs begins a piece; a space before it belongs to it. One sign may belong to the letters behind it.
    let signs = sign & !before(sign) & !before(space);
    let word = letter & !before(letter);
    let with_letters = (blank | signs) & behind(word);
    let mut starts = signs | with_letters | (word & !before(with_letters));
    if grammar == Grammar::O200k {
        starts |= upper & before(letter & !upper);
    }

    if grammar == Grammar::Qwen2 {
        starts |= digit;
    } else {
        let fourth = digit & (digit << 1) & (digit << 2) & (digit << 3);
        let mut group = digit & !before(digit);
        while group != 0 {
            starts |= group;
            group = (group << 3) & fourth;
        }
    }

    // White space: what follows its last line end, and the last of it, which belongs to what follows. Line ends right
    // behind signs are theirs. Before a number DeepSeek's pattern cuts none off.
    let goes_on = match grammar {
        Grammar::DeepSeek3 => white | digit,
        _ => white,
    };
    starts |= blank & (!before(white) | before(newline) | !behind(goes_on));
    starts |= newline & !before(white) & !before(sign);

    // From where on nothing is sure.
    let indent = blank & before(newline);
    let mut unsure = beyond;
    // A byte whose own start is not sure; what is before it is.
    let contraction = apostrophe & behind(letter);
    let mut doubtful = match grammar {
        Grammar::O200k => (contraction & before(letter)) | (slash & before(newline)),
        Grammar::DeepSeek3 => 0,
        _ => contraction,
    };
    // An indented line that turns out to be empty.
    if indent.wrapping_add(blank) & !blank & newline != 0 {
        doubtful |= indent;
    }
    unsure |= before(doubtful);
    let known = (unsure.trailing_zeros() as usize).min(length);
    // White space at the end may go on; and the byte behind each has to be known.
    let known = if known == 0 {
        0
    } else {
        known - (white << (BYTES - known)).leading_ones() as usize
    };
    let sure = known.saturating_sub(1);
    starts & (1u64 << sure).wrapping_sub(1)
}
