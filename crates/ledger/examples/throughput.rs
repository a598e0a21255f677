//! Rows a second and CPU a row, on this machine's disk: `cargo run --release -p ledger --example
//! throughput -- 200000 DIRECTORY`.
//!
//! Two workers admit and settle as fast as the queue takes it; then one waits for each admission
//! to be on disk, alone and 64 at once. CPU is the whole process's, from `/proc/self/stat`.

use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use ledger::{
    Admission, Intake, Ledger, Named, Options, Price, Progress, RecordId, Settlement, State,
    Witnesses,
};
use policy::price::Pico;
use policy::record::{Count, Outcome};

fn main() {
    let mut args = std::env::args().skip(1);
    let rows: u64 = args.next().and_then(|n| n.parse().ok()).unwrap_or(200_000);
    let dir = args.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let path = dir.join(format!("throughput-{}.db", std::process::id()));
    let (ledger, _) = Ledger::open(Options::at(&path)).expect("the directory can be written");
    settle(&ledger, rows);
    durable(&ledger, 1, 200);
    durable(&ledger, 64, 20);
    drop(ledger);
    for suffix in ["", ".lock"] {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        drop(std::fs::remove_file(name));
    }
}

fn settle(ledger: &Ledger, rows: u64) {
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    std::thread::scope(|scope| {
        for worker in 0..2 {
            let intake = ledger.intake();
            scope.spawn(move || work(&intake, worker, rows / 2));
        }
    });
    flush(&ledger.intake());
    let (took, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    let stats = ledger.stats();
    assert_eq!(stats.lost_settlements, 0);
    #[expect(clippy::cast_precision_loss, reason = "a rate to be looked at")]
    let settled = stats.settled as f64;
    println!(
        "{settled} rows in {took:.2} s: {:.0} rows/s, {:.1} us of CPU a row, {} commits",
        settled / took,
        cpu * 1e6 / settled,
        stats.commits
    );
}

/// Waits a little when half the queue is full, as a gate under its own load would not have to.
fn work(intake: &Intake, worker: u64, rows: u64) {
    for n in 0..rows {
        let (open, row) = exchange(worker << 32 | n);
        intake.admit(open);
        intake.settle(row);
        if n % 10_000 == 9_999 {
            flush(intake);
        }
    }
}

fn durable(ledger: &Ledger, at_once: u64, rounds: u64) {
    let intake = ledger.intake();
    let mut waits = Vec::new();
    for round in 0..rounds {
        let (done, is_done) = channel();
        for n in 0..at_once {
            let (done, sent) = (done.clone(), Instant::now());
            let (open, _) = exchange((at_once << 40) | (round << 8) | n);
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

fn exchange(n: u64) -> (Admission, Settlement) {
    let id = RecordId(u128::from(n).to_be_bytes());
    let open = Admission {
        id,
        started_unix_ms: 1_700_000_000_000 + n,
        request_id: "01890a5d-ac96-774b-bcce-b302099a8057".into(),
        named: Named {
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
