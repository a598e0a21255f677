//! When a set is fetched next, after a good fetch.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use http::header::{CACHE_CONTROL, HeaderMap};

/// What an answer may ask for.
const LEAST: Duration = Duration::from_secs(60);
const MOST: Duration = Duration::from_secs(60 * 60);

/// How long the answer says that it is good: the shortest, where it says so twice.
pub(super) fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all(CACHE_CONTROL).iter();
    let directives = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    let seconds = directives.filter_map(|directive| {
        let directive = str::from_utf8(directive.trim_ascii()).ok()?;
        let (name, value) = directive.split_once('=')?;
        name.eq_ignore_ascii_case("max-age")
            .then_some(value)?
            .trim_matches('"')
            .parse()
            .ok()
    });
    seconds.min().map(Duration::from_secs)
}

/// After a good fetch: up to a tenth earlier than due, so that many gates do not ask at once.
pub(super) fn next(max_age: Option<Duration>, refresh: Duration) -> Duration {
    let due = max_age.map_or(refresh, |age| age.clamp(LEAST, MOST));
    let share = u32::try_from(RandomState::new().hash_one(()) % 1000).unwrap_or_default();
    due - due / 10 * share / 1000
}
