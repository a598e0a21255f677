//! Masks of many bytes at once are those made one by one.

use super::super::processor::{Level, Processor, Work};
use super::{BYTES, Masks};

struct Making<'t>(&'t [u8; BYTES]);

impl Work for Making<'_> {
    type Output = Masks;

    #[inline(always)]
    fn run<L: Level>(self, level: L) -> Masks {
        level.masks(self.0)
    }
}

#[test]
fn every_byte_at_every_place_has_its_bits() {
    for byte in 0..=255u8 {
        for at in 0..BYTES {
            let mut bytes = [b'x'; BYTES];
            bytes[at] = byte;
            let expected = Masks::one_by_one(&bytes);
            assert_eq!(Masks::of(&bytes), expected, "{byte} at {at}");
            let at_hand = Processor::at_hand().run(Making(&bytes));
            assert_eq!(at_hand, expected, "{byte} at {at}");
        }
    }
}
