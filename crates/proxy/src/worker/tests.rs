//! Ids by example.

use super::hex;

#[test]
fn the_digits_of_half_a_word_are_what_the_standard_library_prints() {
    let halves = (0..=u16::MAX).map(|n| u32::from(n).wrapping_mul(0x0001_0001) ^ 0x9E37_79B9);
    for half in halves.chain([0, 1, u32::MAX, 0x0123_4567, 0x89AB_CDEF]) {
        assert_eq!(hex(half), format!("{half:08x}").as_bytes(), "{half}");
    }
}
