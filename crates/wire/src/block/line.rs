//! A line of text looked at 32 bytes at a time: where it ends, and where in it a quote is followed by one of two letters.
//!
//! Invariant: what is told of a line is the same on every processor.
//! Not here: what such a name means (`sse`).

/// Bytes of one look, and the one behind them.
const LOOK_BYTES: usize = 33;
const BYTES: usize = LOOK_BYTES - 1;
/// What may follow a quote.
const LETTERS: [u8; 2] = [b'u', b'e'];

/// A bit for each line end, and one for each quote before one of the letters.
struct Marks {
    ends: u32,
    names: u32,
}

/// The first line end of a text that has a byte behind it, unless `is_wanted` says that of the place of a quote before it that is followed
/// by `u` or `e`. `None` says nothing, as it does of a short text.
#[inline]
pub(crate) fn line_without(text: &[u8], is_wanted: impl Fn(usize) -> bool) -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "`cargo xtask instructions`: with the search of three texts an event of a stream takes 700 more"
        )]
        // SAFETY: the processor has AVX2, as was just asked.
        return unsafe { avx2::line_without(text, is_wanted) };
    }
    by_looks(text, is_wanted, look)
}

#[inline(always)]
fn by_looks(
    text: &[u8],
    is_wanted: impl Fn(usize) -> bool,
    look: impl Fn(&[u8; LOOK_BYTES]) -> Marks,
) -> Option<usize> {
    let last = text.len().checked_sub(LOOK_BYTES)?;
    let mut at = 0;
    loop {
        // The last look is at bytes of which some were seen: they had no line end, and no name that is wanted.
        let from = at.min(last);
        let bytes = text.get(from..)?.first_chunk::<LOOK_BYTES>()?;
        let Marks { ends, mut names } = look(bytes);
        if ends != 0 {
            names &= (ends & ends.wrapping_neg()) - 1;
        }
        while names != 0 {
            if is_wanted(from + names.trailing_zeros() as usize) {
                return None;
            }
            names &= names - 1;
        }
        if ends != 0 {
            return Some(from + ends.trailing_zeros() as usize);
        }
        if from == last {
            return None;
        }
        at += BYTES;
    }
}

fn look(bytes: &[u8; LOOK_BYTES]) -> Marks {
    let mut marks = Marks { ends: 0, names: 0 };
    for (at, pair) in bytes.windows(2).enumerate() {
        let [here, next] = pair else { break };
        marks.ends |= u32::from(matches!(here, b'\n' | b'\r')) << at;
        marks.names |= u32::from(*here == b'"' && LETTERS.contains(next)) << at;
    }
    marks
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    use std::arch::x86_64::{
        __m256i, _mm256_and_si256, _mm256_cmpeq_epi8, _mm256_loadu_si256, _mm256_movemask_epi8,
        _mm256_or_si256, _mm256_set1_epi8,
    };

    use super::{BYTES, LETTERS, LOOK_BYTES, Marks};

    #[target_feature(enable = "avx2")]
    pub(super) fn line_without(text: &[u8], is_wanted: impl Fn(usize) -> bool) -> Option<usize> {
        super::by_looks(text, is_wanted, |bytes| look(bytes))
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn look(bytes: &[u8; LOOK_BYTES]) -> Marks {
        let (Some(here), Some(next)) = (bytes.first_chunk(), bytes.last_chunk()) else {
            return Marks { ends: 0, names: 0 };
        };
        let (here, next) = (load(here), load(next));
        let is = |bytes: __m256i, byte: u8| {
            _mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(byte.cast_signed()))
        };
        let ends = _mm256_or_si256(is(here, b'\n'), is(here, b'\r'));
        let [first, second] = LETTERS;
        let letters = _mm256_or_si256(is(next, first), is(next, second));
        let names = _mm256_and_si256(is(here, b'"'), letters);
        Marks {
            ends: _mm256_movemask_epi8(ends).cast_unsigned(),
            names: _mm256_movemask_epi8(names).cast_unsigned(),
        }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    #[expect(
        unsafe_code,
        reason = "put together from words it takes three instructions"
    )]
    fn load(bytes: &[u8; BYTES]) -> __m256i {
        // SAFETY: 32 bytes are there to be read, and this load asks for no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }
}

#[cfg(test)]
mod tests {
    use super::{by_looks, line_without, look};

    #[test]
    fn a_line_ends_where_it_does_and_a_name_before_that_is_told_wherever_it_stands() {
        for length in 33..140 {
            for end in 0..length - 1 {
                let mut text = vec![b'a'; length];
                text[end] = b'\n';
                assert_eq!(told(&text, b"\"usage"), Some(end), "{length} {end}");
                for name in 0..length - 8 {
                    let mut text = text.clone();
                    text[name..name + 6].copy_from_slice(b"\"usage");
                    let is_before = name < end && text[end] == b'\n';
                    let expected = match text.iter().position(|byte| *byte == b'\n') {
                        Some(end) if !(is_before && name < end) => Some(end),
                        _ => None,
                    };
                    assert_eq!(told(&text, b"\"usage"), expected, "{length} {end} {name}");
                    // Of another name nothing is wanted.
                    let other = text.iter().position(|byte| *byte == b'\n');
                    assert_eq!(told(&text, b"\"user"), other, "{length} {end} {name}");
                }
            }
        }
        assert_eq!(told(b"short\n\n", b"\"usage"), None);
        assert_eq!(told(&[b'a'; 64], b"\"usage"), None);
    }

    fn told(text: &[u8], name: &[u8]) -> Option<usize> {
        let is_wanted = |at: usize| text[at..].starts_with(name);
        let told = line_without(text, is_wanted);
        assert_eq!(told, by_looks(text, is_wanted, look));
        told
    }
}
