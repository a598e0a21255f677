//! Ids of requests: which may stand in a header and a log as they are, and where upstreams put theirs.
//!
//! Not here: the random numbers ([`crate::shard`]).

use wire::head::{Head, Known};
use wire::json::as_text;

use crate::fast_hash::finalize;

/// Longest id of somebody else's that is kept.
const MAX_BYTES: usize = 128;

/// The header by which a client learns the upstream's id for its request, beside the gate's own `x-request-id`.
pub const UPSTREAM_HEADER: &str = "x-upstream-request-id";

/// Whether an id can stand in a header, a log and a label as it is.
#[must_use]
pub fn is_plain(id: &[u8]) -> bool {
    (1..=MAX_BYTES).contains(&id.len())
        && id
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':'))
}

/// The id that an upstream gave its answer: `x-request-id`, or the header that its provider uses instead.
#[must_use]
pub fn of_upstream(fields: &Head) -> Option<&str> {
    let providers = || {
        let mut others = fields.of_kind(Known::Other);
        others.find(|field| is_providers(field.name))
    };
    fields
        .get(Known::XRequestId)
        .or_else(|| providers().map(|field| field.value))
        .filter(|id| is_plain(id))
        .and_then(|id| std::str::from_utf8(id).ok())
}

/// An id that no other request has, in practice: 32 hex digits of no meaning, made of 64 random bits.
#[expect(clippy::cast_possible_truncation, reason = "the two halves")]
pub(crate) fn minted(random: u64) -> Box<str> {
    let words = [finalize(random), finalize(random ^ 0xD6E8_FEB8_6659_FD93)];
    let digits = words.map(|word| [hex((word >> 32) as u32), hex(word as u32)]);
    as_text(digits.as_flattened().as_flattened())
        .unwrap_or_default()
        .into()
}

/// The digits of half a word, all at once: a nibble a byte first, then what each byte lacks to its digit.
fn hex(half: u32) -> [u8; 8] {
    const ONES: u64 = u64::MAX / 0xFF;
    let spread = u64::from(half);
    let spread = (spread | spread << 16) & 0x0000_FFFF_0000_FFFF;
    let spread = (spread | spread << 8) & 0x00FF_00FF_00FF_00FF;
    let nibbles = (spread | spread << 4) & (15 * ONES);
    let letters = (nibbles + 6 * ONES) >> 4 & ONES;
    (nibbles + u64::from(b'0') * ONES + letters * u64::from(b'a' - b'0' - 10)).to_be_bytes()
}

/// Names that providers use: Anthropic, AWS, Azure, Google and Mistral.
fn is_providers(name: &[u8]) -> bool {
    matches!(
        name,
        b"request-id"
            | b"x-amzn-requestid"
            | b"x-amzn-request-id"
            | b"apim-request-id"
            | b"x-ms-request-id"
            | b"x-goog-request-id"
            | b"mistral-correlation-id"
    )
}

#[cfg(test)]
mod tests {
    use super::{hex, is_plain, of_upstream};
    use wire::head::Head;

    fn id(fields: &[(&str, &str)]) -> Option<String> {
        let mut head = Head::new();
        for (name, value) in fields {
            head.push(name.as_bytes(), value.as_bytes())
                .expect("a good field");
        }
        of_upstream(&head).map(str::to_owned)
    }

    #[test]
    fn an_upstreams_id_is_found_under_each_providers_name() {
        assert_eq!(id(&[("content-type", "a")]), None);
        assert_eq!(id(&[("Request-Id", "req_1")]).as_deref(), Some("req_1"));
        assert_eq!(id(&[("x-amzn-RequestId", "a-b")]).as_deref(), Some("a-b"));
        let both = [("request-id", "theirs"), ("x-request-id", "usual")];
        assert_eq!(id(&both).as_deref(), Some("usual"));
    }

    #[test]
    fn an_id_that_could_not_stand_in_a_log_is_not_kept() {
        assert_eq!(id(&[("x-request-id", "a b")]), None);
        assert_eq!(id(&[("x-request-id", &"x".repeat(129))]), None);
        assert!(is_plain(&[b'x'; 128]) && !is_plain(b"") && !is_plain(b"a\"b"));
    }

    #[test]
    fn the_digits_of_half_a_word_are_what_the_standard_library_prints() {
        let halves = (0..=u16::MAX).map(|n| u32::from(n).wrapping_mul(0x0001_0001) ^ 0x9E37_79B9);
        for half in halves.chain([0, 1, u32::MAX, 0x0123_4567, 0x89AB_CDEF]) {
            assert_eq!(hex(half), format!("{half:08x}").as_bytes(), "{half}");
        }
    }
}
