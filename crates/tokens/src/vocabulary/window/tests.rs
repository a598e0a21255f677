//! Masks by SSE2 are those made one by one.

use super::{BYTES, Masks};

#[test]
fn every_byte_at_every_place_has_its_bits() {
    for byte in 0..=255u8 {
        for at in 0..BYTES {
            let mut bytes = [b'x'; BYTES];
            bytes[at] = byte;
            assert_eq!(
                Masks::of(&bytes),
                Masks::one_by_one(&bytes),
                "{byte} at {at}"
            );
        }
    }
}
