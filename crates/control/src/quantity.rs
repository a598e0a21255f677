//! Amounts and times as Kubernetes writes them.

use crate::fields::Item;
use crate::findings::Findings;
use crate::tree::Tree;

/// Bytes: a number and perhaps `Ki`, `Mi`, `Gi`, `k`, `M` or `G`.
pub(crate) fn bytes(item: &Item<'_>, findings: &mut Findings) -> Option<Tree> {
    let text = raw(item)?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit {
        "" => Some(1),
        "Ki" => Some(1 << 10),
        "Mi" => Some(1 << 20),
        "Gi" => Some(1 << 30),
        "k" => Some(1_000),
        "M" => Some(1_000_000),
        "G" => Some(1_000_000_000),
        _ => None,
    };
    let found = factor.and_then(|factor: u64| number.parse::<u64>().ok()?.checked_mul(factor));
    if found.is_none() {
        findings.fault(
            &item.spot,
            "is no amount of bytes that can be read here",
            "write it such as 50Mi",
        );
    }
    found.map(|bytes| Tree::number(bytes).of(&item.spot))
}

/// A time of Go's or of the Gateway API's: numbers with `h`, `m`, `s` and `ms`. In milliseconds.
pub(crate) fn millis(item: &Item<'_>, findings: &mut Findings) -> Option<u64> {
    let found = raw(item).and_then(parsed);
    if found.is_none() {
        findings.fault(
            &item.spot,
            "is no duration that can be read here",
            "write it such as 30s or 1m30s",
        );
    }
    found
}

/// As our document writes it.
pub(crate) fn span(millis: u64) -> Tree {
    let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let whole = units
        .iter()
        .find(|(unit, _)| millis > 0 && millis.is_multiple_of(*unit));
    Tree::Plain(match whole {
        Some((unit, name)) => format!("{}{name}", millis / unit),
        None => format!("{millis}ms"),
    })
}

fn parsed(mut text: &str) -> Option<u64> {
    let mut sum = 0_u64;
    if text.is_empty() {
        return None;
    }
    while !text.is_empty() {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = text.split_at_checked(digits)?;
        let letters = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        let (unit, rest) = rest.split_at_checked(letters)?;
        let factor = match unit {
            "h" => 3_600_000,
            "m" => 60_000,
            "s" => 1_000,
            "ms" => 1,
            _ => return None,
        };
        sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(factor)?)?;
        text = rest;
    }
    Some(sum)
}

fn raw<'n>(item: &Item<'n>) -> Option<&'n str> {
    match &item.node.value {
        config::Value::Scalar(scalar) => Some(&scalar.raw),
        config::Value::List(_) | config::Value::Map(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{parsed, span};

    #[test]
    fn times_of_several_units_are_summed_and_said_in_the_largest_that_fits() {
        let said = |text| parsed(text).map(|ms| span(ms).flow());
        for (written, ours) in [
            ("30s", Some("30s")),
            ("1m30s", Some("90s")),
            ("100ms", Some("100ms")),
            ("1h", Some("1h")),
            ("10", None),
            ("1d", None),
            ("", None),
            ("99999999999999999999s", None),
        ] {
            assert_eq!(said(written).as_deref(), ours, "{written}");
        }
    }
}
