//! What goes for its age, by which clock.

use std::path::Path;
use std::time::Duration;

use super::step;
use crate::clock::{AGREE_FOR, Clock, Reading};
use crate::entry::Ending;
use crate::schema::{connect, make};
use crate::shared::Options;
use crate::store::tests::settlement;
use crate::store::{Note, Store};

const DAY_MS: u64 = 86_400_000;
/// Some moment.
const NOW_MS: u64 = 1_795_000_000_000;

/// A ledger that keeps rows for 60 days, and both clocks.
struct Kept {
    _dir: tempfile::TempDir,
    store: Store,
    options: Options,
    clock: Clock,
    wall_ms: u64,
    monotonic: Duration,
    rows: u64,
}

impl Kept {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("ledger.db");
        make(&path, [7; 16]).expect("makes");
        let start = Reading {
            wall_ms: NOW_MS,
            monotonic: Duration::ZERO,
        };
        Self {
            store: store(&path),
            options: Options {
                keep: Some(Duration::from_secs(60 * 86_400)),
                ..Options::at(&path)
            },
            _dir: dir,
            clock: Clock::new(AGREE_FOR, start),
            wall_ms: start.wall_ms,
            monotonic: start.monotonic,
            rows: 0,
        }
    }

    /// Both clocks go on.
    fn pass(&mut self, seconds: u64) {
        self.wall_ms += seconds * 1000;
        self.monotonic += Duration::from_secs(seconds);
    }

    /// A row that ends now, by the wall clock, or was so long ago.
    fn row(&mut self, ago_ms: u64) {
        self.rows += 1;
        let mut row = settlement(self.rows);
        row.ended_unix_ms = self.wall_ms - ago_ms;
        let note = Note::Settle(Ending::of(&row, "gate"));
        self.store.apply([note].iter()).expect("writes");
    }

    /// As the writer does: rows that were pruned.
    fn tended(&mut self) -> u64 {
        let now = Reading {
            wall_ms: self.wall_ms,
            monotonic: self.monotonic,
        };
        self.clock.step(now);
        let believed = self.clock.believed(now);
        let step = step(&mut self.store, &self.options, believed, i64::MAX).expect("prunes");
        step.pruned
    }
}

fn store(path: &Path) -> Store {
    Store::new(connect(path).expect("opens"), path).expect("opens")
}

#[test]
fn a_clock_that_is_70_days_ahead_for_20_seconds_costs_no_row() {
    let mut kept = Kept::new();
    (0..3000).for_each(|n| kept.row((3000 - n) * 1000));
    kept.pass(7200);
    assert_eq!(kept.tended(), 0);
    kept.wall_ms += 70 * DAY_MS;
    for _ in 0..20 {
        kept.pass(1);
        kept.row(0);
        assert_eq!(kept.tended(), 0);
    }
    kept.wall_ms -= 70 * DAY_MS;
    for _ in 0..200 {
        kept.pass(60);
        kept.row(0);
        assert_eq!(kept.tended(), 0);
    }
}

#[test]
fn old_rows_are_pruned_an_hour_after_the_start_and_after_a_step() {
    let mut kept = Kept::new();
    (0..10).for_each(|_| kept.row(61 * DAY_MS));
    kept.row(0);
    kept.pass(3599);
    assert_eq!(kept.tended(), 0);
    kept.wall_ms += 3 * 60_000;
    kept.pass(1);
    assert_eq!(kept.tended(), 0);
    kept.pass(3599);
    assert_eq!(kept.tended(), 0);
    kept.pass(1);
    assert_eq!(kept.tended(), 10);
}

#[test]
fn a_clock_alone_empties_no_ledger() {
    // Wrong from the start on, and nothing comes: all rows are within 60 days of the newest.
    let mut kept = Kept::new();
    (0..100).for_each(|n| kept.row((200 - n) * DAY_MS / 4));
    kept.wall_ms += 4000 * DAY_MS;
    assert_eq!(kept.tended(), 0);
    kept.pass(86_400);
    assert_eq!(kept.tended(), 0);
    // A row of that clock's is the newest.
    kept.row(0);
    assert_eq!(kept.tended(), 100);
}

#[test]
fn for_want_of_room_rows_go_whatever_the_clock_says() {
    let mut kept = Kept::new();
    kept.options.bytes_max = Some(1);
    (0..10).for_each(|_| kept.row(0));
    assert_eq!(kept.tended(), 10);
}
