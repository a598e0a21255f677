//! What a path asks for: the operations of `wire::dialect`, under the names that policy uses.
//!
//! Invariant: what is not in the table goes nowhere, unless a route lists it ([`crate::unread`]).
//! Not here: the table (`wire::dialect`), path hygiene (`wire::http1`), which backend serves it (`route`).

use wire::dialect::{MODELS, posted_paths};
pub use wire::dialect::{Operation, Unknown};

/// The path of a call that takes POST and that this path ends with, without a `/` before it. An API's root never
/// does.
#[must_use]
pub fn call_at_end(path: &str) -> Option<&'static str> {
    let at_end = |call: &&'static str| {
        let root = path.strip_suffix(*call);
        root.is_some_and(|root| root.ends_with('/'))
    };
    posted_paths().find(at_end)
}

/// The path below `/v1/` of the known call that a path means which is none: it has that at its end, in some case of letters,
/// behind nothing but versions and words that other gateways put there, and perhaps before slashes.
#[must_use]
pub fn meant(path: &str) -> Option<&'static str> {
    /// What else stands before a version.
    const BEFORE: [&str; 3] = ["api", "openai", "anthropic"];
    let path = path.trim_end_matches('/').to_ascii_lowercase();
    let is_before = |word: &str| word.is_empty() || is_version(word) || BEFORE.contains(&word);
    let is_meant = |call: &&str| {
        let before = path.strip_suffix(*call);
        before.is_some_and(|before| {
            before.ends_with('/') && before.len() < PREFIX_BYTES && before.split('/').all(is_before)
        })
    };
    // The longest: one call's path is the end of another's.
    let calls = posted_paths().chain([MODELS]).filter(is_meant);
    calls.max_by_key(|call| call.len())
}

/// A longer path is not looked at for what it means.
const PREFIX_BYTES: usize = 64;

/// Whether a segment of a path stands in the path of an operation that is known, in any case, or says
/// the version of an API.
pub(crate) fn is_taken(segment: &str) -> bool {
    let is_word = posted_paths()
        .chain([MODELS])
        .flat_map(|known| known.split('/'))
        .any(|word| word.eq_ignore_ascii_case(segment));
    is_word || is_version(segment)
}

/// `v1`, `v1beta`, `V2`.
pub(crate) fn is_version(segment: &str) -> bool {
    matches!(segment.as_bytes(), [b'v' | b'V', digit, ..] if digit.is_ascii_digit())
}

/// The paths below `/v1/` that are known and take POST.
#[cfg(test)]
pub(crate) fn known_paths() -> Vec<String> {
    posted_paths().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    //! What a path means that is none.

    use super::meant;

    #[test]
    fn a_path_that_is_nearly_one_means_the_longest_call_at_its_end() {
        for (path, call) in [
            ("/chat/completions", Some("chat/completions")),
            ("/v1/chat/completions/", Some("chat/completions")),
            ("/v1/v1/chat/completions", Some("chat/completions")),
            ("/V1/Chat/Completions", Some("chat/completions")),
            ("/openai/v1/responses", Some("responses")),
            ("/api/v1/messages", Some("messages")),
            ("/messages/count_tokens", Some("messages/count_tokens")),
            ("/completions", Some("completions")),
            ("/models", Some("models")),
            ("/v1/threads/t1/messages", None),
            ("/v1/batches", None),
            ("/v1/xmessages", None),
            ("/metrics", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(meant(path), call, "{path}");
        }
        let long = format!("{}chat/completions", "/v1".repeat(30));
        assert_eq!(meant(&long), None);
    }
}
