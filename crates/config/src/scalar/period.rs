//! Calendar periods and zones.
//!
//! Not here: which moments belong to a period (`policy::budget`).

use policy::budget;
use serde_json::{Value, json};

use crate::decode::{Problem, Takes, Written};

/// How long a calendar period is.
#[derive(Clone, Copy)]
pub(crate) struct Every(pub(crate) budget::Every);

impl Written for Every {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "day" => Ok(Self(budget::Every::Day)),
            "week" => Ok(Self(budget::Every::Week)),
            "month" => Ok(Self(budget::Every::Month)),
            _ => Err(Problem::new(
                "is not a calendar period",
                "write day, week or month; a rate over a window is a route's limit",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["day", "week", "month"] })
    }
}

/// Minutes east of UTC.
#[derive(Clone, Copy)]
pub(crate) struct Zone(pub(crate) i32);

impl Written for Zone {
    const TAKES: Takes = Takes::Text;

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

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[+-](0[0-9]|1[0-4]):[0-5][0-9]$" })
    }
}
