//! Text of a JSON body, with the places at which it can be made new.
//!
//! A place holds a word, a number or a name that another one of the same length may stand for: so a body that was never
//! sent costs a copy and some hundred small writes, and not the making of its sentences.
//! Invariant: what is said is escaped for a JSON string; a text that is renewed has the same length and the same JSON.
//! Not here: what is said (`author`), which words there are (`words`).

use experiment::random::Rng;

use super::words::{Class, pick, words};

#[cfg(test)]
mod tests;

/// What may stand at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Another word of the class and length.
    Word(Class),
    /// Syllables that mean nothing: names that no vocabulary has.
    Name,
    /// Decimal digits, the first of them not 0.
    Digits,
    /// Hexadecimal digits.
    Hex,
}

/// A place that can be made new.
#[derive(Debug, Clone, Copy)]
struct Slot {
    at: u32,
    len: u8,
    kind: Kind,
}

/// Bytes that are written once and renewed often.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
}

const CONSONANTS: &[u8; 16] = b"bcdfghklmnprstvz";
const VOWELS: &[u8; 4] = b"aeio";
const HEX: &[u8; 16] = b"0123456789abcdef";

impl Text {
    pub(super) const fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Places that can be made new.
    pub(super) const fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Puts in JSON as it is.
    pub(super) fn json(&mut self, json: &str) {
        self.bytes.extend_from_slice(json.as_bytes());
    }

    /// Says something within a JSON string.
    pub(super) fn say(&mut self, said: &str) {
        for byte in said.bytes() {
            let escaped = match byte {
                b'"' => b'"',
                b'\\' => b'\\',
                b'\n' => b'n',
                b'\t' => b't',
                _ => {
                    debug_assert!(byte >= b' ', "no other control character is said");
                    self.bytes.push(byte);
                    continue;
                }
            };
            self.bytes.extend_from_slice(&[b'\\', escaped]);
        }
    }

    /// Says a word of ASCII letters and digits at whose place another may stand.
    pub(super) fn slot(&mut self, kind: Kind, word: &str) {
        debug_assert!(word.bytes().all(|byte| byte.is_ascii_alphanumeric()));
        // What is longer than any word, or lies beyond any body, stays as it is.
        if let (Ok(at), Ok(len)) = (u32::try_from(self.bytes.len()), u8::try_from(word.len())) {
            self.slots.push(Slot { at, len, kind });
        }
        self.json(word);
    }

    /// Says `len` characters of `kind`, which is no word, drawn from `rng`.
    pub(super) fn drawn(&mut self, kind: Kind, len: usize, rng: &mut Rng) {
        let from = self.bytes.len();
        self.json(&"0".repeat(len));
        if let Some(place) = self.bytes.get_mut(from..) {
            draw(kind, place, rng);
        }
        if let (Ok(at), Ok(len)) = (u32::try_from(from), u8::try_from(len)) {
            self.slots.push(Slot { at, len, kind });
        }
    }

    /// Goes on with another text.
    pub(super) fn append(&mut self, other: &Self) {
        let from = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.bytes.extend_from_slice(&other.bytes);
        let moved = |slot: &Slot| Slot {
            at: slot.at.saturating_add(from),
            ..*slot
        };
        self.slots.extend(other.slots.iter().map(moved));
    }

    /// The same, to be renewed nowhere: what is named at two places stays the same name.
    pub(super) fn fixed(mut self) -> Self {
        self.slots.clear();
        self
    }

    /// Makes what was said since `from` exactly `len` bytes long: cuts it, in no letter and no escape, and fills up with
    /// full stops.
    pub(super) fn fit(&mut self, from: usize, len: usize) {
        let end = from + len;
        if self.bytes.len() > end {
            let mut cut = end;
            while cut > from && self.bytes[cut] & 0xc0 == 0x80 {
                cut -= 1;
            }
            let said = &self.bytes[from..cut];
            let slashes = said.iter().rev().take_while(|&&byte| byte == b'\\').count();
            self.bytes.truncate(cut - slashes % 2);
            let kept = self.bytes.len();
            self.slots
                .retain(|slot| slot.at as usize + usize::from(slot.len) <= kept);
        }
        self.bytes.resize(end, b'.');
    }

    /// The same with something else at every place.
    pub(super) fn renewed(&self, rng: &mut Rng) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for slot in &self.slots {
            let from = slot.at as usize;
            if let Some(place) = bytes.get_mut(from..from + usize::from(slot.len)) {
                draw(slot.kind, place, rng);
            }
        }
        bytes
    }
}

/// Writes something of `kind` over the whole of `place`.
#[inline]
fn draw(kind: Kind, place: &mut [u8], rng: &mut Rng) {
    let mut bits = rng.bits();
    match kind {
        Kind::Word(class) => {
            let same = words(class, place.len());
            if !same.is_empty() {
                place.copy_from_slice(pick(same, bits).as_bytes());
            }
        }
        Kind::Name => {
            for (at, byte) in place.iter_mut().enumerate() {
                let (letters, width) = match at % 2 {
                    0 => (&CONSONANTS[..], 4),
                    _ => (&VOWELS[..], 2),
                };
                *byte = letters[bits as usize % letters.len()];
                bits = bits.rotate_right(width);
            }
        }
        Kind::Digits => {
            for (at, byte) in place.iter_mut().enumerate() {
                let least = u64::from(at == 0);
                let digit = least + (((bits & 0xff) * (10 - least)) >> 8);
                *byte = HEX[digit as usize];
                bits = bits.rotate_right(8);
            }
        }
        Kind::Hex => {
            for byte in place {
                *byte = HEX[bits as usize % 16];
                bits = bits.rotate_right(4);
            }
        }
    }
}
