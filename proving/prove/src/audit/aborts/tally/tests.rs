//! What this audit must see, and what it must not take for a fault.

use std::time::{Duration, Instant};

use engine::ground_truth::Entry;

use super::Tally;
use crate::audit::aborts::client::{Left, Phase, Way};
use crate::audit::rows::Row;
use crate::audit::verdict::Verdict;
use crate::host::stalls::Stalls;

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
    holds_where(drains, way, rows, later, (6, None))
}

/// The same, where the engine made so many tokens, began a second before the client left, and the machine stood still in
/// these milliseconds since then.
fn holds_where(
    drains: bool,
    way: Way,
    rows: &[Row],
    later: Duration,
    (made, still): (u64, Option<[u64; 2]>),
) -> bool {
    let began = Instant::now();
    let at = |ms| began + Duration::from_millis(ms);
    let (left, entry) = (
        left(at(1000)),
        entry(drains, made, (began, at(1000) + later)),
    );
    let left = Left { way, ..left };
    let stalls = Stalls::of(still.map(|[from, to]| (at(from), at(to))));
    let tally = Tally::new((drains, 400), true, vec![left], vec![entry], stalls);
    told(tally, rows, true)
}

fn told(mut tally: Tally, rows: &[Row], judges_times: bool) -> bool {
    rows.iter().for_each(|row| tally.row(row));
    let mut verdict = Verdict::new("test", 0, judges_times);
    tally.tell(&mut verdict, Duration::from_millis(100));
    verdict.holds
}

/// A client that left a stream then, after four events.
fn left(at: Instant) -> Left {
    Left {
        id: "audit-0".into(),
        way: Way::Reading,
        phase: Phase::Streaming,
        at: Some(at),
        status: 200,
        events: 4,
        text: "one two three".into(),
    }
}

/// What the engine says of its call.
fn entry(whole: bool, made: u64, (began, ended): (Instant, Instant)) -> Entry {
    Entry {
        id: "audit-0".into(),
        prompt_tokens: 5,
        completion_tokens: made,
        whole,
        began,
        ended,
    }
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

#[test]
fn what_came_late_while_the_machine_stood_still_is_not_the_gates_doing() {
    let rows = [row("aborted", "estimated", 4)];
    let late = |ms| Duration::from_millis(ms);
    let holds = |later, made, still| holds_where(false, Way::Reading, &rows, later, (made, still));
    // The cancel: 250 ms after the client left, of which so many the machine stood still.
    for (still, is_right) in [
        (None, false),
        (Some([1020, 1200]), true),
        (Some([1020, 1160]), false),
        (Some([700, 1000]), false),
        (Some([1250, 1500]), false),
    ] {
        assert_eq!(holds(late(250), 6, still), is_right, "{still:?}");
    }
    // What the engine made: 4 tokens in the row, 24 on their way, and 50 due in a stall of 100 ms before the client left.
    assert!(!holds(SOON, 4 + 24 + 10, None));
    assert!(holds(SOON, 4 + 24 + 50, Some([850, 950])));
    assert!(!holds(SOON, 4 + 24 + 60, Some([850, 950])));
    // Of a stall that was over for half a second, nothing is on its way any more.
    assert!(!holds(SOON, 4 + 24 + 50, Some([390, 490])));
    assert!(!holds(SOON, 4 + 24 + 50, Some([1020, 1120])));
}

#[test]
fn where_times_are_told_a_slow_machine_is_no_violation_and_a_call_that_was_not_cancelled_is() {
    let began = Instant::now();
    let at = began + Duration::from_secs(1);
    let holds = |drains, whole, outcome: &str, completion, source: &str| {
        // The gate had no core for two seconds, in which the engine made what it could.
        let entry = entry(whole, 390, (began, at + Duration::from_secs(2)));
        let tally = Tally::new(
            (drains, 400),
            false,
            vec![left(at)],
            vec![entry],
            Stalls::default(),
        );
        told(tally, &[row(outcome, source, completion)], false)
    };
    assert!(holds(false, false, "aborted", 4, "estimated"));
    assert!(
        !holds(false, false, "aborted", 6, "estimated"),
        "not received"
    );
    assert!(
        !holds(false, true, "aborted", 4, "estimated"),
        "never cancelled"
    );
    for outcome in ["aborted", "completed"] {
        assert!(holds(true, true, outcome, 390, "reported"), "{outcome}");
    }
    assert!(!holds(true, true, "failed", 390, "reported"));
}
