//! What this audit must see, and what it must not take for a fault.

use std::time::{Duration, Instant};

use engine::ground_truth::Entry;

use super::Tally;
use crate::audit::aborts::client::{Left, Phase, Way};
use crate::audit::rows::Row;
use crate::audit::verdict::Verdict;

fn row(outcome: &str, source: &str, completion: u64) -> Row {
    Row {
        request_id: "audit-0".into(),
        state: "settled".into(),
        outcome: Some(outcome.into()),
        prompt_tokens: Some(5),
        prompt_source: Some(source.into()),
        completion_tokens: Some(completion),
        completion_source: Some(source.into()),
        attempts: Some(1),
        estimate_reason: None,
        unconfirmed_attempts: None,
        at_least_tokens: None,
        at_most_tokens: None,
    }
}

/// Whether it holds: one client got four events and left, the engine had made six and saw it so much later.
fn holds(drains: bool, way: Way, rows: &[Row], later: Duration) -> bool {
    let now = Instant::now();
    let left = Left {
        id: "audit-0".into(),
        way,
        phase: Phase::Streaming,
        at: Some(now),
        status: 200,
        events: 4,
        text: "one two three".into(),
    };
    let entry = Entry {
        id: "audit-0".into(),
        prompt_tokens: 5,
        completion_tokens: 6,
        whole: drains,
        began: now,
        ended: now + later,
    };
    let mut tally = Tally::new(drains, 400, vec![left], vec![entry]);
    rows.iter().for_each(|row| tally.row(row));
    let mut verdict = Verdict::new("test", 0);
    tally.tell(&mut verdict, Duration::from_millis(100));
    verdict.holds
}

const SOON: Duration = Duration::from_millis(3);

#[test]
fn a_row_within_one_of_what_was_received_holds_and_no_other() {
    for (source, right) in [("estimated", 4), ("counted", 3)] {
        for said in 0..8_u64 {
            let rows = [row("aborted", source, said)];
            let is_near = said.abs_diff(right) <= 1;
            assert_eq!(holds(false, Way::Reading, &rows, SOON), is_near, "{said}");
            // Who closes at once cannot know how much more was on its way.
            let may_be = said + 1 >= right;
            assert_eq!(holds(false, Way::AtOnce, &rows, SOON), may_be, "{said}");
        }
    }
}

#[test]
fn a_missing_a_doubled_and_a_wrong_row_are_seen_and_a_late_cancel() {
    let good = || row("aborted", "estimated", 4);
    assert!(holds(false, Way::Reading, &[good()], SOON));
    assert!(!holds(false, Way::Reading, &[], SOON));
    assert!(!holds(false, Way::Reading, &[good(), good()], SOON));
    assert!(!holds(
        false,
        Way::Reading,
        &[row("completed", "estimated", 4)],
        SOON
    ));
    assert!(!holds(
        false,
        Way::Reading,
        &[good()],
        Duration::from_millis(101)
    ));
}

#[test]
fn a_drained_row_says_what_the_engine_says() {
    assert!(holds(
        true,
        Way::AtOnce,
        &[row("aborted", "reported", 6)],
        SOON
    ));
    assert!(!holds(
        true,
        Way::AtOnce,
        &[row("aborted", "reported", 4)],
        SOON
    ));
    assert!(!holds(
        true,
        Way::AtOnce,
        &[row("aborted", "estimated", 4)],
        SOON
    ));
}
