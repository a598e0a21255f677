//! Which of SQLite's errors say that the file is not what was written.

use rusqlite::Connection;

use super::is_damage;

fn error(sql: &str) -> rusqlite::Error {
    let db = Connection::open_in_memory().expect("opens");
    db.execute_batch(
        "CREATE TABLE one (a, b); INSERT INTO one VALUES (1, 2), (9223372036854775807, 1)",
    )
    .expect("writes");
    let run = |sql: &str| {
        let mut statement = db.prepare(sql)?;
        let mut rows = statement.query([])?;
        while rows.next()?.is_some() {}
        Ok::<(), rusqlite::Error>(())
    };
    run(sql).expect_err(sql)
}

#[test]
fn tables_that_are_not_what_was_made_are_damage() {
    for sql in [
        "SELECT a FROM two",
        "SELECT c FROM one",
        "DELETE FROM two",
        "INSERT INTO one (a, c) VALUES (1, 2)",
        "INSERT INTO one VALUES (1, 2, 3)",
        "INSERT INTO one VALUES (1, 2) ON CONFLICT (a) DO NOTHING",
    ] {
        let error = error(sql);
        assert!(is_damage(&error), "{sql}: {error:?}");
    }
}

/// SQLite gives these the same code.
#[test]
fn what_a_statement_may_not_do_is_no_damage() {
    for sql in [
        "COMMIT",
        "SELECT sum(a) FROM one",
        "VACUUM INTO ''||(SELECT 1/0)",
    ] {
        let error = error(sql);
        assert!(!is_damage(&error), "{sql}: {error:?}");
    }
}
