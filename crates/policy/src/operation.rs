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
