//! Every byte at every place.

use super::*;

#[test]
fn the_first_special_byte_of_a_long_text_is_found_wherever_it_is() {
    for length in 0..300 {
        let text = vec![b'a'; length];
        assert_eq!(special_at(&text), length);
        for at in 0..length {
            for byte in [b'"', b'\\', b'\n', 0, 0x1f] {
                let mut text = text.clone();
                text[at] = byte;
                text[length - 1] = if at + 1 == length { byte } else { b'"' };
                assert_eq!(special_at(&text), at, "{byte:#x} of {length}");
            }
        }
        assert_eq!(special_at(&vec![0xe9; length]), length, "beyond ASCII");
    }
}

#[test]
fn every_byte_at_every_place_is_told() {
    for byte in 0..=u8::MAX {
        for at in 0..BLOCK_BYTES {
            let mut block = [b'a'; BLOCK_BYTES];
            block[at] = byte;
            let hit = byte < b' ' || byte == b'"' || byte == b'\\';
            assert_eq!(special(&block), u32::from(hit) << at, "{byte:#x} at {at}");
            let hit = hit || byte > 0x7f;
            assert_eq!(
                special_or_high(&block),
                u32::from(hit) << at,
                "{byte:#x} at {at}"
            );
        }
    }
}
