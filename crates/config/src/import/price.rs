//! Prices of a token, which become prices of a million.
//!
//! Invariant: exact: digits are moved, and nothing passes through a float.

use super::comment;
use super::read::{Given, Section, flow};
use crate::decode::Findings;

/// Members that are read here, and what a price here calls them.
const RATES: [(&str, &str); 8] = [
    ("input_cost_per_token", "input"),
    ("output_cost_per_token", "output"),
    ("cache_read_input_token_cost", "cached_input"),
    ("cache_creation_input_token_cost", "cache_write_5m"),
    (
        "cache_creation_input_token_cost_above_1hr",
        "cache_write_1h",
    ),
    ("input_cost_per_audio_token", "audio_input"),
    ("output_cost_per_reasoning_token", "reasoning"),
    ("output_cost_per_audio_token", "audio_output"),
];

pub(super) const READ: &[&str] = &[
    "input_cost_per_token",
    "output_cost_per_token",
    "cache_read_input_token_cost",
    "cache_creation_input_token_cost",
    "cache_creation_input_token_cost_above_1hr",
    "input_cost_per_audio_token",
    "output_cost_per_reasoning_token",
    "output_cost_per_audio_token",
];

/// Finer than this no price of a token is.
const PICO_PLACES: i64 = 12;
/// From a token to a million.
const MILLION_PLACES: i64 = 6;

/// What a deployment costs, as a mapping of the document.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Price(pub(super) Vec<(String, String)>);

impl Price {
    /// What is said of it beside its address, or beside its model.
    pub(super) fn read(
        params: &Section<'_>,
        info: &Section<'_>,
        notes: &mut Vec<String>,
        findings: &mut Findings,
    ) -> Option<Self> {
        let mut rates = Vec::new();
        for (key, name) in RATES {
            let section = if params.get(key).is_some() {
                params
            } else {
                info
            };
            let Some(given) = section.text(key, findings) else {
                continue;
            };
            let place = section.place_of(key);
            let Given::Text(text) = given else {
                notes.push(comment::of(
                    &place,
                    "a price that a variable holds is left out.",
                ));
                continue;
            };
            match million(&text) {
                Some(Ok(price)) => rates.push((name.to_owned(), price)),
                Some(Err(())) => {
                    let says = "finer than a millionth of a millionth for a token: left out.";
                    notes.push(comment::of(&place, says));
                }
                None => findings.fault(&place, "is not a price", "write a decimal, 0 or more"),
            }
        }
        let has = |name: &str| rates.iter().any(|(rate, _)| rate == name);
        match (has("input"), has("output")) {
            (true, true) => Some(Self(rates)),
            (false, false) if rates.is_empty() => None,
            // Embeddings have no output.
            (true, false) => {
                rates.insert(1, ("output".to_owned(), "0".to_owned()));
                Some(Self(rates))
            }
            (false, _) => {
                let says = "prices need one of prompt tokens: write them under `prices`.";
                notes.push(comment::of(&params.place, says));
                None
            }
        }
    }

    pub(super) fn flow(&self) -> String {
        flow(&self.0)
    }
}

/// A decimal times a million; `None` where it is none, and a fault where it is too fine.
fn million(text: &str) -> Option<Result<String, ()>> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{part}");
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if !is_number || !(-40..=12).contains(&exponent) || digits.len() > 40 {
        return None;
    }
    let places = i64::try_from(part.len()).ok()? - exponent;
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(Ok("0".to_owned()));
    }
    let significant = digits.trim_end_matches('0');
    let zeros = i64::try_from(digits.len() - significant.len()).ok()?;
    if places - zeros > PICO_PLACES {
        return Some(Err(()));
    }
    Some(Ok(with_point(significant, places - zeros - MILLION_PLACES)))
}

/// Digits of which so many stand behind the point; fewer than none are zeros.
fn with_point(digits: &str, places: i64) -> String {
    let Ok(places) = usize::try_from(places) else {
        let zeros = usize::try_from(-places).unwrap_or(0);
        return format!("{digits}{}", "0".repeat(zeros));
    };
    if places == 0 {
        return digits.to_owned();
    }
    let padded = format!("{digits:0>width$}", width = places + 1);
    let (whole, part) = padded.split_at(padded.len() - places);
    format!("{whole}.{part}")
}

#[cfg(test)]
mod tests {
    use super::million;

    #[test]
    fn a_price_of_a_token_is_moved_to_one_of_a_million() {
        for (token, price) in [
            ("0.00000125", "1.25"),
            ("1.25e-06", "1.25"),
            ("5e-7", "0.5"),
            ("0.000421", "421"),
            ("3", "3000000"),
            ("0", "0"),
            ("0.0", "0"),
            ("0.000000000001", "0.000001"),
        ] {
            assert_eq!(million(token), Some(Ok(price.to_owned())), "{token}");
        }
        assert_eq!(million("0.0000000000001"), Some(Err(())));
        for none in ["", "-1", "cheap", "1e", "1.2.3", "1e99"] {
            assert_eq!(million(none), None, "{none:?}");
        }
    }
}
