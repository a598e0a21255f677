//! Sums that budgets start with: every row counts in exactly one of them.

use std::path::Path;

use ledger::{Known, Period, Price, Reader, Spent, Unsure};
use policy::price::Pico;

use crate::rows::{admission, admitted, flushed, opened, options, settlement};

const FROM: u64 = 1_700_000_000_000;

fn read(dir: &Path, from: u64, to: u64) -> (Vec<Spent>, Vec<Unsure>) {
    let (mut sums, mut unsure) = (Vec::new(), Vec::new());
    let period = Period {
        from_ms: FROM + from,
        to_ms: FROM + to,
    };
    let reader = Reader::open(&options(dir).path).expect("a ledger");
    let read = reader.spent(period, false, |sum| sums.push(sum), |row| unsure.push(row));
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
