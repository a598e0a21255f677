//! Marks against a byte-by-byte reading, on either kind of processor.

use super::*;

fn plainly(bytes: &[u8; MARKED_BYTES], is_hit: fn(u8) -> bool) -> u64 {
    let each = bytes.iter().enumerate();
    each.fold(0, |bits, (at, &byte)| bits | u64::from(is_hit(byte)) << at)
}

#[test]
fn each_byte_is_marked_for_what_it_is_wherever_it_stands() {
    for byte in 0..=u8::MAX {
        for at in 0..MARKED_BYTES {
            let mut bytes = [b'a'; MARKED_BYTES];
            bytes[at] = byte;
            bytes[MARKED_BYTES - 1 - at] = b':';
            let colons = plainly(&bytes, |byte| byte == b':');
            let controls = plainly(&bytes, |byte| byte.is_ascii_control());
            assert_eq!(
                marks(&bytes),
                Marks { colons, controls },
                "{byte:#x} at {at}"
            );
            assert_eq!(marks(&bytes).later(at).colons, colons >> at);
            #[cfg(target_arch = "x86_64")]
            if std::arch::is_x86_feature_detected!("avx2") {
                let controls = plainly(&bytes, |byte| byte.is_ascii_control() || byte > 0x7f);
                #[expect(unsafe_code, reason = "as in `fields`")]
                // SAFETY: the processor has AVX2, as was just asked.
                let wide = unsafe { avx2::marks(&bytes) };
                assert_eq!(wide, Marks { colons, controls }, "{byte:#x} at {at}");
            }
        }
    }
}
