//! Eighty columns, and nothing that a terminal would obey.

use super::page;
use crate::report::document::Case;
use crate::verify::result::{CaseOutcome, Outcome, Report};

#[test]
fn no_line_is_longer_than_eighty_columns_and_none_holds_control_characters() {
    let long = format!("said \x1b[2J{} and {}", "x".repeat(300), "word ".repeat(60));
    let case = |outcome| CaseOutcome {
        outcome,
        case: Case {
            name: long.clone(),
            passed: outcome == Outcome::Passed,
            seconds: 1.0,
            expected: long.clone(),
            got: long.clone(),
            evidence: vec![long.clone(), "short".into()],
        },
    };
    let report = Report {
        suite: long.clone(),
        target: long.clone(),
        cases: [Outcome::Passed, Outcome::Failed, Outcome::Error]
            .map(case)
            .into(),
        unreachable: Some(long.clone()),
    };
    let text = page(&report, false);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    for word in [
        "pass ",
        "FAIL ",
        "ERROR ",
        "  - short",
        "1 of 3 cases passed, 1 failed, 1 could",
    ] {
        assert!(text.contains(word), "{word}\n{text}");
    }
    let coloured = page(&report, true);
    assert!(coloured.contains("\x1b[31mFAIL\x1b[0m"), "{coloured}");
}
