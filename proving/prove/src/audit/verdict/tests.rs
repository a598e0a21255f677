//! What a reader sees.

use super::{Found, Verdict};

#[test]
fn one_violation_makes_it_not_hold_and_is_told() {
    let mut verdict = Verdict::new("kills", 7, false);
    verdict.tell("calls", 1_234_567_u64);
    verdict.none("lost", &Found::default());
    assert!(verdict.holds);
    let mut found = Found::default();
    (0..5).for_each(|n| found.add(|| format!("call {n}")));
    verdict.none("doubled", &found);
    let table = verdict.table();
    assert!(
        !verdict.holds && table.ends_with("it does not hold"),
        "{table}"
    );
    assert!(
        table.contains("1,234,567") && table.contains("doubled  "),
        "{table}"
    );
    assert!(
        table.contains("! doubled: call 2") && !table.contains("call 3"),
        "{table}"
    );
}

#[test]
fn times_are_told_and_judged_where_that_is_asked_for() {
    for judges_times in [false, true] {
        let mut verdict = Verdict::new("aborts", 7, judges_times);
        verdict.in_time("soon enough, ms", 3_u64, true);
        assert!(verdict.holds);
        verdict.in_time("too late, ms", 300_u64, false);
        assert_eq!(verdict.holds, !judges_times);
        let mut verdict = Verdict::new("aborts", 7, judges_times);
        let mut found = Found::default();
        verdict.none_in_time("rows too low", &found);
        found.add(|| "one".into());
        assert!(verdict.holds);
        verdict.none_in_time("rows too low", &found);
        assert_eq!(verdict.holds, !judges_times);
        let table = verdict.table();
        assert_eq!(
            table.contains("! rows too low: one"),
            judges_times,
            "{table}"
        );
    }
}

#[test]
fn a_verdict_fits_eighty_columns_whatever_a_command_said() {
    let mut verdict = Verdict::new("kills", 7, false);
    let said =
        "every row is as it was written: 1002040 rows after row 0, and more words of a command";
    verdict.hold("the chain of hashes", said, true);
    verdict.tell(
        "of these, answered at most so long before a kill, ms",
        82_u64,
    );
    verdict.tell(
        "engine tokens in settled rows, prompt and completion, of all calls",
        1_234_567_u64,
    );
    let mut found = Found::default();
    found.add(|| format!("Row {{ {} }}", "request_id: a-long-name, ".repeat(8)));
    verdict.none("rows further off, or not as the engine counted", &found);
    let table = verdict.table();
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line:?}\n{table}");
    }
    assert!(
        table.contains("1002040 rows") && table.contains("1,234,567"),
        "{table}"
    );
}
