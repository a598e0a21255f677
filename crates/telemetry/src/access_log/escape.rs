//! Text as the inside of a JSON string.
//!
//! Invariant: whatever the text, nothing in it ends the string or the line.
//! Not here: keys and quotes (`line`, `spelled`).

/// Appends `value`, escaped where it must be.
pub(super) fn escaped(out: &mut Vec<u8>, value: &str) {
    let bytes = value.as_bytes();
    if all_plain(bytes) {
        out.extend_from_slice(bytes);
    } else {
        one_by_one(out, bytes);
    }
}

fn is_plain(b: u8) -> bool {
    b >= 0x20 && b != b'"' && b != b'\\' && b != 0x7f
}

fn all_plain(bytes: &[u8]) -> bool {
    let Some(last) = bytes.last_chunk() else {
        return bytes.iter().all(|b| is_plain(*b));
    };
    // The last word may overlap the one before it.
    let (words, _) = bytes.as_chunks();
    words.iter().all(word_is_plain) && word_is_plain(last)
}

/// [`is_plain`] of eight bytes at once. A byte's high bit is raised by a subtraction only if the
/// byte was smaller; a borrow can raise it wrongly, but only past a byte that is not plain.
fn word_is_plain(word: &[u8; 8]) -> bool {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    let word = u64::from_le_bytes(*word);
    let below = |word: u64, n: u8| word.wrapping_sub(ONES * u64::from(n)) & !word;
    let is = |b: u8| below(word ^ (ONES * u64::from(b)), 1);
    let odd = below(word, 0x20) | is(b'"') | is(b'\\') | is(0x7f);
    odd & (ONES << 7) == 0
}

#[cold]
fn one_by_one(out: &mut Vec<u8>, bytes: &[u8]) {
    for b in bytes {
        match b {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *b]),
            plain if is_plain(*plain) => out.push(*plain),
            control => {
                let hex = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(hex[usize::from(control >> 4)]);
                out.push(hex[usize::from(control & 15)]);
            }
        }
    }
}

#[cfg(test)]
mod tests;
