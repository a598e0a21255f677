//! Numbers and times as options have them.
//!
//! Not here: those of files (`campaign::members`), of laws (`experiment::arrivals`).

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

/// The longest time that an option can be.
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// A number within bounds.
pub(crate) fn within<T: FromStr + PartialOrd + Display>(
    text: &str,
    least: T,
    most: T,
) -> Result<T, String> {
    let number: Option<T> = text.parse().ok();
    number
        .filter(|number| (&least..=&most).contains(&number))
        .ok_or_else(|| format!("must be a number from {least} to {most}"))
}

/// A time such as `250ms`, `7.5s` or `2m`; a year at most.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let time = Duration::try_from_secs_f64(experiment::arrivals::time(text)?);
    let time = time.ok().filter(|time| *time <= YEAR);
    time.ok_or_else(|| "a year at most".into())
}
