//! One writer, and what was open becomes indeterminate once.

use std::time::Duration;

use ledger::{Ledger, OpenError, Period, Progress, ReadError, Reader};

use crate::rows::{admitted, flushed, id, opened, options, settlement};

#[test]
fn a_second_writer_is_refused_and_told_which_process_writes() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = opened(options(dir.path()));
    let refused = Ledger::open(options(dir.path())).expect_err("is locked");
    let OpenError::Locked { pid, .. } = &refused else {
        panic!("{refused}");
    };
    assert_eq!(*pid, Some(std::process::id()));
    assert!(
        refused
            .to_string()
            .contains(&std::process::id().to_string()),
        "{refused}"
    );
    assert!(first.close(Duration::from_secs(5)));
    drop(opened(options(dir.path())));
}

#[test]
fn what_was_open_becomes_indeterminate_with_bounds_and_only_once() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let intake = ledger.intake();
    for n in 1..=3 {
        admitted(&intake, n).expect("is on disk");
    }
    intake.progress(Progress {
        id: id(2),
        tokens: 70,
        bytes_out: 900,
    });
    intake.settle(settlement(3));
    flushed(&intake).expect("is on disk");
    assert!(ledger.close(Duration::from_secs(5)));
    for expected in [2, 0] {
        let (ledger, recovered) = Ledger::open(options(dir.path())).expect("opens");
        assert_eq!(recovered.indeterminate, expected);
        assert_eq!(recovered.kept_aside, Vec::<std::path::PathBuf>::new());
        drop(ledger);
    }
    let reader = Reader::open(&dir.path().join("ledger.db")).expect("opens");
    let mut rows = Vec::new();
    let read: Result<(), ReadError> = reader.each(Period::ALL, |row| {
        let bounds = (row.number("at_least_tokens"), row.number("at_most_tokens"));
        rows.push((row.text("state").map(str::to_owned), row.id(), bounds));
        Ok(())
    });
    read.expect("reads");
    rows.sort_by(|a, b| a.1.cmp(&b.1));
    let indeterminate = Some("indeterminate".to_owned());
    assert_eq!(rows[0].0, indeterminate);
    assert_eq!(rows[0].2, (Some(0), Some(1000)));
    assert_eq!(rows[1].0, indeterminate);
    assert_eq!(rows[1].2, (Some(70), Some(1000)));
    assert_eq!(rows[2].0.as_deref(), Some("settled"));
    assert_eq!(rows.len(), 3);
    assert_eq!(reader.verify(None).expect("reads").findings, []);
}

#[test]
fn an_admission_that_was_withdrawn_leaves_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let intake = ledger.intake();
    admitted(&intake, 1).expect("is on disk");
    intake.withdraw(id(1));
    flushed(&intake).expect("is on disk");
    let reader = Reader::open(ledger.path()).expect("opens");
    assert_eq!(reader.open_count().expect("reads"), 0);
    assert_eq!(reader.head().expect("reads").seq, 0);
}
