//! `kill -9` at random moments, and SIGBUS by an index that is cut: no acknowledged row is lost, none is duplicated.
//!
//! The child is this test binary, run again with a path in its environment. It prints what was
//! acknowledged as durable; the parent kills it, opens the ledger, and compares. The page cache outlives
//! a killed process, so this does not test power loss, which depends on `synchronous = FULL`.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use ledger::{Ledger, Period, Progress, ReadError, Reader};
use rustix::process::Signal;
use testing::{Draw, PATIENCE, number_of, pace, seed};

use super::opening::open_count;
use crate::rows::{admission, id, opened, options, settlement, tokens};

/// Where the child writes, and the number of its first record.
const CHILD: &str = "LEDGER_KILL_CHILD";
const FIRST: &str = "LEDGER_KILL_FIRST";
const ROUND: u64 = 64;
/// The most that is acknowledged to a child before it is killed.
const LIFE: usize = 600;

#[test]
fn a_killed_writer_neither_loses_nor_duplicates_a_row() {
    let mut draw = Draw::new(seed("a_killed_writer"));
    let dir = tempfile::tempdir().expect("a directory");
    let mut promised: BTreeMap<String, (u64, &str)> = BTreeMap::new();
    let mut indeterminate = 0;
    for kill in 0..number_of("LEDGER_KILLS", 5) {
        // Some way into what comes after the last acknowledgement: a commit takes some milliseconds.
        let (promises, more) = (1 + draw.below(LIFE), draw.next() % 20_000);
        let first = (kill + 1) * 100_000_000;
        let killed = |child: &mut Child| {
            pace(Duration::from_micros(more));
            child.kill().expect("kills");
            child.wait().expect("ends");
        };
        let given = child_lives(dir.path(), first, promises, killed);
        promised.extend(given.into_iter().map(promised_of));
        let (ledger, recovered) = Ledger::open(options(dir.path())).expect("recovers");
        assert!(
            !recovered.log.is_damaged && recovered.lost.is_empty(),
            "{recovered:?}"
        );
        indeterminate += recovered.indeterminate;
        drop(ledger);
    }
    check(&dir.path().join("ledger.db"), promised, indeterminate);
}

/// SQLite has the index (`-shm`) mapped, and its log is read without one: what was acknowledged is in the file or in the log.
#[test]
fn a_writer_that_ends_by_an_index_that_is_cut_has_lost_no_row() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut promised = BTreeMap::new();
    let mut indeterminate = 0;
    // To nothing, within its header, and behind its first page: what is looked up at each commit stands behind that.
    for (round, length) in [0, 100, 4096].into_iter().enumerate() {
        let cut = |child: &mut Child| {
            let index = dir.path().join("ledger.db-shm");
            let index = OpenOptions::new().write(true).open(index);
            index.expect("opens").set_len(length).expect("cuts");
            let status = child.wait().expect("ends");
            println!("cut to {length} bytes: {status}");
            let signal = status.signal().expect("it ends by a signal");
            assert_eq!(signal, Signal::BUS.as_raw(), "{status}");
        };
        let first = (1 + round as u64) * 100_000_000;
        let given = child_lives(dir.path(), first, 200, cut);
        promised.extend(given.into_iter().map(promised_of));
        let (ledger, recovered) = Ledger::open(options(dir.path())).expect("recovers by itself");
        assert!(
            !recovered.log.is_damaged && recovered.lost.is_empty(),
            "{recovered:?}"
        );
        indeterminate += recovered.indeterminate;
        drop(ledger);
    }
    check(&dir.path().join("ledger.db"), promised, indeterminate);
}

