//! What a person reads: each case with what had to hold, what was found, and the lines that prove it.
//!
//! Invariant: at most eighty columns, and nothing that a terminal would obey, whatever a gateway answered.
//! Not here: the outcomes (`result`).

use std::io::IsTerminal;

use super::result::{CaseOutcome, Outcome, Report};
use crate::text::{WIDTH, add, printable, wrapped};

const INDENT: usize = 11;

/// Whether words may be coloured: on a terminal, unless `NO_COLOR` is set.
pub(super) fn colours(out: &impl IsTerminal) -> bool {
    out.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// The page.
pub(super) fn page(report: &Report, colours: bool) -> String {
    let mut out = String::new();
    add!(
        out,
        "{}",
        folded(&format!("{} against {}", report.suite, report.target), 2)
    );
    add!(out);
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
    add!(out, "{}", folded(&summary, 2));
    if let Some(says) = &report.unreachable {
        add!(out, "{}", folded(&format!("unreachable: {says}"), 2));
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
    let title = folded(&format!("{word}{padding}{}", case.name), 7);
    if colours {
        let rest = title.strip_prefix(word).unwrap_or(&title);
        add!(out, "\x1b[{colour}m{word}\x1b[0m{rest}");
    } else {
        add!(out, "{title}");
    }
    line(out, "expected", &case.expected);
    line(out, "got", &case.got);
    for evidence in &case.evidence {
        add!(out, "{}", folded(&format!("  - {evidence}"), 4));
    }
    add!(out);
}

fn line(out: &mut String, what: &str, text: &str) {
    add!(out, "{}", folded(&format!("  {what:<8} {text}"), INDENT));
}

/// Lines broken between words, and within words that are longer than a line.
fn folded(text: &str, indent: usize) -> String {
    let text = wrapped(&printable(text), indent);
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut rest: Vec<char> = line.chars().collect();
        while rest.len() > WIDTH {
            let more = rest.split_off(WIDTH);
            lines.push(rest.into_iter().collect::<String>());
            rest = std::iter::repeat_n(' ', indent).chain(more).collect();
        }
        lines.push(rest.into_iter().collect());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests;
