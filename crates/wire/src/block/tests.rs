//! Every byte at every place.

use super::*;

#[test]
fn every_special_byte_is_told_wherever_it_is_and_none_beyond_the_text() {
    for length in (0..=WIDE_BYTES).chain([WIDE_BYTES + 1, 2 * WIDE_BYTES]) {
        assert_eq!(told(&vec![0xe9; length]), [0; WORDS], "{length}");
        for at in 0..length {
            for byte in [b'"', b'\\', b'\n', 0, 0x1f] {
                let mut text = vec![b'a'; length];
                text[at] = byte;
                let mut words = [0; WORDS];
                if let Some(word) = words.get_mut(at / WORD_BYTES) {
                    *word = 1 << (at % WORD_BYTES);
                }
                assert_eq!(told(&text), words, "{byte:#x} at {at} of {length}");
            }
        }
    }
}

#[test]
fn what_is_text_is_told_as_the_library_tells_it_wherever_it_is_none() {
    // Above four looks of 32 bytes at once, with one more and some bytes behind them.
    for length in 0..200 {
        let plain = vec![b'a'; length];
        assert_eq!(as_text(&plain), str::from_utf8(&plain).ok(), "{length}");
        for at in 0..length {
            for bytes in [&[0x80][..], &[0xc3, 0xa9], &[0xff], &[0xf0, 0x9f, 0x98]] {
                let mut text = plain.clone();
                text.splice(at..length.min(at + bytes.len()), bytes.iter().copied());
                assert_eq!(
                    as_text(&text),
                    str::from_utf8(&text).ok(),
                    "{bytes:x?} at {at} of {length}"
                );
            }
        }
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

fn told(text: &[u8]) -> [u64; WORDS] {
    let mut words = [u64::MAX; WORDS];
    specials(text, &mut words);
    words
}
