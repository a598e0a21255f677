//! Names in lower case.
//!
//! Not here: which names need it (`head`).

/// Writes a token in lower case, eight bytes at a time; the last eight may overlap the ones before. It is
/// read from where it came from: the fresh copy would wait for its own stores.
pub(super) fn write_lower(to: &mut [u8], token: &[u8]) {
    if token.len() < 8 {
        to.make_ascii_lowercase();
        return;
    }
    let words = token.as_chunks::<8>().0.iter();
    for (to, word) in to.as_chunks_mut::<8>().0.iter_mut().zip(words) {
        *to = lower_word(*word);
    }
    if let (Some(to), Some(word)) = (to.last_chunk_mut::<8>(), token.last_chunk::<8>()) {
        *to = lower_word(*word);
    }
}

/// Lower-cases eight ASCII bytes. Each is below 0x80, so no sum carries into the next;
/// a byte above keeps its high bit and so never becomes ASCII.
fn lower_word(word: [u8; 8]) -> [u8; 8] {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let bytes = u64::from_ne_bytes(word);
    let from_a = bytes.wrapping_add(EACH * u64::from(0x80 - b'A'));
    let past_z = bytes.wrapping_add(EACH * u64::from(0x7f - b'Z'));
    let upper = (from_a ^ past_z) & (EACH * 0x80);
    (bytes | upper >> 2).to_ne_bytes()
}
