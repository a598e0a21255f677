//! Blocks against a byte-by-byte reading.

use super::*;
use crate::block::BLOCK_BYTES;

#[test]
fn each_byte_is_of_the_same_class_as_byte_by_byte() {
    for byte in 0..=u8::MAX {
        for at in 0..BLOCK_BYTES {
            let mut block = [b'a'; BLOCK_BYTES];
            block[at] = byte;
            assert_eq!(classes(&block), plainly(&block), "{byte:#x} at {at}");
        }
    }
}
