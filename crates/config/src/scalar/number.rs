//! Durations, sizes, amounts, prices and money.
//!
//! Invariant: exact; no value passes through a float.

use std::time::Duration;

use serde_json::{Value, json};

use crate::decode::{Problem, Takes, Written};

/// A span of time of at most so many hours.
#[derive(Clone, Copy)]
pub(crate) struct Span<const MOST_H: u64 = { 366 * 24 }>(pub(crate) Duration);

/// A span of at most an hour: nothing that is written so is meant to last for longer.
pub(crate) type Brief = Span<1>;

/// How long something is kept: years, not minutes.
pub(crate) type Age = Span<{ 36_600 * 24 }>;

impl<const MOST_H: u64> Written for Span<MOST_H> {
    const TAKES: Takes = Takes::Either;
    const PATTERN: &'static str = "^[0-9]+(ms|s|m|h|d)$";

    fn read(text: &str) -> Result<Self, Problem> {
        const HOUR_MS: u64 = 60 * 60 * 1000;
        const EXAMPLES: &str = "write 30s, 1m, 2h or 1d";
        let (digits, unit) = split_unit(text);
        let unit_ms = match unit {
            _ if digits.is_empty() => 0,
            "ms" => 1,
            "s" => 1000,
            "m" => 60 * 1000,
            "h" => HOUR_MS,
            "d" => 24 * HOUR_MS,
            "" => return Err(Problem::new("has no unit", EXAMPLES)),
            _ => 0,
        };
        if unit_ms == 0 {
            return Err(Problem::new("is not a duration", EXAMPLES));
        }
        match times(digits, unit_ms) {
            // What budgets need decides how little is enough of what is kept for years.
            Some(0) if MOST_H > 366 * 24 => {
                let hint = "write how long to keep it, such as 400d";
                Err(Problem::new("is no time at all", hint))
            }
            Some(0) => Err(Problem::new("is no time at all", "write 1ms or more")),
            Some(ms) if ms <= MOST_H * HOUR_MS => Ok(Self(Duration::from_millis(ms))),
            _ => {
                let most = match MOST_H {
                    hours if hours.is_multiple_of(24) => format!("{}d", hours / 24),
                    hours => format!("{hours}h"),
                };
                Err(Problem::new("is too long", format!("write {most} or less")))
            }
        }
    }
}

/// How long something is held back, at most; `off` for not at all.
#[derive(Clone, Copy)]
pub(crate) struct Hold(pub(crate) Duration);

impl Written for Hold {
    const TAKES: Takes = Takes::Either;
    const PATTERN: &'static str = "^([0-9]+(ms|s|m|h|d)|off)$";

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "off" => Ok(Self(Duration::ZERO)),
            text => Brief::read(text).map(|span| Self(span.0)),
        }
    }
}

/// So many units; `None` for more than a number here can hold.
fn times(digits: &str, unit: u64) -> Option<u64> {
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Digits first, then whatever follows.
fn split_unit(text: &str) -> (&str, &str) {
    let end = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Digits before a point and behind it, where there is one.
fn decimal(text: &str) -> Option<(&str, &str)> {
    let is_digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    match text.split_once('.') {
        Some((whole, part)) => (is_digits(whole) && is_digits(part)).then_some((whole, part)),
        None => is_digits(text).then_some((text, "")),
    }
}

/// A number of bytes, at most so many MiB: unless said, more than any disk has.
#[derive(Clone, Copy)]
pub(crate) struct Size<const MOST_MIB: u64 = { 1 << 30 }>(pub(crate) u64);

impl<const MOST_MIB: u64> Written for Size<MOST_MIB> {
    const TAKES: Takes = Takes::Either;

    fn read(text: &str) -> Result<Self, Problem> {
        let (digits, unit) = split_unit(text);
        let unit = match unit.trim_start_matches(' ') {
            "" | "B" => 1,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "KB" | "kB" => 1000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            _ => 0_u64,
        };
        if digits.is_empty() || unit == 0 {
            let hint = "write 65536, 64KiB, 32MiB or 1GB";
            return Err(Problem::new("is not a size", hint));
        }
        match times(digits, unit) {
            Some(0) => Err(Problem::new("is nothing at all", "write 1 or more")),
            Some(bytes) if bytes <= MOST_MIB << 20 => Ok(Self(bytes)),
            _ => {
                let most = match MOST_MIB {
                    mib if mib.is_multiple_of(1024) => format!("{}GiB", mib / 1024),
                    mib => format!("{mib}MiB"),
                };
                Err(Problem::new(
                    "is too large",
                    format!("write {most} or less"),
                ))
            }
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "integer", "minimum": 1 },
            { "type": "string", "pattern": "^[0-9]+ *(B|KiB|MiB|GiB|kB|KB|MB|GB)?$" },
        ] })
    }
}

