//! What a person reads: each case with what had to hold, what was found, and the lines that prove it.
//!
//! Invariant: at most eighty columns, and nothing that a terminal would obey, whatever a gateway answered.
//! Not here: the outcomes (`result`).

use super::result::{CaseOutcome, Outcome, Report};
use crate::text::{WIDTH, add, folded};

const INDENT: usize = 11;

/// The page.
pub(super) fn page(report: &Report, colours: bool) -> String {
    let mut out = String::new();
    let title = format!("{} against {}", report.suite, report.target);
    add!(out, "{}\n", folded(WIDTH, &title, 2));
    for told in &report.cases {
        case(&mut out, told, colours);
    }
    let (passed, all) = (report.count(Outcome::Passed), report.cases.len());
    let failed = report.count(Outcome::Failed);
    let errors = report.count(Outcome::Error);
    let summary = format!(
        "{passed} of {all} cases passed, {failed} failed, {errors} could not be settled, {:.1} s",
        report.seconds()
    );
    add!(out, "{}", folded(WIDTH, &summary, 2));
    if let Some(says) = &report.unreachable {
        add!(out, "{}", folded(WIDTH, &format!("unreachable: {says}"), 2));
    }
    out
}

fn case(out: &mut String, told: &CaseOutcome, colours: bool) {
    let (word, colour) = match told.outcome {
        Outcome::Passed => ("pass", 32),
        Outcome::Failed => ("FAIL", 31),
        Outcome::Error => ("ERROR", 33),
    };
    let padding = " ".repeat(7 - word.len());
    let case = &told.case;
    let title = folded(WIDTH, &format!("{word}{padding}{}", case.name), 7);
    if colours {
        let rest = title.strip_prefix(word).unwrap_or(&title);
        add!(out, "\x1b[{colour}m{word}\x1b[0m{rest}");
    } else {
        add!(out, "{title}");
    }
    line(out, "expected", &case.expected);
    line(out, "got", &case.got);
    for evidence in &case.evidence {
        add!(out, "{}", folded(WIDTH, &format!("  - {evidence}"), 4));
    }
    add!(out);
}

fn line(out: &mut String, what: &str, text: &str) {
    add!(
        out,
        "{}",
        folded(WIDTH, &format!("  {what:<8} {text}"), INDENT)
    );
}

#[cfg(test)]
mod tests;
