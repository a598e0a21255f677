//! What must hold for any query, of any operation: what is forwarded of it is some of its members, in order, and
//! holds no key and nothing that a server could read as two. Of plain HTTP it is all of it.
//!
//! Not here: which members are on the lists (`policy::query`).

use policy::operation::Operation;
use policy::query::forwarded;

/// Names under which providers take keys, or servers other methods.
const REFUSED: [&str; 8] = [
    "key=",
    "api_key=",
    "api-key=",
    "token=",
    "access_token=",
    "sig=",
    "_method=",
    "model=",
];

/// Panics when an invariant is broken.
pub(crate) fn fuzz_one(input: &[u8]) {
    let Ok(query) = std::str::from_utf8(input) else {
        return;
    };
    for operation in Operation::ALL {
        let Some(clean) = forwarded(operation, query) else {
            continue;
        };
        if operation == Operation::Http {
            assert_eq!(clean, query);
            continue;
        }
        let mut members = query.split('&');
        for kept in clean.split('&') {
            assert!(
                members.any(|member| member == kept),
                "{kept:?} of {query:?}"
            );
            assert!(!kept.contains(';'), "{kept:?}");
            let lower = kept.to_ascii_lowercase();
            assert!(
                !REFUSED.iter().any(|name| lower.starts_with(name)),
                "{kept:?}"
            );
        }
        assert_eq!(
            forwarded(operation, &clean).as_deref(),
            Some(clean.as_str())
        );
    }
}
