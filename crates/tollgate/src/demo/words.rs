//! What a call is told in, line by line or in a picture.
//!
//! Not here: where it stands (`draw`), lines without a picture (`plain`).

use ledger::report::rounded;

use super::view::{Call, Ending, Tokens};

/// Decimals of a cost: a call of the demo costs less than a cent.
const DECIMALS: u32 = 6;

pub(super) fn who(name: &str) -> &str {
    if name.is_empty() {
        "(unregistered)"
    } else {
        name
    }
}

/// How a call ended, in a word.
pub(super) fn ending(call: &Call) -> &'static str {
    match call.ending {
        Ending::Whole => "whole",
        Ending::Streamed => "stream",
        Ending::Refused => "refused",
        Ending::Left => "left",
        Ending::Failed => "failed",
    }
}

pub(super) fn tokens(tokens: Option<Tokens>) -> String {
    tokens.map_or_else(
        || "·".to_owned(),
        |Tokens { input, output }| format!("{input}/{output}"),
    )
}

pub(super) fn cost(pico: i128) -> String {
    rounded(pico, DECIMALS)
}

/// An amount of a limit or a budget.
pub(super) fn amount(of: f64, what: &str) -> String {
    match what {
        "requests" | "tokens" => format!("{of:.0}"),
        _ => format!("{of:.4}"),
    }
}

/// At most so many characters, the last of them `…` where some are left out.
pub(super) fn clipped(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept = text.chars().take(most.saturating_sub(1));
    kept.chain(['…']).take(most).collect()
}
