//! Whatever was bound before, a row is what it was given.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use rusqlite::Connection;
use rusqlite::types::{Value, ValueRef};

use super::Repeated;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        (-2_i64..2).prop_map(Value::Integer),
        "[ab]{0,2}".prop_map(Value::Text),
        prop::collection::vec(0_u8..2, 0..3).prop_map(Value::Blob),
    ]
}

fn table() -> Connection {
    let db = Connection::open_in_memory().expect("opens");
    db.execute_batch("CREATE TABLE t (a ANY, b ANY, c ANY, n INTEGER PRIMARY KEY) STRICT")
        .expect("makes a table");
    db
}

const INSERT: &str = "INSERT INTO t VALUES (?, ?, ?, ?)";

fn stored(db: &Connection) -> Vec<[Value; 3]> {
    let mut statement = db
        .prepare("SELECT a, b, c FROM t ORDER BY n")
        .expect("fits");
    let rows = statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?]));
    rows.expect("reads")
        .map(|row| row.expect("reads"))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(testing::seed("each_run_sees_its_own_values")),
        ..ProptestConfig::default()
    })]

    #[test]
    fn each_run_sees_its_own_values(rows in prop::collection::vec([value(), value(), value()], 0..20), again in 0..20_usize) {
        let db = table();
        let mut repeated = Repeated::<3>::new(&db, INSERT).expect("fits");
        for (n, row) in rows.iter().enumerate() {
            if n == again {
                // Back from the cache, nothing is bound.
                drop(repeated);
                repeated = Repeated::<3>::new(&db, INSERT).expect("fits");
            }
            let n = i64::try_from(n).expect("is small");
            repeated.execute(row.iter().map(ValueRef::from), &[ValueRef::Integer(n)]).expect("inserts");
        }
        drop(repeated);
        prop_assert_eq!(stored(&db), rows);
    }
}

#[test]
fn a_row_that_was_refused_leaves_nothing_in_the_next() {
    let db = table();
    db.execute_batch("CREATE UNIQUE INDEX once ON t (a)")
        .expect("makes an index");
    let (one, two) = (Value::Text("one".into()), Value::Text("two".into()));
    let rows = [
        [&one, &one, &one],
        [&one, &two, &Value::Null],
        [&two, &one, &Value::Null],
    ];
    let mut repeated = Repeated::<3>::new(&db, INSERT).expect("fits");
    for (n, row) in (1..).zip(rows) {
        let done = repeated.execute(row.map(ValueRef::from).into_iter(), &[ValueRef::Integer(n)]);
        assert_eq!(done.is_ok(), n != 2);
    }
    drop(repeated);
    let rows = [rows[0].map(Clone::clone), rows[2].map(Clone::clone)];
    assert_eq!(stored(&db), rows);
}
