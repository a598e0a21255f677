//! Zones of calendar periods.

use crate::decode::{Problem, Written};

/// Minutes east of UTC.
#[derive(Clone, Copy)]
pub(crate) struct Zone(pub(crate) i32);

impl Written for Zone {
    const PATTERN: &'static str = "^[+-](0[0-9]|1[0-4]):[0-5][0-9]$";

    fn read(text: &str) -> Result<Self, Problem> {
        let read = || {
            let (sign, rest) = match text.split_at_checked(1)? {
                ("+", rest) => (1, rest),
                ("-", rest) => (-1, rest),
                _ => return None,
            };
            let (hours, minutes) = rest.split_once(':')?;
            let part = |text: &str, most: i32| {
                let digits = text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit());
                let number: Option<i32> = text.parse().ok();
                number.filter(|n| digits && *n <= most)
            };
            Some(sign * (part(hours, 14)? * 60 + part(minutes, 59)?))
        };
        read().map(Self).ok_or_else(|| {
            let hint = "write how far from UTC, such as \"+02:00\" or \"-05:30\"";
            Problem::new("is not a zone", hint)
        })
    }
}
