//! Sums that budgets start with: every row counts in exactly one of them.

use std::path::Path;

use ledger::{Known, Period, Price, Reader, Spent, Unsure, Whose};
use policy::attribution::Attribution;
use policy::price::Pico;

use crate::rows::{admission, admitted, flushed, opened, options, settlement};

const FROM: u64 = 1_700_000_000_000;

fn read(dir: &Path, from: u64, to: u64) -> (Vec<Spent>, Vec<Unsure>) {
    read_of(dir, Whose::All, from, to)
}

fn read_of(dir: &Path, whose: Whose, from: u64, to: u64) -> (Vec<Spent>, Vec<Unsure>) {
    let (mut sums, mut unsure) = (Vec::new(), Vec::new());
    let period = Period {
        from_ms: FROM + from,
        to_ms: FROM + to,
    };
    let reader = Reader::open(&options(dir).path).expect("a ledger");
    let read = reader.spent(period, whose, |sum| sums.push(sum), |row| unsure.push(row));
    read.expect("reads");
    (sums, unsure)
}

#[test]
fn rows_count_in_the_period_they_started_in_and_uncertain_ones_are_listed() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let intake = ledger.intake();
    let costing = |n: u64, currency: &str, pico: Option<i128>| {
        let mut row = settlement(n);
        row.price = Some(Price {
            id: "p".into(),
            currency: currency.into(),
            cost: pico.map(Pico),
        });
        intake.settle(row);
    };
    costing(10, "USD", Some(1));
    costing(11, "USD", Some(2001));
    costing(12, "EUR", Some(5000));
    costing(13, "USD", None);
    // One exchange started after the period, and one before it.
    costing(900, "USD", Some(7000));
    costing(1, "USD", Some(9000));
    admitted(&intake, 20).expect("on disk");
    flushed(&intake).expect("on disk");
    let (mut sums, unsure) = read(dir.path(), 10, 900);
    sums.sort_by_key(|sum| sum.nanos);
    let sums: Vec<_> = sums
        .iter()
        .map(|s| (s.currency.as_deref(), s.tokens, s.nanos))
        .collect();
    let expected = [(Some("USD"), 10 + 11 + 13, 1 + 3), (Some("EUR"), 12, 5)];
    assert_eq!(sums, expected, "each cost rounded up by itself");
    let known: Vec<_> = unsure.iter().map(|row| row.tokens).collect();
    assert_eq!(known, [Known::Counts(0, 13), Known::Held(1000)]);
    assert_eq!(
        unsure[1].workload,
        admission(20).named.workload.map(String::from)
    );

    // An exchange that was open when the process ended keeps its reservation.
    let copy = tempfile::tempdir().expect("a directory");
    for entry in std::fs::read_dir(dir.path()).expect("lists").flatten() {
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copies");
    }
    drop(opened(options(copy.path())));
    let (_, unsure) = read(copy.path(), 10, 900);
    assert_eq!(unsure.len(), 2);
    assert!(unsure.iter().any(|row| row.tokens == Known::Held(1000)));
}

#[test]
fn sums_by_key_and_by_user_hold_the_rows_that_have_one() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let intake = ledger.intake();
    let who = |key: Option<&str>, user: Option<&str>| Attribution {
        key: key.map(Into::into),
        user: user.map(Into::into),
        tags: None,
    };
    for (n, whose, pico) in [
        (10, who(Some("k1"), Some("ada")), Some(1000)),
        (11, who(Some("k1"), Some("bob")), Some(2001)),
        (12, who(Some("k2"), Some("ada")), None),
        (13, who(None, None), Some(9000)),
        // Of no user, whatever the word.
        (14, who(Some("k2"), None), Some(1)),
        // Before the period.
        (1, who(Some("k1"), Some("ada")), Some(5_000_000)),
    ] {
        let mut row = settlement(n);
        row.named.who = whose;
        row.price = Some(Price {
            id: "p".into(),
            currency: "USD".into(),
            cost: pico.map(Pico),
        });
        intake.settle(row);
    }
    let mut open = admission(20);
    open.named.who = who(Some("k3"), Some("ada"));
    let (done, is_done) = std::sync::mpsc::channel();
    intake.admit_durable(open, move |result| drop(done.send(result)));
    is_done.recv().expect("an answer").expect("on disk");
    flushed(&intake).expect("on disk");

    type Expected<'a> = (Whose, &'a [(&'a str, u64, u64)], &'a [(&'a str, Known)]);
    let expected: [Expected<'_>; 2] = [
        (
            Whose::Key,
            &[("k1", 21, 1 + 3), ("k2", 12 + 14, 1)],
            &[("k2", Known::Counts(0, 12)), ("k3", Known::Held(1000))],
        ),
        (
            Whose::User,
            &[("ada", 10 + 12, 1), ("bob", 11, 3)],
            &[("ada", Known::Counts(0, 12)), ("ada", Known::Held(1000))],
        ),
    ];
    let check = |dir: &Path| {
        for (whose, expected, uncertain) in expected {
            let (sums, unsure) = read_of(dir, whose, 10, 900);
            let of = |whose: &Option<String>| whose.clone().expect("a name");
            let mut sums: Vec<_> = sums
                .iter()
                .map(|s| (of(&s.whose), s.tokens, s.nanos))
                .collect();
            sums.sort();
            let named: Vec<_> = sums.iter().map(|(of, t, n)| (&**of, *t, *n)).collect();
            assert_eq!(named, expected, "{whose:?}");
            let unsure: Vec<_> = unsure.iter().map(|u| (of(&u.whose), u.tokens)).collect();
            let named: Vec<_> = unsure.iter().map(|(of, known)| (&**of, *known)).collect();
            assert_eq!(named, uncertain, "{whose:?}");
        }
    };
    check(dir.path());

    // What was open when the process ended keeps whose it is.
    let copy = tempfile::tempdir().expect("a directory");
    for entry in std::fs::read_dir(dir.path()).expect("lists").flatten() {
        std::fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("copies");
    }
    drop(opened(options(copy.path())));
    check(copy.path());
}
