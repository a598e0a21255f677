//! What the name of a model may be, in a body or in a path.

/// The longest.
pub(super) const BYTES_MAX: usize = 256;

/// The bytes that a model's name may have.
static NAME_BYTES: [bool; 256] = {
    let mut allowed = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        let c = byte as u8;
        allowed[byte] =
            c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b':' | b'/' | b'@' | b'-');
        byte += 1;
    }
    allowed
};

/// The text, if it can be a model's name.
#[inline]
#[must_use]
pub fn model_name(text: &[u8]) -> Option<&str> {
    let is_good = |byte: &u8| NAME_BYTES.get(usize::from(*byte)) == Some(&true);
    let is_name = (1..=BYTES_MAX).contains(&text.len()) && text.iter().all(is_good);
    #[expect(
        unsafe_code,
        reason = "`cargo xtask instructions`: 115 of the 28,900 of a call"
    )]
    // SAFETY: each byte was just found to be one of a few of ASCII.
    is_name.then(|| unsafe { std::str::from_utf8_unchecked(text) })
}
