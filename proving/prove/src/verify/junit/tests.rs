//! The file is well formed, whatever is in it.

use super::{escaped, xml};
use crate::report::document::Case;
use crate::verify::result::{CaseOutcome, Outcome, Report};

fn told(outcome: Outcome, name: &str, got: &str) -> CaseOutcome {
    CaseOutcome {
        outcome,
        case: Case {
            name: name.into(),
            passed: outcome == Outcome::Passed,
            seconds: 0.25,
            expected: "a < b".into(),
            got: got.into(),
            evidence: vec!["one & two".into()],
        },
    }
}

#[test]
fn cases_are_counted_and_each_says_what_was_expected_and_found() {
    let report = Report {
        suite: "the \"suite\"".into(),
        target: "http://x".into(),
        cases: vec![
            told(Outcome::Passed, "first", "fine"),
            told(Outcome::Failed, "second", "c > d\u{1b}[2J\0"),
            told(Outcome::Error, "third", "nobody there"),
        ],
        unreachable: Some("nobody there".into()),
    };
    let text = xml(&report);
    for part in [
        "<testsuites name=\"prove verify\" tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"0\" time=\"0.750\">",
        "<testsuite name=\"the &quot;suite&quot;\" tests=\"3\"",
        "<testcase classname=\"the &quot;suite&quot;\" name=\"first\" time=\"0.250\">\n      <system-out>one &amp; two</system-out>",
        "<failure message=\"c &gt; d[2J\">expected: a &lt; b\ngot: c &gt; d[2J</failure>",
        "<error message=\"nobody there\">",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(
        text.matches("<testcase").count(),
        text.matches("</testcase>").count()
    );
    assert_eq!((report.exit_code(), report.verdict()), (5, "unreachable"));
}

#[test]
fn what_xml_cannot_hold_is_left_out_or_escaped() {
    assert_eq!(
        escaped("<a b='c'>\u{0}\u{b}\u{7f}\u{ffff}\u{85}ü\t\n"),
        "&lt;a b=&apos;c&apos;&gt;ü\t\n"
    );
}
