//! What clients that hold connections, streams and buffers cost in memory, when they go, and what others wait meanwhile.
//!
//! The table of docs/security.md is what `TOLLGATE_HOLDERS=5000 cargo xtask timing` prints.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use testing::number_of;

use super::{Cell, Event, Scale, cells, run};

/// Memory that one client may cost, where there are enough clients to measure it.
const EACH_KIB: i64 = 160;

/// The times of one row.
#[derive(Debug, Default)]
struct Times {
    here: Option<Instant>,
    asked: Option<Instant>,
    /// From the last client's arrival until the gate had disconnected all of them.
    gone: Duration,
    /// Latencies of another client's calls meanwhile.
    calls: Vec<Duration>,
}

impl Times {
    fn take(&mut self, event: Event) {
        let now = Instant::now();
        let since = |before: Option<Instant>| now - before.expect("it began before");
        match event {
            Event::Here => self.here = Some(now),
            Event::Gone => self.gone = since(self.here),
            Event::Asked => self.asked = Some(now),
            Event::Answered => self.calls.push(since(self.asked)),
        }
    }
}

#[test]
#[ignore = "timing"]
fn timing_what_clients_that_hold_resources_cost() {
    let many = number_of("TOLLGATE_HOLDERS", 1000);
    let scale = Scale {
        many: usize::try_from(many).expect("few"),
        bounds: Duration::from_secs(5),
        pause: Duration::from_millis(2),
    };
    println!(
        "| clients | transport | workload | KiB each | gone after | calls | p50 | p99 | max |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut failed = Vec::new();
    for cell in cells() {
        let times = Mutex::new(Times::default());
        let each_kib = run(cell, scale, &|event| {
            let mut times = times.lock().unwrap_or_else(PoisonError::into_inner);
            times.take(event);
        });
        let mut times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
        times.calls.sort_unstable();
        print(cell, scale.many, each_kib, &times);
        // The bounds, and the lingering close of a refusal.
        if times.gone > Duration::from_secs(20) {
            failed.push(format!("{cell:?}: held for {:?}", times.gone));
        }
        if each_kib > EACH_KIB {
            failed.push(format!("{cell:?}: {each_kib} KiB each"));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

fn print(cell: Cell, many: usize, each_kib: i64, times: &Times) {
    let calls = &times.calls;
    let at = |share: usize| {
        let last = calls.len().saturating_sub(1);
        calls.get(last * share / 100).copied().unwrap_or_default()
    };
    println!(
        "| {many} {:?} | {} | {} | {each_kib} | {:.1?} | {} | {:.1?} | {:.1?} | {:.1?} |",
        cell.kind,
        if cell.tls { "TLS" } else { "plain" },
        if cell.known { "known" } else { "unknown" },
        times.gone,
        calls.len(),
        at(50),
        at(99),
        at(100),
    );
}
