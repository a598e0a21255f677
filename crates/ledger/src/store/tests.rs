//! One row for each record, whatever comes twice; and the chain finds what was changed.

use policy::record::{Count, Outcome};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rusqlite::Connection;

use super::{Note, Store};
use crate::chain::Hash;
use crate::entry::{Ending, Opening};
use crate::id::RecordId;
use crate::row::{Admission, Named, Progress, Settlement, Witnesses};
use crate::schema::{connect, make};
use crate::verify::{Expected, Finding, verify};

pub(crate) fn id(n: u64) -> RecordId {
    RecordId(u128::from(n).to_be_bytes())
}

pub(crate) fn admission(n: u64) -> Admission {
    Admission {
        id: id(n),
        started_unix_ms: 1000 + n,
        request_id: format!("request-{n}").into(),
        named: Named {
            tool: None,
            workload: Some("ide".into()),
            budget_group: Some("engineering".into()),
            route: Some("on-prem".into()),
            backend: Some("vllm".into()),
            ..Named::default()
        },
        model_asked: Some("gpt-oss-120b".into()),
        model_sent: None,
        reserved: 500,
        at_most: Some(500),
    }
}

pub(crate) fn settlement(n: u64) -> Settlement {
    let progress = Progress {
        id: id(n),
        tokens: 0,
        bytes_out: 0,
    };
    let mut row = Settlement::indeterminate(admission(n), progress, 2000 + n);
    row.state = crate::State::Settled;
    row.record.outcome = Outcome::Completed;
    row.record.status = 200;
    row.record.code = "";
    row.record.tokens.prompt = Count::Reported(n % 100);
    row.prompt = Witnesses {
        reported: Some(n % 100),
        counted: Some(n % 100),
        ..Witnesses::default()
    };
    row
}

fn store() -> Store {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    make(&path, [7; 16]).expect("makes tables");
    let db = connect(&path).expect("opens");
    // The file lives on without its name for as long as the connection is open.
    Store::new(db, &path).expect("has a head")
}

fn settle(store: &mut Store, ids: impl IntoIterator<Item = u64>) {
    let notes: Vec<_> = ids
        .into_iter()
        .map(|n| Note::Settle(Ending::of(&settlement(n), "test")))
        .collect();
    store.apply(notes.iter()).expect("writes");
}

fn findings(db: &Connection) -> Vec<Finding> {
    verify(db, None).expect("reads").findings
}

fn count(db: &Connection, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    db.query_row(&sql, [], |row| row.get(0)).expect("counts")
}

#[test]
fn an_untouched_chain_verifies() {
    let mut store = store();
    settle(&mut store, 1..=100);
    settle(&mut store, 50..=150);
    let verified = verify(&store.db, None).expect("reads");
    assert_eq!((verified.rows, verified.findings), (150, vec![]));
    assert_eq!(verified.head, store.head);
}

#[test]
fn every_kind_of_tampering_is_found_and_named() {
    let last = id(100).to_string();
    let altered = |seq: i64| Finding::Altered {
        seq,
        id: id(seq.unsigned_abs()).to_string(),
    };
    let copy = "INSERT INTO settled (seq,id,state,hash) SELECT 101, x'aa', state, hash FROM settled WHERE seq = 100";
    let cases = [
        (
            "UPDATE settled SET prompt_tokens = prompt_tokens + 1 WHERE seq = 40",
            altered(40),
        ),
        (
            "UPDATE settled SET workload = 'other' WHERE seq = 1",
            altered(1),
        ),
        (
            "UPDATE settled SET cost_pico = 0 WHERE seq = 100",
            altered(100),
        ),
        (
            "UPDATE settled SET hash = zeroblob(32) WHERE seq = 7",
            altered(7),
        ),
        (
            "DELETE FROM settled WHERE seq = 40",
            Finding::Removed { from: 40, to: 40 },
        ),
        (
            "DELETE FROM settled WHERE seq < 3",
            Finding::Removed { from: 1, to: 2 },
        ),
        (
            "DELETE FROM settled WHERE seq > 98",
            Finding::Removed { from: 99, to: 100 },
        ),
        (
            copy,
            Finding::Inserted {
                seq: 101,
                id: "aa".into(),
            },
        ),
        (
            "UPDATE settled SET seq = -5 WHERE seq = 100",
            Finding::Inserted { seq: -5, id: last },
        ),
    ];
    for (sql, expected) in cases {
        let mut store = store();
        settle(&mut store, 1..=100);
        assert!(store.db.execute(sql, []).expect(sql) > 0, "{sql}");
        let found = findings(&store.db);
        assert!(found.contains(&expected), "{sql}: {found:?}");
    }
}

