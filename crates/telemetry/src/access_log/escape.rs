//! Text as the inside of a JSON string.
//!
//! Invariant: whatever the text, nothing in it ends the string or the line.
//! Not here: keys and quotes (`line`, `name_cache`).

/// Whether nothing in a text must be escaped.
#[inline]
pub(super) fn is_plain(text: &[u8]) -> bool {
    let odd = if let Some(last) = text.last_chunk() {
        // The last word may overlap the one before it.
        let (words, _) = text.as_chunks();
        let each = words.iter().map(|word| odd_in(*word));
        odd_in(*last) | each.fold(0, |odd, word| odd | word)
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        let ([a, b, c, d], [w, x, y, z]) = (*first, *last);
        odd_in([a, b, c, d, w, x, y, z])
    } else {
        let names_cached = |odd, b: &u8| odd | odd_in([*b; 8]);
        text.iter().fold(0, names_cached)
    };
    odd == 0
}

/// Appends a text, each byte escaped that must be.
pub(super) fn escape(out: &mut Vec<u8>, text: &[u8]) {
    for b in text {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *b]),
            ..0x20 | 0x7f => {
                let hex = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(hex[usize::from(b >> 4)]);
                out.push(hex[usize::from(b & 15)]);
            }
            plain => out.push(*plain),
        }
    }
}

/// Not 0 if one of eight bytes must be escaped. A byte's high bit is raised by a subtraction only
/// if the byte was smaller; a borrow can raise it wrongly, but only past a byte that is odd.
#[inline]
fn odd_in(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let word = u64::from_le_bytes(word);
    let is = |b: u8| (word ^ (ONES * u64::from(b))).wrapping_sub(ONES);
    let below = word.wrapping_sub(ONES * 0x20);
    // A byte beyond ASCII is never odd, and the exclusive or leaves its high bit.
    (below | is(b'"') | is(b'\\') | is(0x7f)) & !word & (ONES << 7)
}

#[cfg(test)]
mod tests;
