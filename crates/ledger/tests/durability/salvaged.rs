//! What a salvage keeps, and what it writes down.

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use ledger::{Expected, Head, Ledger, OpenError, Options, Reader, salvage};

use crate::rows::{eventually, flushed, opened, options, settlement};

const ROWS: u64 = 2000;

/// Writes rows and gives the head.
fn written(dir: &Path, rows: std::ops::RangeInclusive<u64>) -> Head {
    let ledger = opened(options(dir));
    rows.for_each(|n| ledger.intake().settle(settlement(n)));
    flushed(&ledger.intake()).expect("is on disk");
    assert!(ledger.close(Duration::from_secs(5)));
    ledger.head()
}

fn overwrite(path: &Path, at: u64, length: usize) {
    let file = std::fs::OpenOptions::new().write(true).open(path);
    let file = file.expect("opens");
    file.write_all_at(&vec![0xa5; length], at).expect("writes");
}

#[test]
fn a_damaged_page_costs_the_rows_on_it_and_the_ledger_goes_on_behind_the_last_number() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    let head = written(dir.path(), 1..=ROWS);
    let bytes = std::fs::metadata(&path).expect("is there").len();
    overwrite(&path, bytes / 8192 * 4096, 3 * 4096);
    let refused = Ledger::open(options(dir.path())).expect_err("is damaged");
    assert!(matches!(refused, OpenError::Damaged { .. }), "{refused}");
    let done = salvage(&path).expect("salvages");
    let lost: u64 = done.lost.iter().map(ledger::Lost::rows).sum();
    assert!(lost > 0 && lost < 60, "{done:?}");
    assert_eq!(done.settled + lost, ROWS, "{done:?}");
    assert!(done.kept_aside.iter().all(|kept| kept.exists()));

    // A second one finds nothing more to lose, and that is on record too.
    let again = salvage(&path).expect("salvages");
    assert_eq!(again.settled, done.settled);
    assert_eq!(again.lost.iter().map(ledger::Lost::rows).sum::<u64>(), 0);

    let next = written(dir.path(), ROWS + 1..=ROWS + 10);
    assert_eq!(next.seq, head.seq + 10, "no number is used twice");
    let reader = Reader::open(&path).expect("opens");
    for head in [head, next] {
        let expected = Expected::parse(&head.to_string());
        let verified = reader.verify(expected).expect("reads");
        assert_eq!(verified.findings, [], "{head}");
        assert_eq!(verified.rows, done.settled + 10);
        assert_eq!(
            verified.lost.iter().map(ledger::Lost::rows).sum::<u64>(),
            lost
        );
    }
    let (ledger, recovered) = Ledger::open(options(dir.path())).expect("opens");
    assert_eq!(ledger.stats().salvaged_lost, lost);
    assert!(
        recovered
            .lost
            .iter()
            .any(|lost| lost.to_string().contains("lost"))
    );
}

#[test]
fn what_a_salvage_lost_is_pruned_like_any_row_and_stays_on_record() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("ledger.db");
    written(dir.path(), 1..=ROWS);
    let bytes = std::fs::metadata(&path).expect("is there").len();
    // Row 500, where a step of pruning ends, is among those lost.
    overwrite(&path, bytes / 5 / 4096 * 4096, bytes as usize / 10);
    let done = salvage(&path).expect("salvages");
    assert!(
        done.lost
            .iter()
            .any(|lost| (lost.from..=lost.to).contains(&500)),
        "{done:?}"
    );
    let ledger = opened(Options {
        keep: Some(Duration::from_secs(1)),
        ..options(dir.path())
    });
    eventually("all is pruned", || {
        Reader::open(&path)
            .expect("opens")
            .after(0, 10)
            .expect("reads")
            .is_empty()
    });
    assert!(ledger.close(Duration::from_secs(5)));
    let verified = Reader::open(&path)
        .expect("opens")
        .verify(None)
        .expect("reads");
    assert_eq!((verified.rows, verified.findings), (0, vec![]));
    assert!(!verified.lost.is_empty());
}

#[test]
fn a_ledger_that_is_open_is_not_salvaged() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = opened(options(dir.path()));
    let refused = salvage(ledger.path()).expect_err("it is open").to_string();
    assert!(
        refused.contains(&std::process::id().to_string()),
        "{refused}"
    );
}
