//! Questions as they are typed, against a ledger that a gate could have written.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use clap::Parser;
use ledger::{
    Admission, Ledger, Named, Options, Price, Progress, RecordId, Settlement, State, Witnesses,
};
use policy::attribution::Attribution;
use policy::price::Pico;
use policy::record::{Count, Outcome};

use super::{Fault, answer};
use crate::cli::{Cli, Verb};

/// Five records, the first two of 14 November 2023, one of them without a price.
fn settlement(n: u64) -> Settlement {
    let id = RecordId(u128::from(n).to_be_bytes());
    let ended = 1_700_000_000_000 + (n / 3) * 86_400_000;
    let open = Admission {
        id,
        started_unix_ms: ended,
        request_id: format!("request-{n}").into(),
        named: Named {
            tool: None,
            workload: Some(if n.is_multiple_of(2) {
                "ide".into()
            } else {
                "ci".into()
            }),
            budget_group: Some("engineering".into()),
            backend: Some("on-prem".into()),
            who: Attribution {
                key: (n > 1).then(|| "k-1".into()),
                user: (n > 2).then(|| format!("user-{n}").into()),
                tags: (n > 3).then(|| r#"{"team":"search, ads"}"#.into()),
            },
            ..Named::default()
        },
        model_asked: Some("gpt-oss-120b".into()),
        model_sent: None,
        reserved: 100,
        at_most: Some(100),
    };
    let mut row = Settlement::indeterminate(
        open,
        Progress {
            id,
            tokens: 0,
            bytes_out: 0,
        },
        ended,
    );
    row.state = State::Settled;
    (row.record.outcome, row.record.status) = (Outcome::Completed, 200);
    row.record.tokens.prompt = Count::Reported(102);
    row.prompt = Witnesses {
        reported: Some(102),
        counted: Some(100),
        ..Witnesses::default()
    };
    row.price = (n > 1).then(|| Price {
        id: "p".into(),
        currency: "USD".into(),
        cost: Some(Pico(10_200_000)),
    });
    row
}

fn written() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    write(&path, 1..=5);
    (dir, path)
}

fn write(path: &Path, rows: RangeInclusive<u64>) {
    let (ledger, _) = Ledger::open(Options::at(path)).expect("opens");
    rows.for_each(|n| ledger.intake().settle(settlement(n)));
}

fn asked(question: &[&str]) -> (Result<bool, Fault>, String) {
    let (_dir, path) = written();
    asked_of(&path, question)
}

fn asked_of(ledger: &Path, question: &[&str]) -> (Result<bool, Fault>, String) {
    let path = ledger.to_str().expect("a name");
    let words = ["tollgate", "usage", "--ledger", path]
        .into_iter()
        .chain(question.iter().copied());
    let Verb::Usage(usage) = Cli::try_parse_from(words).expect("is understood").verb else {
        panic!("is another verb");
    };
    let mut out = Vec::new();
    let result = answer(&usage, &mut out);
    (result, String::from_utf8(out).expect("text"))
}

#[test]
fn every_question_has_an_answer() {
    let cases: [(&[&str], &str); 16] = [
        (
            &["report"],
            "ide               2    204       0   40.0 %  <0.0001 USD    2.0/- %",
        ),
        (
            &["report", "--by", "group,model", "--json"],
            "\"cost\": {\n      \"USD\": \"0.0000408\"\n    }",
        ),
        (&["report", "--by", "day", "--csv"], "2023-11-14,2,"),
        (
            &["report", "--by", "key,tag:team", "--csv"],
            "\r\n(none),(none),1,0,0,0,0,0,0,102,",
        ),
        (
            &["report", "--by", "tag:team", "--key", "k-1"],
            "search, ads          2",
        ),
        (
            &["export", "--tag", "team=search, ads", "--user", "user-4"],
            ",k-1,user-4,\"{\"\"team\"\":\"\"search, ads\"\"}\",",
        ),
        (
            &["statement", "--by", "user", "--key", "k-1"],
            "Only key k-1. All that the ledger has.",
        ),
        (
            &["drift", "--by", "user", "--workload", "ci"],
            "user-5  input              1",
        ),
        (&["report", "--period", "2023-11-15"], "total             3"),
        (
            &["drift"],
            "gpt-oss-120b  input              5       510      500          10  2.00 %",
        ),
        (
            &["export"],
            "\r\n5,00000000000000000000000000000005,settled,gate,request-5,",
        ),
        (&["export", "--form", "jsonl"], "\"seq\":5"),
        (
            &["export", "--form", "focus", "--issuer", "Platform"],
            ",Tokens,",
        ),
        (
            &["verify"],
            "every row is as it was written: 5 rows after row 0\nhead 5:",
        ),
        (
            &["tail", "-n", "2"],
            "5 ci (user-5) -> on-prem gpt-oss-120b\n  completed 200, in 102 (reported), out ? (unknown), 0.000010 USD",
        ),
        (
            &["statement", "--period", "2023-11"],
            "1 exchange with tokens that no known price covers",
        ),
    ];
    for (question, expected) in cases {
        let (result, said) = asked(question);
        assert!(matches!(result, Ok(true)), "{question:?}: {result:?}");
        assert!(
            said.contains(expected),
            "{question:?} lacks {expected:?}:\n{said}"
        );
    }
}