fn promised_of((kind, n): (String, u64)) -> (String, (u64, &'static str)) {
    let what = if kind == "S" { "settled" } else { "either" };
    (id(n).to_string(), (n, what))
}

/// Starts a child, has it ended after so many acknowledgements, and returns all that it was given.
fn child_lives(
    dir: &Path,
    first: u64,
    promises: usize,
    end: impl FnOnce(&mut Child),
) -> Vec<(String, u64)> {
    let mut child = Command::new(std::env::current_exe().expect("a name"))
        .args([
            "--exact",
            "durability::kill::child_writes_until_it_is_killed",
            "--nocapture",
        ])
        .env(CHILD, dir)
        .env(FIRST, first.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let lines = BufReader::new(child.stdout.take().expect("is piped")).lines();
    let (tell, told) = channel();
    let reading = std::thread::spawn(move || {
        let promises = lines.map_while(Result::ok);
        promises
            .filter_map(|line| promise(&line))
            .for_each(|promise| drop(tell.send(promise)));
    });
    let mut given: Vec<_> = (0..promises)
        .map(|_| told.recv_timeout(PATIENCE).expect("it goes on writing"))
        .collect();
    end(&mut child);
    given.extend(told);
    reading.join().expect("reads");
    given
}

/// Parses a whole line `A 17.` or `S 17.`; a torn line acknowledges nothing.
fn promise(line: &str) -> Option<(String, u64)> {
    let (kind, n) = line.strip_suffix('.')?.split_once(' ')?;
    Some((kind.to_owned(), n.parse().ok()?))
}

fn check(path: &Path, mut promised: BTreeMap<String, (u64, &str)>, indeterminate: u64) {
    let reader = Reader::open(path).expect("opens");
    let verified = reader.verify(None).expect("reads");
    assert_eq!(verified.findings, []);
    assert_eq!(open_count(path), 0, "nothing stays open");
    let (mut seen, mut open) = (std::collections::BTreeSet::new(), 0);
    let total = promised.len();
    let read: Result<(), ReadError> = reader.each(Period::ALL, |row| {
        assert!(seen.insert(row.id()), "record {} is there twice", row.id());
        let state = row.text("state").expect("a state").to_owned();
        open += u64::from(state == "indeterminate");
        if let Some((n, expected)) = promised.remove(&row.id()) {
            assert!(
                expected == "either" || expected == state,
                "record {n} is {state}"
            );
            if state == "settled" {
                assert_eq!(
                    row.number("completion_tokens").map(i64::unsigned_abs),
                    Some(tokens(n))
                );
            } else {
                assert_eq!(row.number("at_most_tokens"), Some(1000));
            }
        }
        Ok(())
    });
    read.expect("reads");
    assert!(promised.is_empty(), "lost: {promised:?}");
    assert!(total > 0, "the children were promised nothing");
    assert_eq!(open, indeterminate);
    println!(
        "{total} promised, {} rows, {open} indeterminate, 0 lost, 0 doubled",
        seen.len()
    );
}

/// The child process and not a test; without its environment it does nothing.
#[test]
fn child_writes_until_it_is_killed() {
    let (Some(dir), Ok(first)) = (
        std::env::var_os(CHILD).map(PathBuf::from),
        std::env::var(FIRST),
    ) else {
        return;
    };
    let mut n: u64 = first.parse().expect("a number");
    let ledger = opened(options(&dir));
    let intake = ledger.intake();
    let (done, is_done) = channel();
    println!();
    loop {
        let round = n..n + ROUND;
        for n in round.clone() {
            if n % 4 == 0 {
                let done = done.clone();
                intake.admit_durable(admission(n), move |result| {
                    drop(done.send(('A', n, result)))
                });
            } else {
                intake.admit(admission(n));
            }
            intake.progress(Progress {
                id: id(n),
                tokens: 1,
                bytes_out: 10,
            });
        }
        // Every eighth exchange stays open, as a long stream would.
        for n in round.clone().filter(|n| n % 8 != 1) {
            intake.settle(settlement(n));
            intake.settle(settlement(n));
        }
        let flushed = done.clone();
        intake.flush(move |result| drop(flushed.send(('S', round.start, result))));
        loop {
            let (kind, at, result) = is_done.recv().expect("an answer");
            result.expect("the disk is there");
            let mut out = std::io::stdout().lock();
            if kind == 'A' {
                writeln!(out, "A {at}.").expect("says");
                continue;
            }
            for n in (at..at + ROUND).filter(|n| n % 8 != 1) {
                writeln!(out, "S {n}.").expect("says");
            }
            break;
        }
        n += ROUND;
    }
}
