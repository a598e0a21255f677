//! Half a kilobyte looked at together: where in it the quotes, backslashes and control characters are.
//!
//! Which instructions do it is asked of the processor once for all 512 bytes.
//! Invariant: bit n of word m tells of byte 64 m + n, on every processor alike; bits beyond the text are clear.
//! Not here: going from one bit to the next (`json`).

use super::{BLOCK_BYTES, special};

/// Bytes that a word tells of.
pub(crate) const WORD_BYTES: usize = 64;
/// Words for one look.
pub(crate) const WORDS: usize = 8;
/// Bytes that one look takes in.
pub(crate) const WIDE_BYTES: usize = WORDS * WORD_BYTES;

/// One bit a byte, for each quote, backslash and control character in the first 512 bytes; whether there is any.
#[inline(never)]
pub(crate) fn specials(text: &[u8], words: &mut [u64; WORDS]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512bw") {
        #[expect(
            unsafe_code,
            reason = "1 KiB turns, 32 KiB: 1.09 us, and 1.47 with AVX2 (`bodies`, read_long_turns)"
        )]
        // SAFETY: the processor has AVX-512BW, as was just asked.
        return unsafe { avx512::specials(text, words) };
    } else if is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "1 KiB turns, 32 KiB: 1.47 us, and 2.58 with SSE2 (`bodies`, read_long_turns)"
        )]
        // SAFETY: the processor has AVX2, as was just asked.
        return unsafe { avx2::specials(text, words) };
    }
    plain_specials(text, words)
}

/// Whether there is no quote, backslash or control character in a text of 32 bytes or more; `None` of a shorter one, and where the
/// processor has no such look.
#[inline]
pub(crate) fn has_no_special(text: &[u8]) -> Option<bool> {
    #[cfg(target_arch = "x86_64")]
    if text.len() >= 32 && is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "`cargo xtask instructions`: a quarter of what it takes sixteen bytes at a time"
        )]
        // SAFETY: the processor has AVX2, as was just asked.
        return Some(unsafe { avx2::has_no_special(text) });
    }
    let _looked_at_otherwise = text;
    None
}

/// What is text, as a text. ASCII, as most of it is, is seen to be that many bytes at a time.
#[must_use]
pub fn as_text(bytes: &[u8]) -> Option<&str> {
    if !is_ascii(bytes) {
        return std::str::from_utf8(bytes).ok();
    }
    #[expect(
        unsafe_code,
        reason = "`cargo xtask instructions`: looked at again a translated call takes 700 more, an event of its stream 150"
    )]
    // SAFETY: every byte is ASCII, and ASCII is UTF-8.
    let text = unsafe { std::str::from_utf8_unchecked(bytes) };
    Some(text)
}

#[inline]
fn is_ascii(text: &[u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if text.len() >= 32 && is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "as `as_text`")]
        // SAFETY: the processor has AVX2, as was just asked.
        return unsafe { avx2::is_ascii(text) };
    }
    text.is_ascii()
}

#[inline(never)]
fn plain_specials(text: &[u8], words: &mut [u64; WORDS]) -> bool {
    all_words(text, words, by_blocks).unwrap_or_else(|| some_words(text, words, by_blocks))
}

/// Looks at each word's bytes with `look`, where there are enough for all words.
#[inline(always)]
fn all_words(
    text: &[u8],
    words: &mut [u64; WORDS],
    look: impl Fn(&[u8; WORD_BYTES]) -> u64,
) -> Option<bool> {
    let (whole, _) = text.as_chunks();
    let looked = whole.first_chunk::<WORDS>()?.each_ref().map(look);
    *words = looked;
    Some(any(looked))
}

#[inline(always)]
fn any(words: [u64; WORDS]) -> bool {
    words.iter().fold(0, |all, word| all | word) != 0
}

/// The same where there are fewer.
#[inline(always)]
fn some_words(
    text: &[u8],
    words: &mut [u64; WORDS],
    look: impl Fn(&[u8; WORD_BYTES]) -> u64,
) -> bool {
    let (whole, rest) = text.as_chunks();
    *words = [0; WORDS];
    let mut next = words.iter_mut();
    for (bytes, word) in whole.iter().zip(next.by_ref()) {
        *word = look(bytes);
    }
    if let Some(word) = next.next() {
        *word = last_word(text, rest, look);
    }
    any(*words)
}

/// Of the text's last bytes, fewer than a word tells of: with those before them, if there are enough.
#[inline(always)]
fn last_word(text: &[u8], rest: &[u8], look: impl Fn(&[u8; WORD_BYTES]) -> u64) -> u64 {
    if rest.is_empty() {
        return 0;
    }
    if let Some(bytes) = text.last_chunk() {
        return look(bytes) >> (WORD_BYTES - rest.len());
    }
    let mut padded = [b' '; WORD_BYTES];
    for (to, from) in padded.iter_mut().zip(rest) {
        *to = *from;
    }
    look(&padded)
}