/// How many of something countable, at least so many: one, or none.
#[derive(Clone, Copy)]
pub(crate) struct Amount<const LEAST: u64 = 1>(pub(crate) u64);

/// Tokens that a call is charged, none included.
pub(crate) type Charge = Amount<0>;

impl<const LEAST: u64> Written for Amount<LEAST> {
    const TAKES: Takes = Takes::Either;

    fn read(text: &str) -> Result<Self, Problem> {
        const MOST: u64 = 1_000_000_000_000;
        let (digits, unit) = split_unit(text);
        let unit = match unit {
            _ if digits.is_empty() => 0,
            "" => 1,
            "K" => 1000,
            "M" => 1_000_000,
            _ => 0,
        };
        if unit == 0 {
            let hint = "write digits, such as 100000, 100K or 1M";
            return Err(Problem::new("is not a whole number", hint));
        }
        match times(digits, unit) {
            Some(0) if LEAST > 0 || text != "0" => {
                Err(Problem::new("is none at all", "write 1 or more"))
            }
            Some(count) if count <= MOST => Ok(Self(count)),
            _ => Err(Problem::new("is too many", "write 1000000M or less")),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "integer", "minimum": LEAST },
            { "type": "string", "pattern": "^[0-9]+[KM]?$" },
        ] })
    }
}

/// A whole number from 1 to `MOST`.
#[derive(Clone, Copy)]
pub(crate) struct Count<const MOST: u32>(pub(crate) u32);

impl<const MOST: u32> Written for Count<MOST> {
    const TAKES: Takes = Takes::Number;

    fn read(text: &str) -> Result<Self, Problem> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !digits {
            let is = format!("is not a whole number from 1 to {MOST}");
            return Err(Problem::new(is, "write digits alone"));
        }
        match text.parse::<u32>() {
            Ok(0) => Err(Problem::new("is none at all", "write 1 or more")),
            Ok(count) if count <= MOST => Ok(Self(count)),
            _ => Err(Problem::new("is too many", format!("write {MOST} or less"))),
        }
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 1, "maximum": MOST })
    }
}

/// A status that tells of an error.
#[derive(Clone, Copy)]
pub(crate) struct Status(pub(crate) u16);

impl Written for Status {
    const TAKES: Takes = Takes::Number;

    fn read(text: &str) -> Result<Self, Problem> {
        match text.parse::<u16>() {
            Ok(status @ 400..=599) if text.len() == 3 => Ok(Self(status)),
            _ => Err(Problem::new(
                "is not a status of an error",
                "write a number from 400 to 599",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 400, "maximum": 599 })
    }
}

/// A decimal number, exact: `digits / 10^places`.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    pub(crate) digits: i128,
    pub(crate) places: u32,
}

impl Written for Decimal {
    const TAKES: Takes = Takes::Either;

    fn read(text: &str) -> Result<Self, Problem> {
        let wrong = || Problem::new("is not a price", "write a plain decimal, such as 0.10");
        let (whole, part) = decimal(text).ok_or_else(wrong)?;
        if whole.len() > 12 {
            let hint = "write at most 12 digits before the point";
            return Err(Problem::new("is too much", hint));
        }
        if part.len() > 18 {
            let hint = "write at most 18 decimal places";
            return Err(Problem::new("is too fine", hint));
        }
        let places = u32::try_from(part.len()).unwrap_or(0);
        let digits = format!("{whole}{part}").parse();
        digits.map_or_else(|_| Err(wrong()), |digits| Ok(Self { digits, places }))
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "number", "minimum": 0 },
            { "type": "string", "pattern": "^[0-9]{1,12}([.][0-9]{1,18})?$" },
        ] })
    }
}

