//! Retention: old rows are pruned in small steps, and the remaining ones verify.

use std::time::Duration;

use ledger::{Options, Reader};
use testing::{eventually, nothing_happens_for};

use crate::rows::{flushed, now_ms, opened, options, settlement};

#[test]
fn expired_rows_are_pruned_and_the_chain_still_verifies() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(Options {
        keep: Some(Duration::from_secs(86_400)),
        clocks_agree_for: Duration::ZERO,
        ..options(dir.path())
    });
    let intake = ledger.intake();
    for n in 1..=1200 {
        intake.settle(settlement(n));
    }
    let now = now_ms();
    let young = |n| {
        let mut young = settlement(n);
        young.ended_unix_ms = now;
        young
    };
    intake.settle(young(1201));
    // Expired, but after a row that is not: rows are pruned in order.
    intake.settle(settlement(1202));
    // Age is reckoned from the newest row.
    intake.settle(young(1203));
    flushed(&intake).expect("is on disk");
    eventually("1200 rows are pruned", || ledger.stats().pruned == 1200);
    nothing_happens_for(Duration::from_millis(500));
    let verified = Reader::open(ledger.path())
        .expect("opens")
        .verify(None)
        .expect("reads");
    assert_eq!(
        (verified.rows, verified.anchor, verified.findings),
        (3, 1200, vec![])
    );
    assert_eq!(ledger.pruned_until(), Some(settlement(1200).ended_unix_ms));
}

#[test]
fn nothing_is_pruned_for_its_age_in_the_first_hour() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(Options {
        keep: Some(Duration::from_secs(1)),
        ..options(dir.path())
    });
    let intake = ledger.intake();
    (1..=100).for_each(|n| intake.settle(settlement(n * 10_000)));
    flushed(&intake).expect("is on disk");
    // The writer looks five times a second.
    nothing_happens_for(Duration::from_millis(700));
    assert_eq!((ledger.stats().pruned, ledger.pruned_until()), (0, None));
    assert_eq!(ledger.clock_step(), None);
}

#[test]
fn a_file_beyond_its_size_limit_loses_its_oldest_rows() {
    let dir = tempfile::tempdir().expect("a directory");
    let most = 200_000;
    let ledger = opened(Options {
        bytes_max: Some(most),
        ..options(dir.path())
    });
    let intake = ledger.intake();
    for n in 1..=1500 {
        intake.settle(settlement(n));
    }
    flushed(&intake).expect("is on disk");
    eventually("the file fits", || {
        (1..=most).contains(&ledger.stats().bytes)
    });
    let verified = Reader::open(ledger.path())
        .expect("opens")
        .verify(None)
        .expect("reads");
    assert!(
        verified.anchor >= 500 && verified.rows + verified.anchor.unsigned_abs() == 1500,
        "{verified:?}"
    );
    assert_eq!(verified.findings, []);
}
