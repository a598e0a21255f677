//! Questions as they are typed, against a ledger that a gate could have written.

use clap::Parser;
use ledger::{Admission, Ledger, Options, Price, Progress, RecordId, Settlement, State, Witnesses};
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
        trace_id: None,
        workload: Some(if n.is_multiple_of(2) {
            "ide".into()
        } else {
            "ci".into()
        }),
        budget_group: Some("engineering".into()),
        route: None,
        backend: Some("on-prem".into()),
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
    (row.state, row.outcome, row.status) = (State::Settled, Outcome::Completed, 200);
    row.prompt = Witnesses {
        billed: Count::Reported(102),
        reported: Some(102),
        counted: Some(100),
    };
    row.price = (n > 1).then(|| Price {
        id: "p".into(),
        currency: "USD".into(),
        cost: Some(Pico(10_200_000)),
    });
    row
}

fn asked(question: &[&str]) -> (Result<bool, Fault>, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    let (ledger, _) = Ledger::open(Options::at(&path)).expect("opens");
    (1..=5).for_each(|n| ledger.intake().settle(settlement(n)));
    drop(ledger);
    let path = path.to_str().expect("a name");
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
    let cases: [(&[&str], &str); 11] = [
        (
            &["report"],
            "ide               2    204       0   40.0 %  <0.0001 USD    2.0/- %",
        ),
        (
            &["report", "--by", "group,model", "--json"],
            "\"cost\": {\n      \"USD\": \"0.0000408\"\n    }",
        ),
        (&["report", "--by", "day", "--csv"], "2023-11-14,2,"),
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
            "5 ci -> on-prem gpt-oss-120b\n  completed 200, in 102 (reported), out ? (unknown), 0.000010 USD",
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
