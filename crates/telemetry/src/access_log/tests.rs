//! Writing, dropping, rotating and closing.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use policy::record::Sink;
use policy::snapshot::Snapshot;
use testing::{PATIENCE, eventually};

use super::{AccessLog, Message, NameCache, QUEUE, Target, close};
use crate::sample::{completed, snapshot};
use crate::worker_metrics::WorkerMetrics;

fn sample() -> Snapshot {
    snapshot("v1", &["a"])
}

/// Closes it as [`AccessLog::close`] does, and waits for its writer for as long as that takes.
fn end(log: &AccessLog) {
    close(&log.writer, &log.queue, || Message::Close, PATIENCE);
}

fn ids(text: &str) -> Vec<String> {
    let id = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        line["request_id"].as_str().unwrap().to_owned()
    };
    text.lines().map(id).collect()
}

fn numbered(i: usize) -> policy::record::Record {
    policy::record::Record {
        id: i.to_string().into(),
        ..completed(0)
    }
}

#[test]
fn every_exchange_is_one_line_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    fs::write(&path, "").unwrap();
    fs::remove_file(&path).unwrap();
    let log = AccessLog::start(Target::File(path.clone())).unwrap();
    let mut facts = WorkerMetrics::new(Some(log.lines()));
    for i in 0..1000 {
        facts.exchange(&sample(), &numbered(i));
        if i % 50 == 0 {
            // The queue must not overflow here.
            facts.tick();
            eventually("it is written", || {
                // Its end may not be there yet.
                fs::read_to_string(&path).unwrap().matches('\n').count() == i + 1
            });
        }
    }
    facts.tick();
    end(&log);
    let expected: Vec<String> = (0..1000).map(|i| i.to_string()).collect();
    assert_eq!(ids(&fs::read_to_string(&path).unwrap()), expected);
    assert_eq!(log.dropped(), 0);
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o137, 0, "{mode:o}");
}

/// Lines that find no room in what is left of a buffer.
#[test]
fn long_lines_are_written_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let log = AccessLog::start(Target::File(path.clone())).unwrap();
    let mut facts = WorkerMetrics::new(Some(log.lines()));
    let long = |i: usize| policy::record::Record {
        model_asked: Some("m".repeat(i * 977 % 50_000).into()),
        ..numbered(i)
    };
    (0..200).for_each(|i| facts.exchange(&sample(), &long(i)));
    drop(facts);
    end(&log);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(ids(&text).len() as u64 + log.dropped(), 200);
    for line in text.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let nth = line["request_id"].as_str().unwrap();
        let nth: usize = nth.parse().unwrap();
        assert_eq!(line["model"].as_str().unwrap().len(), nth * 977 % 50_000);
    }
}

#[test]
fn an_existing_file_is_appended_to() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    for i in 0..2 {
        let log = AccessLog::start(Target::File(path.clone())).unwrap();
        let mut lines = log.lines();
        lines.push(&NameCache::of(&sample()), &sample(), &numbered(i));
        drop(lines);
        end(&log);
    }
    assert_eq!(ids(&fs::read_to_string(&path).unwrap()), ["0", "1"]);
}

#[test]
fn a_file_that_cannot_be_opened_is_said_at_the_start() {
    let path = "/nonexistent/dir/access.log".into();
    assert!(AccessLog::start(Target::File(path)).is_err());
}

#[test]
fn after_rotation_lines_go_to_the_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (
        dir.path().join("access.log"),
        dir.path().join("access.log.1"),
    );
    let log = AccessLog::start(Target::File(path.clone())).unwrap();
    let mut lines = log.lines();
    lines.push(&NameCache::of(&sample()), &sample(), &numbered(1));
    lines.flush();
    eventually("a line", || fs::metadata(&path).unwrap().len() > 0);
    fs::rename(&path, &old).unwrap();
    log.reopen().unwrap();
    lines.push(&NameCache::of(&sample()), &sample(), &numbered(2));
    lines.flush();
    end(&log);
    assert_eq!(ids(&fs::read_to_string(&old).unwrap()), ["1"]);
    assert_eq!(ids(&fs::read_to_string(&path).unwrap()), ["2"]);
}

#[test]
fn a_reopen_that_fails_keeps_the_old_file() {
    let dir = tempfile::tempdir().unwrap();
    let (path, moved) = (dir.path().join("logs"), dir.path().join("moved"));
    fs::create_dir(&path).unwrap();
    let log = AccessLog::start(Target::File(path.join("access.log"))).unwrap();
    fs::rename(&path, &moved).unwrap();
    assert!(log.reopen().is_err());
    let mut lines = log.lines();
    lines.push(&NameCache::of(&sample()), &sample(), &numbered(1));
    lines.flush();
    end(&log);
    assert_eq!(
        ids(&fs::read_to_string(moved.join("access.log")).unwrap()),
        ["1"]
    );
}

