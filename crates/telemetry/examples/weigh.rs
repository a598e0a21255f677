//! What a record weighs in instructions: build with `--release` and count with
//! `valgrind --tool=callgrind --toggle-collect=weigh::weighed weigh unary [file to log to]`.
//!
//! Invariant: everything inside [`weighed`] is the cost of records and nothing else; setting up
//! and the first record, which makes its series, happen outside.
//! Not here: time and allocations (`benches/record.rs`).

#[path = "../src/sample.rs"]
mod sample;

use std::hint::black_box;

use policy::limit::Kind;
use policy::record::{Record, Sink};
use policy::snapshot::Snapshot;
use telemetry::{AccessLog, Target, WorkerMetrics};

const RECORDS: u32 = 1000;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "unary".to_owned());
    let target = arguments.next();
    let record = match kind.as_str() {
        "streamed" => sample::completed(0),
        "unary" => Record {
            streamed: false,
            ..sample::completed(0)
        },
        "limited" => sample::limited(0, Kind::Requests),
        "unknown" => sample::unknown(),
        _ => panic!("weigh [unary|streamed|limited|unknown] [file to log to]"),
    };
    let snapshot = sample::snapshot("0123456789abcdef", &["a-workload"]);
    // As in the gate: the text sent is the snapshot's own.
    let models = &snapshot.backends[0].models;
    let record = Record {
        id: "3f0c9d5e7a1b4c2d8e6f0a1b2c3d4e5f".into(),
        model_sent: record.model_sent.and(models.first().cloned()),
        ..record
    };
    let log = target.map(|path| AccessLog::start(Target::File(path.into())));
    let log = log.map(|started| started.expect("the file can be opened for appending"));
    let mut facts = WorkerMetrics::new(log.as_ref().map(AccessLog::lines));
    facts.exchange(&snapshot, &record);
    for _ in 0..RECORDS {
        weighed(&mut facts, &snapshot, black_box(&record));
    }
    drop(facts);
    let lost = log.as_ref().map_or(0, AccessLog::dropped);
    println!("{RECORDS} records of kind {kind}, {lost} lines lost");
}

#[inline(never)]
fn weighed(facts: &mut dyn Sink, snapshot: &Snapshot, record: &Record) {
    facts.exchange(snapshot, record);
}
