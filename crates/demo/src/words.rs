//! What a call is told in, line by line or in a picture.
//!
//! Not here: where it stands (`draw`), lines without a picture (`plain`).

use ledger::report::rounded;

use super::view::{Call, Ending, Tokens};

/// Decimals of a cost: a call of the demo costs less than a cent.
const DECIMALS: u32 = 6;

/// Characters of a caller's name, so that a line has at most eighty.
pub(crate) const NAME_WIDTH: usize = 17;

/// A caller's name, as much of it as has room.
pub(crate) fn named(name: &str) -> String {
    clipped(who(name), NAME_WIDTH)
}

pub(crate) fn who(name: &str) -> &str {
    if name.is_empty() {
        "(unregistered)"
    } else {
        name
    }
}

/// How a call ended, in a word.
pub(crate) fn ending(call: &Call) -> &'static str {
    match call.ending {
        Ending::Whole => "whole",
        Ending::Streamed => "stream",
        Ending::Refused => "refused",
        Ending::Left => "left",
        Ending::Failed => "failed",
    }
}

pub(crate) fn tokens(tokens: Option<Tokens>) -> String {
    tokens.map_or_else(
        || "·".to_owned(),
        |Tokens { input, output }| format!("{input}/{output}"),
    )
}

pub(crate) fn cost(pico: i128) -> String {
    rounded(pico, DECIMALS)
}

/// An amount of a limit or a budget.
pub(crate) fn amount(of: f64, what: &str) -> String {
    match what {
        "requests" | "tokens" => format!("{of:.0}"),
        _ => format!("{of:.4}"),
    }
}

/// A number in at most six characters, while it is below a thousand millions.
#[expect(clippy::cast_precision_loss, reason = "a tenth is left of it")]
pub(crate) fn short(n: u64) -> String {
    match n {
        0..=99_999 => n.to_string(),
        100_000..=999_949 => format!("{:.1}K", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// At most so many characters, the last of them `…` where some are left out.
pub(crate) fn clipped(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept = text.chars().take(most.saturating_sub(1));
    kept.chain(['…']).take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::{clipped, short};

    #[test]
    fn numbers_and_texts_keep_to_their_room() {
        for (n, said) in [
            (99_999, "99999"),
            (100_000, "100.0K"),
            (999_949, "999.9K"),
            (999_950, "1.0M"),
            (999_900_000, "999.9M"),
        ] {
            assert_eq!(short(n), said);
        }
        for most in 0..8 {
            assert!(clipped("füße auf", most).chars().count() <= most);
        }
        assert_eq!(clipped("füße", 4), "füße");
        assert_eq!(clipped("füße", 3), "fü…");
    }
}
