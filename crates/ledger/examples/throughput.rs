//! Rows a second and CPU a row, on this machine's disk: `cargo run --release -p ledger --example
//! throughput -- 200000 DIRECTORY`.
//!
//! Two workers admit and settle as fast as the queue takes it, so that nearly every exchange begins and ends
//! in one commit; then they settle what is open on disk; then one settles 400 a second, which is a commit for
//! every ten or so; then one waits for each admission to be on disk, alone and 64 at once. CPU is the whole process's, from `/proc/self/stat`; what making the exchanges takes
//! of it, with nothing to write them to, is told first.

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use ledger::{
    Admission, Ids, Intake, Ledger, Named, Options, Price, Progress, Settlement, State, Witnesses,
};
use policy::price::Pico;
use policy::record::{Count, Outcome};

fn main() {
    let mut args = std::env::args().skip(1);
    let rows: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let dir = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let path = dir.join(format!("throughput-{}.db", std::process::id()));
    let (ledger, _) = Ledger::open(Options::at(&path)).expect("the directory can be written");
    make(rows);
    settle(&ledger, rows);
    settle_open(&ledger, rows / 4);
    settle_at_a_rate(&ledger, 2000);
    durable(&ledger, 1, 200);
    durable(&ledger, 64, 20);
    drop(ledger);
    for suffix in ["", ".head", ".lock"] {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        drop(std::fs::remove_file(name));
    }
}

/// The example's own part.
fn make(rows: u64) {
    let cpu = cpu_seconds();
    let mut exchanges = Exchanges::of(0, 0);
    for _ in 0..rows {
        drop(std::hint::black_box(exchanges.next()));
    }
    #[expect(clippy::cast_precision_loss, reason = "a rate to be looked at")]
    let each = (cpu_seconds() - cpu) * 1e6 / rows as f64;
    println!("to make and drop an exchange: {each:.2} us of CPU");
}

fn settle(ledger: &Ledger, rows: u64) {
    measured(ledger, "", || by_two_workers(ledger, rows, work));
}

/// The same of exchanges whose admissions are on disk before they end.
fn settle_open(ledger: &Ledger, rows: u64) {
    measured(ledger, " that were open on disk", || {
        by_two_workers(ledger, rows, work_on_open);
    });
}

/// As a gate whose calls are few: what a commit costs is shared by few rows.
fn settle_at_a_rate(ledger: &Ledger, rows: u64) {
    measured(ledger, " at 400 a second", || {
        let intake = ledger.intake();
        let mut exchanges = Exchanges::of(2, LATER_MS / 2);
        for _ in 0..rows {
            let (open, row) = exchanges.next();
            intake.admit(open);
            intake.settle(row);
            std::thread::sleep(Duration::from_micros(2500));
        }
        flush(&intake);
    });
}

fn by_two_workers(ledger: &Ledger, rows: u64, work: fn(&Intake, u16, u64)) {
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let intake = ledger.intake();
            scope.spawn(move || work(&intake, worker, rows / 2));
        }
    });
    flush(&ledger.intake());
}

