//! What must hold for the usage that is read out of any whole answer, in any dialect.
//!
//! Cut anywhere the reading is the same; no count is beyond its bound; written another way, the same document says
//! the same.
//! Not here: usage in streams (`sse_scan`, `usage_stream`).

use serde_json::Value;
use wire::usage::{Reading, TOKEN_LIMIT, UnaryUsage, read};

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    let whole = pushed([input]);
    for size in [1, 3, 17, 100] {
        assert_eq!(whole, pushed(input.chunks(size)), "in pieces of {size}");
    }
    bounded(whole);
    bounded(read(input));
    if let Ok(value) = serde_json::from_slice::<Value>(input) {
        // Of one tree, with blanks and without.
        let plain = serde_json::to_vec(&value).expect("it was read");
        let spaced = serde_json::to_vec_pretty(&value).expect("it was read");
        assert_eq!(read(&plain), read(&spaced));
        assert_eq!(pushed([&plain[..]]), pushed([&spaced[..]]));
        if let Some(usage) = value.get("usage") {
            let usage = serde_json::to_vec(usage).expect("it was read");
            if plain.len() < 4096 {
                assert_eq!(pushed([&plain[..]]), read(&usage));
            }
        }
    }
}

fn pushed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Reading {
    let mut usage = UnaryUsage::new();
    for piece in pieces {
        usage.push(piece);
    }
    *usage.finish()
}

fn bounded(reading: Reading) {
    if let Reading::Valid(usage) = reading {
        for count in [
            usage.prompt,
            usage.completion,
            usage.cached,
            usage.reasoning,
        ] {
            assert!(count.is_none_or(|count| count <= TOKEN_LIMIT), "{usage:?}");
        }
    }
}
