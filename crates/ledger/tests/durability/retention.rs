//! Retention: old rows are pruned in small steps, and the remaining ones verify.

use std::time::Duration;

use ledger::{Options, Reader};

use crate::rows::{eventually, flushed, opened, options, settlement};

#[test]
fn expired_rows_are_pruned_and_the_chain_still_verifies() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(Options {
        keep: Some(Duration::from_secs(86_400)),
        ..options(dir.path())
    });
    let intake = ledger.intake();
    for n in 1..=1200 {
        intake.settle(settlement(n));
    }
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("a clock");
    let mut young = settlement(1201);
    young.ended_unix_ms = u64::try_from(now.as_millis()).expect("fits");
    intake.settle(young);
    // Expired, but after a row that is not: rows are pruned in order.
    intake.settle(settlement(1202));
    flushed(&intake).expect("is on disk");
    eventually("1200 rows are pruned", || ledger.stats().pruned == 1200);
    std::thread::sleep(Duration::from_millis(500));
    let verified = Reader::open(ledger.path())
        .expect("opens")
        .verify(None)
        .expect("reads");
    assert_eq!(
        (verified.rows, verified.anchor, verified.findings),
        (2, 1200, vec![])
    );
}

#[test]
fn a_file_beyond_its_size_limit_loses_its_oldest_rows() {
    let dir = tempfile::tempdir().expect("a directory");
    let most = 300_000;
    let ledger = opened(Options {
        bytes_max: Some(most),
        ..options(dir.path())
    });
    let intake = ledger.intake();
    for n in 1..=3000 {
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
        verified.anchor >= 500 && verified.rows + verified.anchor.unsigned_abs() == 3000,
        "{verified:?}"
    );
    assert_eq!(verified.findings, []);
}
