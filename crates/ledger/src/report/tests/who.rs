//! Reports, charges and statements by key, user and tag.

use policy::attribution::Attribution;

use super::super::{By, Line, Statement, as_csv, as_json, focus, report, shown, table};
use super::of;
use crate::entry::Ending;
use crate::only::Only;
use crate::read::{Period, ReadError, Reader};
use crate::store::Note;
use crate::store::tests::settlement;

/// Rows of these: key, user, tags.
fn whose(rows: &[(Option<&str>, Option<&str>, Option<&str>)]) -> (tempfile::TempDir, Reader) {
    let rows = rows.iter().zip(1..).map(|((key, user, tags), n)| {
        let mut row = settlement(n);
        row.named.who = Attribution {
            key: key.map(Into::into),
            user: user.map(Into::into),
            tags: tags.map(Into::into),
        };
        Note::Settle(Ending::of(&row, "test"))
    });
    of(rows)
}

/// Two that have what the others lack, under the words that stand for it.
fn of_all_kinds() -> (tempfile::TempDir, Reader) {
    whose(&[
        (Some("k1"), Some("ada"), Some(r#"{"team":"search"}"#)),
        (
            Some("k1"),
            Some("bob"),
            Some(r#"{"team":"ads","tier":"a"}"#),
        ),
        (None, None, None),
        (Some("(none)"), Some("(none)"), Some(r#"{"team":"(none)"}"#)),
        (None, Some("-"), Some(r#"{"team":""}"#)),
    ])
}

#[test]
fn who_spent_it_is_a_line_each_and_nobody_is_not_who_is_called_so() {
    let (_dir, reader) = of_all_kinds();
    let of = |by: By| {
        let lines = report(&reader, Period::ALL, &[by]).expect("reads");
        let line = |line: &Line| {
            let name = shown(line.of[0].as_deref()).into_owned();
            (name, line.totals.exchanges)
        };
        lines.iter().map(line).collect::<Vec<_>>()
    };
    let named = |pairs: &[(&str, u64)]| {
        let pairs = pairs.iter();
        pairs
            .map(|(of, n)| ((*of).to_owned(), *n))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of(By::Key),
        named(&[("(none)", 2), ("\"(none)\"", 1), ("k1", 2)])
    );
    assert_eq!(
        of(By::User),
        named(&[
            ("(none)", 1),
            ("\"(none)\"", 1),
            ("-", 1),
            ("ada", 1),
            ("bob", 1)
        ])
    );
    assert_eq!(
        of(By::Tag("team".into())),
        named(&[
            ("(none)", 1),
            ("\"\"", 1),
            ("\"(none)\"", 1),
            ("ads", 1),
            ("search", 1)
        ])
    );
    let by = [By::Tag("team".into())];
    let lines = report(&reader, Period::ALL, &by).expect("reads");
    let objects = as_json(&lines, &by);
    assert_eq!(objects[0]["tag:team"], serde_json::Value::Null);
    assert_eq!(objects[1]["tag:team"], "");
    assert!(as_csv(&lines, &by).starts_with("tag:team,exchanges,"));
    assert!(as_csv(&lines, &by).contains("\r\n\"\"\"(none)\"\"\",1,"));
    let text = table(&lines, &by, 80);
    assert!(text.starts_with("tag:team  exchanges"), "{text}");
}

#[test]
fn a_reader_of_some_rows_gives_no_others() {
    let (_dir, reader) = of_all_kinds();
    let some = |only: Only| {
        let reader = Reader::open(&reader.path).expect("opens").only(only);
        let mut rows = Vec::new();
        let read: Result<(), ReadError> = reader.each(Period::ALL, |row| {
            rows.push(row.seq);
            Ok(())
        });
        read.expect("reads");
        rows
    };
    let text = |of: &str| Some(of.to_owned());
    let tag = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    let only = Only::default;
    for (only, rows) in [
        (only(), vec![1, 2, 3, 4, 5]),
        (
            Only {
                key: text("k1"),
                ..only()
            },
            vec![1, 2],
        ),
        (
            Only {
                key: text("(none)"),
                ..only()
            },
            vec![4],
        ),
        (
            Only {
                key: text("k1"),
                user: text("bob"),
                ..only()
            },
            vec![2],
        ),
        (
            Only {
                user: text("-"),
                ..only()
            },
            vec![5],
        ),
        (
            Only {
                tags: tag("team", ""),
                ..only()
            },
            vec![5],
        ),
        (
            Only {
                tags: [tag("team", "ads"), tag("tier", "a")].concat(),
                ..only()
            },
            vec![2],
        ),
        (
            Only {
                tags: [tag("team", "ads"), tag("tier", "b")].concat(),
                ..only()
            },
            vec![],
        ),
        (
            Only {
                workload: text("other"),
                ..only()
            },
            vec![],
        ),
    ] {
        assert_eq!(some(only.clone()), rows, "{only}");
    }
}

#[test]
fn charges_say_whose_they_are_and_their_tags_beside_the_gates_own() {
    let (_dir, reader) = whose(&[
        (Some("k1"), Some("ada"), Some(r#"{"team":"search"}"#)),
        (Some("k1"), Some("bob"), Some(r#"{"workload":"theirs"}"#)),
        (None, None, None),
    ]);
    let mut out = Vec::new();
    let charges = focus(&reader, Period::ALL, "us", &mut out).expect("writes");
    assert_eq!(charges, 3, "one each");
    let text = String::from_utf8(out).expect("text");
    let own = r#"""tollgate/backend"":""vllm"",""tollgate/group"":""engineering"",""tollgate/workload"":""ide"""#;
    for expected in [
        format!(r#","{{""team"":""search"",{own}}}",1,0,1,k1,ada"#),
        format!(r#","{{{own},""workload"":""theirs""}}",1,0,1,k1,bob"#),
        format!(r#","{{{own}}}",1,0,1,,"#),
    ] {
        assert!(text.contains(&expected), "no {expected}:\n{text}");
    }
    let head = text.lines().next().expect("a heading");
    assert!(
        head.ends_with(",x_UnpricedExchanges,x_KeyId,x_UserId"),
        "{head}"
    );
}

#[test]
fn a_statement_of_some_rows_says_so_and_may_be_cut_by_who() {
    let (_dir, reader) = of_all_kinds();
    let by = |who: By| Statement::by(&reader, Period::ALL, who, "March", 0).expect("reads");
    let html = by(By::User).html();
    assert!(html.contains("<th>User</th>") && html.contains("<td data-of=\"User\">ada</td>"));
    assert!(html.contains("<td data-of=\"User\">(none)</td>"), "{html}");
    let html = by(By::Tag("<b>".into())).html();
    assert!(
        html.contains("<th>Tag &lt;b&gt;</th>") && !html.contains("<b>"),
        "{html}"
    );
    assert!(!html.contains("Only "), "{html}");

    let reader = reader.only(Only {
        user: Some("ada".to_owned()),
        tags: vec![("team".to_owned(), "<search>".to_owned())],
        ..Only::default()
    });
    let statement = Statement::of(&reader, Period::ALL, "March", 0).expect("reads");
    let html = statement.html();
    let said = "Only user ada, tag team=&lt;search&gt;. All that the ledger has.";
    assert!(html.contains(said), "{html}");
    assert!(statement.csv().starts_with("Only,Issued,From,To,Group,"));
}