#[test]
fn of_a_ledger_that_is_whole_nothing_is_salvaged_and_that_is_no_failure() {
    let (_dir, ledger) = written();
    let before = std::fs::read(&ledger).expect("reads");
    let (result, said) = asked_of(&ledger, &["salvage"]);
    assert!(matches!(result, Ok(true)), "{result:?}");
    assert!(said.starts_with("nothing to salvage: "), "{said}");
    let whole = "is whole\n5 rows stay as they are\nhead 5:";
    assert!(said.contains(whole), "{said}");
    let (result, said) = asked_of(&ledger, &["salvage", "--json"]);
    assert!(matches!(result, Ok(true)), "{result:?}");
    let said: serde_json::Value = serde_json::from_str(&said).expect("is JSON");
    assert_eq!(
        (&said["is_whole"], &said["rows"]),
        (&true.into(), &5.into())
    );
    assert!(before == std::fs::read(&ledger).expect("reads"), "changed");
}

#[test]
fn each_salvage_is_told_of_with_what_it_lost_and_then_their_sum() {
    let (_dir, ledger) = written();
    let (result, said) = asked_of(&ledger, &["salvage", "--new-name"]);
    assert!(matches!(result, Ok(true)), "{result:?}");
    assert!(said.starts_with("5 rows kept, 0 lost\n"), "{said}");
    let early = std::fs::read(&ledger).expect("reads");
    write(&ledger, 6..=8);
    std::fs::write(&ledger, early).expect("sets it back");
    let (result, said) = asked_of(&ledger, &["salvage"]);
    assert!(matches!(result, Ok(true)), "{result:?}");
    let lost = "5 rows kept, 3 lost\n  rows 6 to 8\n";
    assert!(said.contains(lost), "{said}");
    let (result, said) = asked_of(&ledger, &["verify"]);
    assert!(matches!(result, Ok(true)), "{result:?}");
    let expected = [
        "Z: no row was lost",
        "Z: 3 rows were lost: 6 to 8",
        "3 rows were lost in 2 salvages",
        "every row is as it was written: 5 rows after row 0",
    ];
    assert!(said.lines().count() > expected.len(), "{said}");
    for (line, expected) in said.lines().zip(expected) {
        assert!(line.ends_with(expected), "{said}");
    }
    let (_, said) = asked_of(&ledger, &["verify", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).expect("is JSON");
    assert_eq!(said["salvaged_rows_lost"], 3, "{said}");
}

#[test]
fn an_answer_is_never_written_over_a_file_of_the_ledger() {
    let (dir, ledger) = written();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(&ledger, &link).expect("a link");
    let named = |suffix: &str| format!("{}{suffix}", ledger.display());
    let before = std::fs::read(&ledger).expect("it is there");
    let link = link.to_str().expect("UTF-8").to_owned();
    for target in [
        named(""),
        named("-wal"),
        named(".head"),
        named(".lock"),
        link,
    ] {
        for form in [
            &["export", "-o"][..],
            &["statement", "--period", "2026", "-o"],
        ] {
            let question = [form, &[&*target]].concat();
            let (answer, _) = asked_of(&ledger, &question);
            assert!(
                matches!(answer, Err(Fault::Asked(_))),
                "{question:?}: {answer:?}"
            );
        }
    }
    assert_eq!(std::fs::read(&ledger).expect("it is there"), before);
    let other = dir.path().join("out.csv");
    let other = other.to_str().expect("UTF-8");
    for _ in 0..2 {
        let (answer, _) = asked_of(&ledger, &["export", "-o", other]);
        assert!(matches!(answer, Ok(true)), "{answer:?}");
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(other).expect("made"));
        assert_eq!(mode & 0o007, 0, "others may not read who spent what");
    }
}

#[test]
fn a_file_has_the_form_that_its_name_says_unless_another_is_said() {
    let (dir, ledger) = written();
    for (question, name, begins) in [
        (&["export"][..], "a.csv", "seq,"),
        (&["export"], "a.jsonl", "{"),
        (&["export"], "a.parquet", "PAR1"),
        (&["export"], "a.txt", "seq,"),
        (&["export", "--form", "jsonl"], "b.csv", "{"),
        (&["statement", "--period", "2023-11"], "s.html", "<!doctype"),
        (&["statement", "--period", "2023-11"], "s.csv", "Issued,"),
    ] {
        let file = dir.path().join(name);
        let file = file.to_str().expect("UTF-8");
        let (answer, _) = asked_of(&ledger, &[question, &["-o", file]].concat());
        assert!(
            matches!(answer, Ok(true)),
            "{question:?} {name}: {answer:?}"
        );
        let bytes = std::fs::read(file).expect("it is there");
        assert!(bytes.starts_with(begins.as_bytes()), "{question:?} {name}");
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_another_history_is_bad() {
    for question in [
        &["report", "--period", "last week"][..],
        &["report", "--from", "2024-02", "--to", "2024-01"],
        &["verify", "--head", "abc"],
    ] {
        assert!(
            matches!(asked(question).0, Err(Fault::Asked(_))),
            "{question:?}"
        );
    }
    let (result, said) = asked(&["verify", "--head", &"ab".repeat(32)]);
    assert!(matches!(result, Ok(false)), "{result:?}");
    assert!(
        said.starts_with("no row has the hash") && said.contains("abab"),
        "{said}"
    );
}

#[test]
fn a_question_about_nobody_or_an_unknown_cut_is_no_question() {
    for words in [
        &["report", "--by", "colour"][..],
        &["report", "--by", "tag:"],
        &["report", "--by", "workload,"],
        &["export", "--tag", "team"],
        &["export", "--tag", "=search"],
        &["statement", "--key", ""],
        &["statement", "--by", "model"],
    ] {
        let typed = ["tollgate", "usage"].iter().chain(words);
        assert!(Cli::try_parse_from(typed).is_err(), "{words:?}");
    }
}
