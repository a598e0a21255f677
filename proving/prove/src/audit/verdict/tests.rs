//! What holds and what is told.

//! What a reader sees.

use super::{Found, Verdict};

#[test]
fn one_violation_makes_it_not_hold_and_is_told() {
    let mut verdict = Verdict::new("kills", 7);
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