/// A target that takes nothing until it is let.
struct Gated {
    entered: Sender<()>,
    let_go: Receiver<()>,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _ = self.entered.send(());
        // Whoever waits for it after all waits not for ever.
        let _ = self.let_go.recv_timeout(PATIENCE);
        self.written.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_stuck_target_costs_lines_and_no_time() {
    let (entered, has_entered) = channel();
    let (let_go, held) = channel();
    let written = Arc::new(Mutex::new(Vec::new()));
    let sink = Gated {
        entered,
        let_go: held,
        written: Arc::clone(&written),
    };
    let log = AccessLog::start_at(Target::Stdout, Box::new(sink)).unwrap();
    let mut lines = log.lines();
    let of = sample();
    let s = NameCache::of(&of);
    lines.push(&s, &of, &numbered(0));
    lines.flush();
    has_entered.recv_timeout(PATIENCE).unwrap();
    // The writer holds one batch; the queue takes QUEUE more, of two lines each.
    for i in 0..QUEUE + 10 {
        lines.push(&s, &of, &numbered(2 * i + 1));
        lines.push(&s, &of, &numbered(2 * i + 2));
        lines.flush();
    }
    assert_eq!(log.dropped(), 20);
    assert!(written.lock().unwrap().is_empty(), "it was waited for");
    drop(let_go);
    end(&log);
    let kept = ids(std::str::from_utf8(&written.lock().unwrap()).unwrap());
    assert_eq!(kept.len(), 1 + 2 * QUEUE);
    assert_eq!(log.dropped(), 20);
}

#[test]
fn closing_does_not_wait_for_ever() {
    let (entered, has_entered) = channel();
    let (let_go, held) = channel::<()>();
    let written = Arc::default();
    let sink = Gated {
        entered,
        let_go: held,
        written: Arc::clone(&written),
    };
    let log = AccessLog::start_at(Target::Stdout, Box::new(sink)).unwrap();
    let mut lines = log.lines();
    lines.push(&NameCache::of(&sample()), &sample(), &numbered(0));
    lines.flush();
    has_entered.recv_timeout(PATIENCE).unwrap();
    log.close();
    assert!(written.lock().unwrap().is_empty(), "it was waited for");
    drop(let_go);
}

/// A target that breaks in the middle of its second batch and then heals.
struct Flaky {
    writes: u32,
    written: Arc<Mutex<Vec<u8>>>,
}

impl Write for Flaky {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes += 1;
        let taken = match self.writes {
            2 => 10,
            3 => return Err(io::ErrorKind::BrokenPipe.into()),
            _ => bytes.len(),
        };
        let taken = &bytes[..taken];
        self.written.lock().unwrap().extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_broken_write_is_counted_and_does_not_spoil_later_lines() {
    let written = Arc::new(Mutex::new(Vec::new()));
    let sink = Flaky {
        writes: 0,
        written: Arc::clone(&written),
    };
    let log = AccessLog::start_at(Target::Stdout, Box::new(sink)).unwrap();
    let mut lines = log.lines();
    for i in 1..=3 {
        lines.push(&NameCache::of(&sample()), &sample(), &numbered(i));
        lines.flush();
    }
    end(&log);
    assert_eq!(log.dropped(), 1);
    let written = String::from_utf8(written.lock().unwrap().clone()).unwrap();
    let whole: Vec<&str> = written.lines().collect();
    assert_eq!(whole.len(), 3);
    assert_eq!(ids(whole[0]), ["1"]);
    assert!(
        serde_json::from_str::<serde_json::Value>(whole[1]).is_err(),
        "the torn line"
    );
    assert_eq!(ids(whole[2]), ["3"]);
}

#[test]
fn lines_after_the_close_are_counted_as_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let log = AccessLog::start(Target::File(dir.path().join("log"))).unwrap();
    let mut lines = log.lines();
    end(&log);
    lines.push(&NameCache::of(&sample()), &sample(), &numbered(1));
    lines.flush();
    assert_eq!(log.dropped(), 1);
}

#[test]
fn exchanges_cut_after_the_last_tick_are_written_when_the_worker_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.log");
    let log = AccessLog::start(Target::File(path.clone())).unwrap();
    let mut sink: Box<dyn Sink> = Box::new(WorkerMetrics::new(Some(log.lines())));
    sink.exchange(&sample(), &numbered(0));
    sink.tick();
    sink.exchange(&sample(), &numbered(1));
    sink.exchange(&sample(), &numbered(2));
    drop(sink);
    end(&log);
    assert_eq!(ids(&fs::read_to_string(&path).unwrap()), ["0", "1", "2"]);
    assert_eq!(log.dropped(), 0);
}