fn measured(ledger: &Ledger, what: &str, work: impl FnOnce()) {
    let (before, begun, cpu) = (ledger.stats(), Instant::now(), cpu_seconds());
    work();
    let (took, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let stats = ledger.stats();
    assert_eq!(stats.lost_settlements, 0);
    #[expect(clippy::cast_precision_loss, reason = "a rate to be looked at")]
    let settled = (stats.settled - before.settled) as f64;
    println!(
        "{settled} rows{what} in {took:.2} s: {:.0} rows/s, {:.2} us of CPU a row, {} commits",
        settled / took,
        cpu * 1e6 / settled,
        stats.commits - before.commits
    );
}

/// Waits a little when half the queue is full, as a gate under its own load would not have to.
fn work(intake: &Intake, worker: u16, rows: u64) {
    let mut exchanges = Exchanges::of(worker, 0);
    for n in 0..rows {
        let (open, row) = exchanges.next();
        intake.admit(open);
        intake.settle(row);
        if n % 10_000 == 9_999 {
            flush(intake);
        }
    }
}

/// Settles a thousand at a time, once their admissions are on disk.
fn work_on_open(intake: &Intake, worker: u16, rows: u64) {
    let mut exchanges = Exchanges::of(worker, LATER_MS);
    for begin in (0..rows).step_by(1000) {
        let some = begin..rows.min(begin + 1000);
        let mut ended = Vec::new();
        for _ in some {
            let (open, row) = exchanges.next();
            intake.admit(open);
            ended.push(row);
        }
        flush(intake);
        ended.into_iter().for_each(|row| intake.settle(row));
    }
}

fn durable(ledger: &Ledger, at_once: u64, rounds: u64) {
    let intake = ledger.intake();
    let mut waits = Vec::new();
    let mut exchanges = Exchanges::of(0, LATER_MS * (1 + at_once));
    for _ in 0..rounds {
        let (done, is_done) = channel();
        for _ in 0..at_once {
            let (done, sent) = (done.clone(), Instant::now());
            let (open, _) = exchanges.next();
            intake.admit_durable(open, move |result| {
                drop(done.send((result, sent.elapsed())))
            });
        }
        drop(done);
        waits.extend(is_done.iter().map(|(result, wait): (_, Duration)| {
            result.expect("the disk is there");
            wait
        }));
    }
    waits.sort();
    let at = |share: usize| waits[(waits.len() - 1) * share / 100];
    println!(
        "durable admission, {at_once} at once: p50 {:.2?}, p99 {:.2?}",
        at(50),
        at(99)
    );
}

fn flush(intake: &Intake) {
    let (done, is_done) = channel();
    intake.flush(move |result| drop(done.send(result)));
    is_done
        .recv()
        .expect("an answer")
        .expect("the disk is there");
}

/// Where the clock stands for exchanges of a later part.
const LATER_MS: u64 = 100_000_000;
/// Exchanges of a worker in a millisecond.
const PER_MS: u64 = 50;

/// A worker's exchanges, with names and times as the gate gives them.
struct Exchanges {
    ids: Ids,
    began_unix_ms: u64,
    made: u64,
}

impl Exchanges {
    fn of(worker: u16, later_ms: u64) -> Self {
        Self {
            ids: Ids::new(0x5eed, worker),
            began_unix_ms: 1_700_000_000_000 + later_ms,
            made: 0,
        }
    }

    fn next(&mut self) -> (Admission, Settlement) {
        self.made += 1;
        exchange(&mut self.ids, self.began_unix_ms + self.made / PER_MS)
    }
}

fn exchange(ids: &mut Ids, started_unix_ms: u64) -> (Admission, Settlement) {
    let id = ids.next(started_unix_ms);
    let open = Admission {
        id,
        started_unix_ms,
        request_id: "01890a5d-ac96-774b-bcce-b302099a8057".into(),
        named: Named {
            tool: None,
            trace_id: Some("0af7651916cd43dd8448eb211c80319c".into()),
            workload: Some("swe-rebench-ide".into()),
            budget_group: Some("engineering".into()),
            route: Some("on-prem".into()),
            backend: Some("on-prem".into()),
            ..Named::default()
        },
        model_asked: Some("gpt-oss-120b".into()),
        model_sent: Some("gpt-oss-120b".into()),
        reserved: 8000,
        at_most: Some(8000),
    };
    let progress = Progress {
        id,
        tokens: 0,
        bytes_out: 0,
    };
    let mut row = Settlement::indeterminate(open.clone(), progress, open.started_unix_ms + 900);
    row.state = State::Settled;
    (row.record.outcome, row.record.status) = (Outcome::Completed, 200);
    let tokens = &mut row.record.tokens;
    (tokens.prompt, tokens.completion) = (Count::Reported(7300), Count::Reported(7300));
    let count = Witnesses {
        reported: Some(7300),
        counted: Some(7300),
        ..Witnesses::default()
    };
    (row.prompt, row.completion) = (count, count);
    row.price = Some(Price {
        id: "sha256:5f2b6b0e6c1d4a7f".into(),
        currency: "USD".into(),
        cost: Some(Pico(730_000_000)),
    });
    (open, row)
}

/// User and system time of this process; the clock ticks a hundred times a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit(") ").next().expect("fields");
    let ticks = after_name
        .split(' ')
        .skip(11)
        .take(2)
        .map(|n| n.parse::<f64>().expect("a number"));
    ticks.sum::<f64>() / 100.0
}