/// Money that a budget has, in units of 1e-9.
#[derive(Clone, Copy)]
pub(crate) struct Money(pub(crate) u64);

impl Money {
    const PLACES: u32 = 9;
    /// Two thousand million of the currency.
    const MOST: u64 = 2_000_000_000_000_000_000;
}

impl Written for Money {
    const TAKES: Takes = Takes::Either;

    fn read(text: &str) -> Result<Self, Problem> {
        let too_much = || Problem::new("is too much", "write 2000000000 or less");
        let Some((whole, part)) = decimal(text) else {
            let hint = "write a plain decimal, such as 50000 or 0.50; its currency stands beside \
                        it, as in currency: EUR";
            return Err(Problem::new("is not an amount of money", hint));
        };
        let places = u32::try_from(part.len()).unwrap_or(u32::MAX);
        let Some(shift) = Self::PLACES.checked_sub(places) else {
            let is = "has more than nine decimal places";
            return Err(Problem::new(is, "write fewer"));
        };
        let nanos = times(&format!("{whole}{part}"), 10_u64.pow(shift));
        match nanos.ok_or_else(too_much)? {
            0 => Err(Problem::new("would let nothing through", "write more")),
            nanos if nanos <= Self::MOST => Ok(Self(nanos)),
            _ => Err(too_much()),
        }
    }

    fn schema() -> Value {
        json!({ "anyOf": [
            { "type": "number", "exclusiveMinimum": 0 },
            { "type": "string", "pattern": "^[0-9]{1,10}([.][0-9]{1,9})?$" },
        ] })
    }
}

/// A share in percent, with at most one decimal: kept in thousandths.
#[derive(Clone, Copy)]
pub(crate) struct Percent(pub(crate) u64);

impl Written for Percent {
    const TAKES: Takes = Takes::Number;

    fn read(text: &str) -> Result<Self, Problem> {
        let parts = decimal(text).filter(|(_, tenths)| tenths.len() <= 1);
        let tenths = parts.and_then(|(whole, tenths)| format!("{whole}{tenths:0<1}").parse().ok());
        tenths
            .filter(|tenths| *tenths <= 1000)
            .map(Self)
            .ok_or_else(|| {
                let hint = "write 0 to 100, with at most one decimal";
                Problem::new("is not a percentage", hint)
            })
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 100 })
    }
}

/// A share from 0 to 1, in millionths.
#[derive(Clone, Copy)]
pub(crate) struct Ratio(pub(crate) u32);

impl Written for Ratio {
    const TAKES: Takes = Takes::Either;

    fn read(text: &str) -> Result<Self, Problem> {
        let wrong = || Problem::new("is not a share", "write 0 to 1, such as 0.05");
        let (whole, part) = decimal(text).ok_or_else(wrong)?;
        if part.len() > 6 {
            let hint = "write at most six decimal places";
            return Err(Problem::new("is finer than a millionth", hint));
        }
        match format!("{whole}{part:0<6}").parse::<u32>() {
            Ok(millionths) if millionths <= 1_000_000 => Ok(Self(millionths)),
            _ => Err(wrong()),
        }
    }

    fn schema() -> Value {
        json!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

/// How many tokens a price is for: a power of ten.
#[derive(Clone, Copy)]
pub(crate) struct PricePer(pub(crate) u32);

impl Written for PricePer {
    const TAKES: Takes = Takes::Either;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "1" => Ok(Self(0)),
            "1K" | "1000" => Ok(Self(3)),
            "1M" | "1000000" => Ok(Self(6)),
            _ => Err(Problem::new(
                "is not a number of tokens to price by",
                "write 1, 1K or 1M",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": [1, 1000, 1_000_000, "1", "1K", "1M", "1000", "1000000"] })
    }
}
