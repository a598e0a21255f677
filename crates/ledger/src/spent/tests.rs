//! Sums of each key and user, of rows that say who asked and of rows that do not.

use rusqlite::Connection;

use super::*;

const ROWS: &str =
    "workload, model_sent, model_asked, currency, prompt_tokens, completion_tokens, cost_pico,
  ended_unix_ms, started_unix_ms, state, backend, reserved_tokens, at_least_tokens";
const OPEN: &str =
    "workload, model_sent, model_asked, backend, started_unix_ms, reserved_tokens, progress_tokens";

fn reader(who: &str) -> Reader {
    let db = Connection::open_in_memory().expect("a database");
    let tables = format!("CREATE TABLE settled ({ROWS}{who}); CREATE TABLE open ({OPEN}{who});");
    db.execute_batch(&tables).expect("tables");
    let path = std::path::PathBuf::new();
    Reader {
        db,
        path,
        only: crate::only::Only::default(),
    }
}

#[test]
fn rows_that_say_who_asked_are_told_apart_and_others_are_one() {
    let period = Period {
        from_ms: 10,
        to_ms: 20,
    };
    for knows in [true, false] {
        let of = reader(if knows {
            ", key_id, user_id, user_issuer"
        } else {
            ""
        });
        assert_eq!(of.knows_subjects().expect("reads"), knows);
        for (key, user, tokens) in [
            ("'a'", "'x'", 1),
            ("'a'", "'x'", 2),
            ("'a'", "'y'", 4),
            ("NULL", "NULL", 8),
        ] {
            let who = if knows {
                format!(", {key}, {user}, 'https://a'")
            } else {
                String::new()
            };
            let settled = format!(
                "INSERT INTO settled VALUES ('w', 'm', NULL, 'USD', {tokens}, 0, 1, 15, 12, 'settled', 'b', 0, 0{who})"
            );
            let open =
                format!("INSERT INTO open VALUES ('w', 'm', NULL, 'b', 12, {tokens}, 0{who})");
            of.db
                .execute_batch(&format!("{settled};{open};"))
                .expect("rows");
        }
        let (mut sums, mut held) = (Vec::new(), Vec::new());
        let name = |name: &Option<String>| name.clone().unwrap_or_default();
        of.spent(
            period,
            knows,
            |sum| sums.push((name(&sum.subject.key), name(&sum.subject.user), sum.tokens)),
            |row| held.push((name(&row.subject.user), row.tokens)),
        )
        .expect("reads");
        sums.sort();
        let sums: Vec<_> = sums
            .iter()
            .map(|(key, user, n)| (&**key, &**user, *n))
            .collect();
        let held: Vec<_> = held.iter().map(|(user, known)| (&**user, *known)).collect();
        if knows {
            assert_eq!(sums, [("", "", 8), ("a", "x", 3), ("a", "y", 4)]);
            let rows = [("x", 1), ("x", 2), ("y", 4), ("", 8)];
            assert_eq!(held, rows.map(|(user, n)| (user, Known::Held(n))));
        } else {
            assert_eq!(sums, [("", "", 15)]);
            assert_eq!(held.len(), 4);
        }
    }
}

#[test]
fn calls_of_tools_are_counted_by_tool_and_files_without_tools_have_none() {
    let period = Period {
        from_ms: 10,
        to_ms: 20,
    };
    let all = |of: &Reader| {
        let mut all = Vec::new();
        let each = |calls: Calls| all.push((calls.tool, calls.count));
        of.calls(period, false, each).expect("reads");
        all.sort();
        all
    };
    assert_eq!(all(&reader("")), []);
    let of = reader(", mcp_method, mcp_name, outcome");
    for (method, name, started) in [
        ("'tools/call'", "'b__y'", 12),
        ("'tools/call'", "'b__y'", 20),
        ("NULL", "NULL", 12),
    ] {
        let row = format!(
            "INSERT INTO open VALUES ('w', NULL, NULL, 'b', {started}, 0, 0, {method}, {name}, NULL)"
        );
        of.db.execute_batch(&row).expect("a row");
    }
    for (method, name, outcome, started) in [
        ("'tools/call'", "'a__x'", "completed", 12),
        ("'tools/call'", "'a__x'", "failed", 19),
        ("'tools/call'", "'a__x'", "refused", 12),
        ("'tools/call'", "'a__x'", "completed", 20),
        ("'tools/call'", "'b__y'", "aborted", 10),
        ("'tools/list'", "NULL", "completed", 12),
        ("NULL", "NULL", "completed", 12),
    ] {
        let row = format!(
            "INSERT INTO settled VALUES ('w', NULL, NULL, NULL, NULL, NULL, NULL, 25, {started}, 'settled', 'b', 0, 0, {method}, {name}, '{outcome}')"
        );
        of.db.execute_batch(&row).expect("a row");
    }
    let open = ("b__y".to_owned(), 1);
    assert_eq!(all(&of), [("a__x".to_owned(), 2), open.clone(), open]);
}