#[test]
fn a_chain_written_anew_is_found_by_a_head_kept_elsewhere() {
    let mut kept = store();
    settle(&mut kept, 1..=10);
    let mut forged = store();
    settle(&mut forged, (1..=10).filter(|n| *n != 4));
    let of = |store: &Store, text: &str| {
        let expected = Expected::parse(text).expect("a head");
        verify(&store.db, Some(expected)).expect("reads").findings
    };
    let (head, hash) = (kept.head.to_string(), kept.head.hash.to_string());
    assert_eq!((of(&kept, &head), of(&kept, &hash)), (vec![], vec![]));
    let other = Finding::OtherHistory {
        expected: kept.head.hash,
    };
    assert_eq!(of(&forged, &hash), std::slice::from_ref(&other));
    // The forged chain is one shorter; a head with its number says that the end is missing.
    let written = kept.head;
    assert_eq!(of(&forged, &head), [Finding::SetBack { written, ends: 9 }]);
    assert_eq!(of(&kept, &format!("9:{hash}")), [other]);
    assert_eq!(
        Hash::parse(&kept.head.hash.to_string()),
        Some(kept.head.hash)
    );
}

#[test]
fn an_amount_that_no_column_holds_is_unknown_and_marked() {
    let mut store = store();
    let mut row = settlement(1);
    row.price = Some(crate::Price {
        id: "p".into(),
        currency: "USD".into(),
        cost: Some(policy::price::Pico(i128::MAX)),
    });
    row.prompt.reported = Some(u64::MAX);
    store
        .apply([Note::Settle(Ending::of(&row, "test"))].iter())
        .expect("writes");
    let sql = "SELECT cost_pico, usage_invalid, prompt_reported FROM settled";
    let stored: (Option<i64>, bool, i64) = store
        .db
        .query_row(sql, [], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
        .expect("reads");
    assert_eq!(stored, (None, true, i64::MAX));
}

fn notes() -> impl Strategy<Value = Vec<Vec<(u8, u64)>>> {
    let note = (0..4_u8, 0..30_u64);
    prop::collection::vec(prop::collection::vec(note, 0..40), 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(testing::seed("each_record_is_one_row")),
        cases: 64,
        ..ProptestConfig::default()
    })]

    /// Against a plain model: any notes, in any batches, in any order, with any repeats.
    #[test]
    fn each_record_is_one_row_and_is_open_only_until_it_is_settled(batches in notes()) {
        let (mut settled, mut open) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
        let mut store = store();
        for batch in &batches {
            let mut made = Vec::new();
            let ended: Vec<u64> = batch.iter().filter(|(kind, _)| *kind >= 2).map(|(_, n)| *n).collect();
            for (kind, n) in batch {
                made.push(match kind {
                    0 => Note::Admit(Opening::of(&admission(*n))),
                    1 => Note::Progress(Progress { id: id(*n), tokens: 9, bytes_out: 9 }),
                    2 => Note::Settle(Ending::of(&settlement(*n), "test")),
                    _ => Note::Withdraw(id(*n)),
                });
                match kind {
                    0 if !settled.contains(n) && !ended.contains(n) => { open.insert(*n); }
                    2 => { settled.insert(*n); open.remove(n); }
                    3 => { open.remove(n); }
                    _ => {}
                }
            }
            store.apply(made.iter()).expect("writes");
        }
        prop_assert_eq!(count(&store.db, "settled"), settled.len() as i64);
        prop_assert_eq!(count(&store.db, "open"), open.len() as i64);
        prop_assert_eq!(findings(&store.db), vec![]);
    }
}

#[test]
fn what_was_open_before_a_commit_that_failed_is_closed_by_the_next() {
    let mut store = store();
    store
        .apply([Note::Admit(Opening::of(&admission(1)))].iter())
        .expect("writes");
    let limit = |store: &Store, sql: &str| {
        let limited = store.db.query_row(sql, [], |row| row.get::<_, i64>(0));
        limited.expect("takes a limit");
    };
    limit(&store, "PRAGMA max_page_count = 1");
    let many = (1..=500).map(|n| Note::Settle(Ending::of(&settlement(n), "test")));
    let many: Vec<_> = many.collect();
    store.apply(many.iter()).expect_err("there is no page left");
    assert_eq!(
        (count(&store.db, "settled"), count(&store.db, "open")),
        (0, 1)
    );
    limit(&store, "PRAGMA max_page_count = 100000");
    settle(&mut store, [1]);
    assert_eq!(
        (count(&store.db, "settled"), count(&store.db, "open")),
        (1, 0)
    );
}

#[test]
fn a_chain_whose_start_cannot_be_read_leaves_the_head_beside_the_ledger_as_it_was() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    make(&path, [7; 16]).expect("makes tables");
    let db = connect(&path).expect("opens");
    let mut store = Store::new(db, &path).expect("has a head");
    let move_on = "UPDATE chain SET anchor_seq = anchor_seq + 5";
    store.db.execute(move_on, []).expect("writes");
    store.say_head();
    let said = crate::head_file::read(&path);
    assert_eq!(said.kept().expect("is there").anchor.seq, 5);
    assert_eq!(store.head_said, Ok(()));
    let away = "ALTER TABLE chain RENAME TO away";
    store.db.execute(away, []).expect("renames");
    store.say_head();
    assert_eq!(crate::head_file::read(&path), said);
    assert!(store.head_said.is_err());
}
