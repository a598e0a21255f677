//! Numbers and sums as people read them.
//!
//! Invariant: an amount that is there never reads as nothing, and what is not in a sum is said.
//! Not here: what is summed (`report`), exact amounts (`money`).

use super::{Totals, rounded};

/// To four decimals; what is less is said to be less, so that it is not taken for nothing.
pub(super) fn amount(pico: i128) -> String {
    let text = rounded(pico, 4);
    if pico > 0 && text == "0.0000" {
        return "<0.0001".to_owned();
    }
    text
}

/// Narrow spaces between thousands, which no country takes for a decimal mark.
pub(super) fn grouped(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut out = String::new();
    for (at, c) in number.char_indices() {
        let is_between = at > 0 && at < whole && (whole - at).is_multiple_of(3);
        if is_between && number[..at].ends_with(|c: char| c.is_ascii_digit()) {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    out
}

/// What is not in the sum, a sentence for each reason.
pub(super) fn missing(totals: &Totals) -> Vec<String> {
    let mut missing = Vec::new();
    if totals.unpriced > 0 {
        let n = exchanges(totals.unpriced);
        missing.push(format!(
            "Not in the cost: {n} with tokens that no known price covers."
        ));
    }
    if totals.indeterminate > 0 {
        let n = exchanges(totals.indeterminate);
        let (least, most) = (totals.at_least.to_string(), totals.at_most.to_string());
        missing.push(format!(
            "Not in tokens and cost: {n} incomplete, {} to {} tokens where bounds are known.",
            grouped(&least),
            grouped(&most)
        ));
    }
    missing
}

fn exchanges(n: u64) -> String {
    let are = if n == 1 { "exchange" } else { "exchanges" };
    format!("{} {are}", grouped(&n.to_string()))
}
