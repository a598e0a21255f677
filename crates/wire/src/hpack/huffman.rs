//! Huffman's code of HPACK (RFC 7541, appendix B), read bit by bit.
//!
//! The code is canonical: it follows from the lengths of the symbols' codes alone.
//! Not here: what the text means (`field`).

/// The bits read of a symbol that is not whole yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bits {
    code: u32,
    length: usize,
}

/// The symbol that ends a text, which never stands in one.
const END: usize = 256;
const LONGEST: usize = 30;

impl Bits {
    /// Takes the next bit. Gives the symbol that it ends; none where it is no byte.
    #[inline]
    pub(super) fn next(&mut self, bit: bool) -> Option<u8> {
        static CODE: Code = code();
        self.code = self.code << 1 | u32::from(bit);
        self.length += 1;
        let first = CODE.first.get(self.length)?;
        let nth = self.code.checked_sub(*first)?;
        if nth >= *CODE.count.get(self.length)? {
            return None;
        }
        let at = CODE.place.get(self.length)?.checked_add(nth)?;
        *self = Self::default();
        let symbol = CODE.symbols.get(usize::try_from(at).ok()?)?;
        u8::try_from(*symbol).ok()
    }
}

/// The code, by the length of its words.
struct Code {
    /// The first word of each length.
    first: [u32; LONGEST + 1],
    /// How many words have that length.
    count: [u32; LONGEST + 1],
    /// Where the symbols of that length begin.
    place: [u32; LONGEST + 1],
    symbols: [u16; END + 1],
}

#[expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "evaluated when compiling, where a fault is a compile error"
)]
const fn code() -> Code {
    let mut code = Code {
        first: [0; LONGEST + 1],
        count: [0; LONGEST + 1],
        place: [0; LONGEST + 1],
        symbols: [0; END + 1],
    };
    let (mut length, mut next, mut place) = (1, 0_u32, 0);
    while length <= LONGEST {
        next <<= 1;
        code.first[length] = next;
        code.place[length] = place;
        let mut symbol = 0;
        while symbol <= END {
            if LENGTHS[symbol] as usize == length {
                code.symbols[place as usize] = symbol as u16;
                code.count[length] += 1;
                place += 1;
                next += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    assert!(next == 1 << LONGEST, "the code is not complete");
    code
}

/// The length of each symbol's code in bits.
const LENGTHS: [u8; END + 1] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

#[cfg(test)]
pub(super) mod tests {
    //! The words of the code, for writing texts in it.

    use super::*;

    /// A text in Huffman's code, padded with ones.
    pub(in super::super) fn encoded(text: &[u8]) -> Vec<u8> {
        let code = code();
        let mut bits = Vec::new();
        for byte in text {
            let length = usize::from(LENGTHS[usize::from(*byte)]);
            let place = code.symbols.iter().position(|s| *s == u16::from(*byte));
            let nth = u32::try_from(place.unwrap()).unwrap() - code.place[length];
            let word = code.first[length] + nth;
            bits.extend((0..length).rev().map(|bit| word >> bit & 1 == 1));
        }
        while bits.len() % 8 != 0 {
            bits.push(true);
        }
        let byte = |bits: &[bool]| bits.iter().fold(0, |byte, bit| byte << 1 | u8::from(*bit));
        bits.chunks(8).map(byte).collect()
    }

    #[test]
    fn words_are_those_of_the_standard() {
        // RFC 7541, C.4.1 and C.6.1.
        let host = [
            0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
        ];
        assert_eq!(encoded(b"www.example.com"), host);
        assert_eq!(encoded(b"private"), [0xae, 0xc3, 0x77, 0x1a, 0x4b]);
    }

    #[test]
    fn every_byte_is_read_back() {
        let all: Vec<u8> = (0..=255).collect();
        let mut bits = Bits::default();
        let coded = encoded(&all);
        let each = coded
            .iter()
            .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1));
        let read: Vec<u8> = each.filter_map(|bit| bits.next(bit)).collect();
        assert_eq!(read, all);
    }
}
