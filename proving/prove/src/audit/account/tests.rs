//! The audit's own eyes: what it must see, and what it must not take for a fault.

use std::time::Instant;

use engine::ground_truth::Entry;

use super::Account;
use crate::audit::calls::{Heard, Status};
use crate::audit::rows::Row;
use crate::audit::verdict::Verdict;

fn entry(id: &str, prompt_tokens: u64, completion_tokens: u64) -> Entry {
    let now = Instant::now();
    Entry {
        id: id.into(),
        prompt_tokens,
        completion_tokens,
        whole: true,
        began: now,
        ended: now,
    }
}

fn row(id: &str, state: &str, prompt: u64, completion: u64) -> Row {
    let settled = state == "settled";
    let source = settled.then(|| "reported".to_owned());
    Row {
        request_id: id.into(),
        state: state.into(),
        outcome: settled.then(|| "completed".into()),
        prompt_tokens: settled.then_some(prompt),
        prompt_source: source.clone(),
        completion_tokens: settled.then_some(completion),
        completion_source: source,
        attempts: Some(1),
        estimate_reason: None,
        unconfirmed_attempts: None,
        at_least_tokens: (!settled).then_some(prompt),
        at_most_tokens: (!settled).then_some(completion),
    }
}

fn heard(id: &str, status: Status) -> Heard {
    heard_on(0, 0, id, status)
}

fn heard_on(connection: u64, number: u64, id: &str, status: Status) -> Heard {
    Heard {
        id: id.into(),
        number,
        connection,
        status,
    }
}

/// An account of one call that was answered, with these rows.
fn account(rows: &[Row]) -> (Account, bool) {
    let mut account = Account::default();
    account.engine(vec![entry("a-1", 5, 4)]);
    account.heard(vec![heard("a-1", 200)]);
    rows.iter().for_each(|row| account.row(row));
    let mut verdict = Verdict::new("test", 0, false);
    account.tell(&mut verdict);
    let missing = account.missing("a-");
    verdict.none("lost", &missing.lost);
    verdict.none("unsettled", &missing.unsettled);
    verdict.none("invented", &missing.invented);
    (account, verdict.holds)
}

#[test]
fn one_row_that_says_the_same_holds() {
    assert!(account(&[row("a-1", "settled", 5, 4)]).1);
}

#[test]
fn every_kind_of_fault_is_seen() {
    let good = || row("a-1", "settled", 5, 4);
    let faults: [&[Row]; 7] = [
        &[],
        &[good(), good()],
        &[row("a-1", "settled", 5, 3)],
        &[good(), row("a-2", "settled", 5, 4)],
        &[row("a-1", "admitted", 0, 0)],
        &[row("a-1", "indeterminate", 10, 90)],
        &[row("a-1", "indeterminate", 0, 8)],
    ];
    for rows in faults {
        assert!(!account(rows).1, "{rows:?}");
    }
}

#[test]
fn an_indeterminate_row_holds_within_its_bounds_where_nobody_heard_an_answer() {
    let mut account = Account::default();
    account.engine(vec![entry("a-1", 5, 4)]);
    account.heard(vec![heard("a-1", 0), heard("a-2", 0)]);
    account.row(&row("a-1", "indeterminate", 0, 9));
    account.row(&row("a-2", "indeterminate", 0, 9));
    let mut verdict = Verdict::new("test", 0, false);
    account.tell(&mut verdict);
    assert!(verdict.holds, "{verdict:?}");
    let missing = account.missing("a-");
    assert_eq!((missing.lost.count, missing.unsettled.count), (0, 0));
}

#[test]
fn an_answer_that_the_engine_never_gave_is_seen() {
    let mut account = Account::default();
    account.heard(vec![heard("a-1", 200)]);
    assert_eq!(account.missing("a-").invented.count, 1);
    assert_eq!(account.missing("b-").invented.count, 0);
}

#[test]
fn what_a_kill_took_of_a_connection_are_its_last_calls() {
    // Calls of two connections in turn, of which those at these places have a row.
    let outlived = |rows: [bool; 6], last: Status| {
        let mut account = Account::default();
        let id = |n: usize| format!("a-{n}");
        let all = (0..6).map(|n| {
            let status = if n < 4 { 200 } else { last };
            heard_on(n as u64 % 2, n as u64, &id(n), status)
        });
        account.heard(all.collect());
        let kept = rows.iter().enumerate().filter(|(_, has_row)| **has_row);
        kept.for_each(|(n, _)| account.row(&row(&id(n), "settled", 5, 4)));
        account.missing("a-").outlived.count
    };
    assert_eq!(outlived([true; 6], 200), 0);
    assert_eq!(outlived([false; 6], 200), 0);
    assert_eq!(outlived([true, true, false, true, false, true], 200), 0);
    assert_eq!(outlived([true, false, true, true, false, true], 200), 2);
    assert_eq!(outlived([true, true, false, true, true, false], 0), 1);
    // Whoever heard no answer cannot tell whether there was a row to be lost.
    assert_eq!(outlived([true, true, true, true, false, false], 0), 0);
}
