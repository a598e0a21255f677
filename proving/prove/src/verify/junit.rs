//! JUnit's XML, as CI systems read it.
//!
//! Invariant: well formed, whatever a gateway answered: characters that XML 1.0 does not know are left out.
//! Not here: the outcomes (`result`).

use std::fmt::Write as _;

use super::result::{CaseOutcome, Outcome, Report};

/// The whole file.
pub(super) fn xml(report: &Report) -> String {
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\" time=\"{:.3}\"",
        report.cases.len(),
        report.count(Outcome::Failed),
        report.count(Outcome::Error),
        report.seconds()
    );
    let name = escaped(&report.suite);
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(out, "<testsuites name=\"prove verify\" {counts}>");
    let _ = writeln!(out, "  <testsuite name=\"{name}\" {counts}>");
    let target = escaped(&report.target);
    let _ = writeln!(
        out,
        "    <properties><property name=\"target\" value=\"{target}\"/></properties>"
    );
    for told in &report.cases {
        case(&mut out, &name, told);
    }
    out.push_str("  </testsuite>\n</testsuites>\n");
    out
}

fn case(out: &mut String, suite: &str, told: &CaseOutcome) {
    let case = &told.case;
    let (name, seconds) = (escaped(&case.name), case.seconds);
    let _ = writeln!(
        out,
        "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"{seconds:.3}\">"
    );
    let element = match told.outcome {
        Outcome::Passed => None,
        Outcome::Failed => Some("failure"),
        Outcome::Error => Some("error"),
    };
    let evidence = escaped(&case.evidence.join("\n"));
    if let Some(element) = element {
        let (expected, got) = (escaped(&case.expected), escaped(&case.got));
        let _ = writeln!(
            out,
            "      <{element} message=\"{got}\">expected: {expected}\ngot: {got}</{element}>"
        );
    }
    if !evidence.is_empty() {
        let _ = writeln!(out, "      <system-out>{evidence}</system-out>");
    }
    out.push_str("    </testcase>\n");
}

/// Text as attributes and elements may hold it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
