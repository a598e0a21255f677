//! A gate does not start on a damaged, rolled back or missing ledger, and says what to do.

use std::path::{Path, PathBuf};

use super::{answer, call, refused, rows, stop, usage};
use crate::harness::{Gate, Step, Upstream, tollgate};

const CALLS: u64 = 300;

struct Fixture {
    upstream: Upstream,
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self {
            upstream: Upstream::start(|_, _| vec![Step::Send(answer(7, 3))]),
            dir: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    fn ledger(&self) -> PathBuf {
        self.dir.path().join("usage.db")
    }

    /// A token budget; each call uses ten tokens.
    fn config(&self) -> String {
        super::config(self.upstream.address, &self.ledger(), "strict")
            + "budgets: { all: { tokens: 1000000, per: month } }\n"
    }

    /// Runs a gate, makes these calls and stops it; returns what remains of the budget.
    fn called(&self, ids: std::ops::Range<u64>) -> f64 {
        let gate = Gate::start(&self.config(), &[]);
        for n in ids {
            assert_eq!(gate.call(&call(&format!("c{n}"), "m")).status, 200);
        }
        testing::eventually("all is settled", || {
            gate.metric("tollgate_ledger_rows_total", &[]) >= rows_of(&gate)
        });
        let left = left(&gate);
        stop(gate);
        left
    }
}

fn rows_of(gate: &Gate) -> f64 {
    gate.metric("tollgate_exchanges_total", &["outcome=\"completed\""])
}

fn left(gate: &Gate) -> f64 {
    gate.metric("tollgate_budget_left", &["budget=\"all\""])
}

fn overwrite(path: &Path, at: usize, with: &[u8]) {
    let mut bytes = std::fs::read(path).expect("reads");
    bytes[at..at + with.len()].copy_from_slice(with);
    std::fs::write(path, bytes).expect("writes");
}

#[test]
fn a_damaged_ledger_stops_the_gate_and_salvage_reports_the_lost_rows() {
    let fixture = Fixture::new();
    let before = fixture.called(0..CALLS);
    let ledger = fixture.ledger();
    overwrite(&ledger, 8192, b"DAMAGED-PAGE");
    let damaged = std::fs::read(&ledger).expect("reads");

    let says = refused(&fixture.config());
    for word in [
        "is not as it was written",
        "damaged",
        "salvage",
        "docs/backup.md",
    ] {
        assert!(says.contains(word), "{word}: {says}");
    }
    assert!(
        damaged == std::fs::read(&ledger).expect("reads"),
        "it was changed"
    );
    let path = ledger.display().to_string();
    let verified = tollgate(
        fixture.dir.path(),
        &["usage", "--ledger", &path, "verify"],
        &[],
    );
    assert_eq!(verified.code, Some(1), "{verified:?}");

    let said = usage(&ledger, &["salvage", "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).expect("is JSON");
    let (kept, lost) = (said["rows"].as_u64(), &said["lost"]);
    let kept = kept.expect("a count");
    let lost: u64 = lost
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|l| l["rows"].as_u64())
        .sum();
    assert_eq!(kept + lost, CALLS, "{said}");
    let aside = said["kept_aside"][0].as_str().expect("a file");
    assert!(
        damaged == std::fs::read(aside).expect("reads"),
        "the damaged one is kept as it was"
    );

    let gate = Gate::start(&fixture.config(), &[]);
    assert_eq!(
        left(&gate),
        before + 10.0 * lost as f64,
        "what was kept is spent"
    );
    assert_eq!(
        gate.metric("tollgate_ledger_salvaged_rows_lost", &[]),
        lost as f64
    );
    assert_eq!(gate.metric("tollgate_ledger_available", &[]), 1.0);
    assert_eq!(gate.call(&call("after", "m")).status, 200);
    stop(gate);
    assert_eq!(rows(&ledger).len() as u64, kept + 1);
    let verified = usage(&ledger, &["verify"]);
    assert!(verified.contains("salvaged 20"), "{verified}");
    assert!(
        verified.contains("every row is as it was written"),
        "{verified}"
    );
}

#[test]
fn a_file_that_is_not_a_ledger_is_never_modified() {
    let fixture = Fixture::new();
    let path = fixture.ledger();
    std::fs::write(&path, b"notes of mine, and no database; ".repeat(500)).expect("writes");
    let garbage = std::fs::read(&path).expect("reads");
    let says = refused(&fixture.config());
    assert!(says.contains("not a database and no ledger"), "{says}");
    assert!(garbage == std::fs::read(&path).expect("reads"));

    std::fs::remove_file(&path).expect("removes");
    let made = std::process::Command::new("python3")
        .args(["-c", "import sqlite3,sys; d=sqlite3.connect(sys.argv[1]); d.execute('CREATE TABLE notes (t)'); d.commit()"])
        .arg(&path)
        .status();
    assert!(made.expect("python3 runs").success());
    let foreign = std::fs::read(&path).expect("reads");
    let says = refused(&fixture.config());
    assert!(says.contains("another program's database"), "{says}");
    assert!(foreign == std::fs::read(&path).expect("reads"));
    let left: Vec<_> = std::fs::read_dir(fixture.dir.path())
        .expect("lists")
        .flatten()
        .collect();
    assert_eq!(left.len(), 1, "nothing was made beside it: {left:?}");
}

#[test]
fn a_rolled_back_or_missing_ledger_does_not_refill_a_budget() {
    let fixture = Fixture::new();
    let ledger = fixture.ledger();
    fixture.called(0..20);
    let early = std::fs::read(&ledger).expect("reads");
    fixture.called(20..40);
    let late = std::fs::read(&ledger).expect("reads");

    std::fs::write(&ledger, &early).expect("sets it back");
    let says = refused(&fixture.config());
    assert!(
        says.contains("row 40 was written") && says.contains("ends at row 20"),
        "{says}"
    );
    std::fs::remove_file(&ledger).expect("removes");
    let says = refused(&fixture.config());
    assert!(
        says.contains("is gone") && says.contains("usage.db.head"),
        "{says}"
    );
    assert!(!ledger.exists());

    std::fs::write(&ledger, &late).expect("puts it back");
    let gate = Gate::start(&fixture.config(), &[]);
    assert_eq!(left(&gate), 1_000_000.0 - 400.0);
    stop(gate);
}

#[test]
fn a_saved_head_detects_a_ledger_rolled_back_together_with_its_head() {
    let fixture = Fixture::new();
    let ledger = fixture.ledger();
    let beside = fixture.dir.path().join("usage.db.head");
    fixture.called(0..5);
    let early = [&ledger, &beside].map(|file| std::fs::read(file).expect("reads"));
    let gate = Gate::start(&fixture.config(), &[]);
    assert_eq!(gate.call(&call("last", "m")).status, 200);
    testing::eventually("it is settled", || {
        gate.metric("tollgate_ledger_rows_total", &[]) == 1.0
    });
    let page = gate.admin("/ledger").json();
    assert_eq!(
        (&page["available"], &page["head"]["seq"]),
        (&true.into(), &6.into()),
        "{page}"
    );
    let head = format!("6:{}", page["head"]["hash"].as_str().expect("a hash"));
    let log = gate.path("gate.log");
    let mut gate = gate;
    gate.signal(libc::SIGTERM);
    gate.wait(testing::PATIENCE);
    let log = std::fs::read_to_string(log).expect("reads");
    assert!(log.contains(&head), "the log says where it ends: {log}");
    usage(&ledger, &["verify", "--head", &head]);

    std::fs::write(&ledger, &early[0]).expect("sets it back");
    std::fs::write(&beside, &early[1]).expect("sets it back");
    usage(&ledger, &["verify"]);
    let path = ledger.display().to_string();
    let asked = ["usage", "--ledger", &path, "verify", "--head", &head];
    let verified = tollgate(fixture.dir.path(), &asked, &[]);
    assert_eq!(verified.code, Some(1), "{verified:?}");
    assert!(verified.out.contains("row 6 was written"), "{verified:?}");
}

#[test]
fn a_backup_taken_while_running_is_restored_after_its_loss_is_accepted() {
    let fixture = Fixture::new();
    let ledger = fixture.ledger();
    let gate = Gate::start(&fixture.config(), &[]);
    for n in 0..20 {
        assert_eq!(gate.call(&call(&format!("c{n}"), "m")).status, 200);
    }
    testing::eventually("all is settled", || {
        gate.metric("tollgate_ledger_rows_total", &[]) == 20.0
    });
    let copy = fixture.dir.path().join("copy.db");
    let said = usage(&ledger, &["backup", &copy.display().to_string()]);
    assert!(said.contains("is whole: 20 rows"), "{said}");
    assert_eq!(rows(&copy).len(), 20);
    assert_eq!(gate.call(&call("lost", "m")).status, 200);
    stop(gate);
    std::fs::rename(&copy, &ledger).expect("puts it back");
    let says = refused(&fixture.config());
    assert!(says.contains("set back"), "{says}");
    let said = usage(&ledger, &["salvage"]);
    assert!(said.contains("20 rows kept, 1 lost"), "{said}");
    let gate = Gate::start(&fixture.config(), &[]);
    assert_eq!(left(&gate), 1_000_000.0 - 200.0);
    stop(gate);
}
