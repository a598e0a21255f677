//! Base64, as it is written in JSON.
//!
//! Not here: what is carried in it (`gemini::sealed`, `embeddings`).

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Base64.
pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let at = |nth: usize| u32::from(chunk.get(nth).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for nth in 0..4 {
            let six = (bits >> (18 - 6 * nth) & 0x3f) as usize;
            let letter = ALPHABET.get(six).copied().unwrap_or(b'A');
            out.push(if nth > chunk.len() {
                '='
            } else {
                letter.into()
            });
        }
    }
    out
}

/// Either alphabet, with or without what fills its end.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let text = text.trim_end_matches('=').as_bytes();
    let mut out = Vec::with_capacity(text.len() * 3 / 4);
    for chunk in text.chunks(4) {
        let mut bits = 0_u32;
        for nth in 0..4 {
            let six = match chunk.get(nth) {
                Some(b'-') => 62,
                Some(b'_') => 63,
                Some(letter) => ALPHABET.iter().position(|known| known == letter)?,
                None => 0,
            };
            bits = bits << 6 | u32::try_from(six).ok()?;
        }
        let [_, bytes @ ..] = bits.to_be_bytes();
        let whole = chunk.len().checked_sub(1).filter(|whole| *whole > 0)?;
        out.extend_from_slice(bytes.get(..whole)?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_has_the_lengths_that_it_is_to_have() {
        for (text, base64) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ] {
            assert_eq!(encode(text.as_bytes()), base64);
            assert_eq!(decode(base64).as_deref(), Some(text.as_bytes()));
        }
        assert_eq!(decode("A"), None);
    }
}
