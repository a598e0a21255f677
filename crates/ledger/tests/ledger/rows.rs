//! Rows to write, and waits for durability.
//!
//! The fuzz target of a ledger's file is built with this too, without what else the tests need.

use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{SystemTime, UNIX_EPOCH};

use ledger::{
    Admission, Intake, Ledger, Named, Options, Progress, RecordId, Settlement, State, Unavailable,
    Witnesses,
};
use policy::record::{Count, Outcome};
use testing::PATIENCE;

pub(crate) fn id(n: u64) -> RecordId {
    RecordId(u128::from(n).to_be_bytes())
}

pub(crate) fn admission(n: u64) -> Admission {
    Admission {
        id: id(n),
        started_unix_ms: 1_700_000_000_000 + n,
        request_id: format!("request-{n}").into(),
        named: Named {
            tool: None,
            workload: Some("swe-rebench-ide".into()),
            route: Some("on-prem".into()),
            backend: Some("vllm".into()),
            ..Named::default()
        },
        model_asked: Some("gpt-oss-120b".into()),
        model_sent: Some("gpt-oss-120b".into()),
        reserved: 1000,
        at_most: Some(1000),
    }
}

/// Tokens of record `n`, so that a reader can verify the row.
pub(crate) fn tokens(n: u64) -> u64 {
    n % 997
}

pub(crate) fn settlement(n: u64) -> Settlement {
    let progress = Progress {
        id: id(n),
        tokens: 0,
        bytes_out: 0,
    };
    let mut row = Settlement::indeterminate(admission(n), progress, 1_700_000_000_500 + n);
    row.state = State::Settled;
    row.record.outcome = Outcome::Completed;
    row.record.status = 200;
    row.record.code = "";
    row.record.tokens.completion = Count::Reported(tokens(n));
    row.completion = Witnesses {
        reported: Some(tokens(n)),
        counted: None,
        ..Witnesses::default()
    };
    row
}

pub(crate) fn options(dir: &Path) -> Options {
    at(dir.join("ledger.db"))
}

/// A directory in memory, where there is one: for many ledgers that are looked at and gone, each of which syncs some
/// twenty times.
pub(crate) fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a directory")
}

/// No commit is so slow that its disk counts as away, and a start checks all there is. The queue is as long as what is
/// sent at once here: room for a hundred thousand takes longer to make than most of these tests.
pub(crate) fn at(path: PathBuf) -> Options {
    Options {
        queue: 10_000,
        stall_after: PATIENCE,
        check_for: PATIENCE,
        ..Options::at(path)
    }
}

pub(crate) fn opened(options: Options) -> Ledger {
    Ledger::open(options).expect("opens").0
}

/// Waits until everything sent is durable or has failed.
pub(crate) fn flushed(intake: &Intake) -> Result<(), Unavailable> {
    let (done, is_done) = channel();
    intake.flush(move |result| drop(done.send(result)));
    is_done.recv_timeout(PATIENCE).expect("an answer")
}

pub(crate) fn admitted(intake: &Intake, n: u64) -> Result<(), Unavailable> {
    let (done, is_done) = channel();
    intake.admit_durable(admission(n), move |result| drop(done.send(result)));
    is_done.recv_timeout(PATIENCE).expect("an answer")
}

/// The wall clock, milliseconds since 1970: rows that end now are young.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(since.expect("a clock").as_millis()).expect("fits")
}