fn by_blocks(bytes: &[u8; WORD_BYTES]) -> u64 {
    let (blocks, _) = bytes.as_chunks::<BLOCK_BYTES>();
    let each = blocks.iter().enumerate();
    each.fold(0, |word, (at, block)| {
        word | u64::from(special(block)) << (at * BLOCK_BYTES)
    })
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_min_epu8, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8, _mm256_xor_si256,
    };

    use super::{WORD_BYTES, WORDS};

    #[target_feature(enable = "avx2")]
    pub(super) fn specials(text: &[u8], words: &mut [u64; WORDS]) -> bool {
        let all = super::all_words(text, words, |bytes| word(bytes));
        all.unwrap_or_else(|| some_words(text, words))
    }

    #[inline(never)]
    #[target_feature(enable = "avx2")]
    pub(super) fn has_no_special(text: &[u8]) -> bool {
        let (blocks, _) = text.as_chunks::<32>();
        let mut blocks = blocks.iter();
        // The last bytes with those before them that were looked at.
        let last = text.last_chunk::<32>();
        blocks.all(|block| special(load(block)) == 0)
            && last.is_none_or(|block| special(load(block)) == 0)
    }

    #[inline(never)]
    #[target_feature(enable = "avx2")]
    pub(super) fn is_ascii(text: &[u8]) -> bool {
        let (blocks, _) = text.as_chunks::<32>();
        let (fours, blocks) = blocks.as_chunks::<4>();
        let are_high = |bits| _mm256_movemask_epi8(bits) != 0;
        let has_high = |block| are_high(load(block));
        let both = |one: &[u8; 32], other: &[u8; 32]| _mm256_or_si256(load(one), load(other));
        let any_high =
            |[a, b, c, d]: &[[u8; 32]; 4]| are_high(_mm256_or_si256(both(a, b), both(c, d)));
        // The last bytes with those before them that were looked at.
        let last = text.last_chunk::<32>();
        !fours.iter().any(any_high) && !blocks.iter().any(has_high) && !last.is_some_and(has_high)
    }

    /// Apart, so that the other way needs no room on the stack.
    #[inline(never)]
    #[target_feature(enable = "avx2")]
    fn some_words(text: &[u8], words: &mut [u64; WORDS]) -> bool {
        super::some_words(text, words, |bytes| word(bytes))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn word(bytes: &[u8; WORD_BYTES]) -> u64 {
        let (halves, _) = bytes.as_chunks::<32>();
        halves
            .iter()
            .rev()
            .fold(0, |word, half| word << 32 | u64::from(special(load(half))))
    }

    /// The quote is one bit away from following the control characters.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn special(bytes: __m256i) -> u32 {
        let slash = _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(b'\\'.cast_signed()));
        let moved = _mm256_xor_si256(bytes, _mm256_set1_epi8(2));
        let low = _mm256_min_epu8(moved, _mm256_set1_epi8(0x20));
        let hits = _mm256_or_si256(slash, _mm256_cmpeq_epi8(low, moved));
        _mm256_movemask_epi8(hits).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    #[expect(
        unsafe_code,
        reason = "put together from words it takes three instructions"
    )]
    fn load(half: &[u8; 32]) -> __m256i {
        // SAFETY: 32 bytes are there to be read, and this load asks for no alignment.
        unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
    }
}

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use std::arch::x86_64::{
        _mm512_cmpeq_epu8_mask, _mm512_cmple_epu8_mask, _mm512_loadu_si512, _mm512_set1_epi8,
        _mm512_xor_si512,
    };

    use super::{WORD_BYTES, WORDS};

    #[target_feature(enable = "avx512bw")]
    pub(super) fn specials(text: &[u8], words: &mut [u64; WORDS]) -> bool {
        let all = super::all_words(text, words, |bytes| special(bytes));
        all.unwrap_or_else(|| some_words(text, words))
    }

    /// Apart, so that the other way needs no room on the stack.
    #[inline(never)]
    #[target_feature(enable = "avx512bw")]
    fn some_words(text: &[u8], words: &mut [u64; WORDS]) -> bool {
        super::some_words(text, words, |bytes| special(bytes))
    }

    #[inline]
    #[target_feature(enable = "avx512bw")]
    #[expect(unsafe_code, reason = "the load, as with AVX2")]
    fn special(bytes: &[u8; WORD_BYTES]) -> u64 {
        // SAFETY: 64 bytes are there to be read, and this load asks for no alignment.
        let bytes = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
        let slash = _mm512_cmpeq_epu8_mask(bytes, _mm512_set1_epi8(b'\\'.cast_signed()));
        let moved = _mm512_xor_si512(bytes, _mm512_set1_epi8(2));
        slash | _mm512_cmple_epu8_mask(moved, _mm512_set1_epi8(0x20))
    }
}
