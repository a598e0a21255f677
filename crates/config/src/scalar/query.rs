//! Names of members of a query, and how values stand in one.

use super::text::is_of;
use crate::decode::{Problem, Written};

/// The name of a member of a query.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct QueryName(pub(crate) String);

impl Written for QueryName {
    const PATTERN: &'static str = "^[A-Za-z0-9._-]{1,128}$";

    fn read(text: &str) -> Result<Self, Problem> {
        if !is_of(text, 128, |b| {
            b.is_ascii_alphanumeric() || b"-_.".contains(&b)
        }) {
            let hint = "use 1 to 128 of A-Z a-z 0-9 . _ -";
            return Err(Problem::new("is not a plain name of a query", hint));
        }
        if !policy::credential::may_be_queried(text) {
            let hint = "queries are logged on the way: write it as `credential`";
            return Err(Problem::new("may carry a credential", hint));
        }
        Ok(Self(text.to_owned()))
    }
}

/// A text as the value of a query's member.
pub(crate) fn encoded(text: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~".contains(&b);
    let coded = text.bytes().map(|b| match b {
        b if is_plain(b) => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    });
    coded.collect()
}
