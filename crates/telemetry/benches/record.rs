//! What a record costs on a worker.

#[path = "../src/sample.rs"]
mod sample;

use std::sync::Arc;

use divan::{AllocProfiler, Bencher, black_box};
use policy::id::EndpointId;
use policy::limit::Kind;
use policy::record::{AttemptRecord, Sink};
use policy::retry::Retry;
use telemetry::{AccessLog, MetricsSnapshot, Target, WorkerMetrics, merge};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// A completed stream, with the access log off.
#[divan::bench]
fn exchange(bencher: Bencher<'_, '_>) {
    let s = sample::snapshot("0123456789abcdef", &["a", "b", "c"]);
    let records: Vec<_> = (0..3).map(sample::completed).collect();
    let mut facts = WorkerMetrics::new(None);
    records.iter().for_each(|r| facts.exchange(&s, r));
    let mut at = 0;
    bencher.bench_local(|| {
        at = (at + 1) % 3;
        facts.exchange(&s, black_box(&records[at]));
    });
}

/// A refusal by a limit.
#[divan::bench]
fn limited(bencher: Bencher<'_, '_>) {
    let s = sample::snapshot("0123456789abcdef", &["a"]);
    let record = sample::limited(0, Kind::Requests);
    let mut facts = WorkerMetrics::new(None);
    facts.exchange(&s, &record);
    bencher.bench_local(|| facts.exchange(&s, black_box(&record)));
}

/// A refusal of an unknown caller.
#[divan::bench]
fn unknown(bencher: Bencher<'_, '_>) {
    let s = sample::snapshot("0123456789abcdef", &["a"]);
    let record = sample::unknown();
    let mut facts = WorkerMetrics::new(None);
    facts.exchange(&s, &record);
    bencher.bench_local(|| facts.exchange(&s, black_box(&record)));
}

#[divan::bench]
fn attempt(bencher: Bencher<'_, '_>) {
    let s = sample::snapshot("0123456789abcdef", &["a"]);
    let attempt = AttemptRecord {
        endpoint: EndpointId(0),
        result: Ok(200),
        retry: Retry::No,
    };
    let mut facts = WorkerMetrics::new(None);
    bencher.bench_local(|| facts.attempt(&s, black_box(&attempt)));
}

/// A completed stream, with its access-log line; the writer appends to `/dev/null`.
#[divan::bench]
fn exchange_with_line(bencher: Bencher<'_, '_>) {
    let s = sample::snapshot("0123456789abcdef", &["a"]);
    let record = sample::completed(0);
    let log = AccessLog::start(Target::File("/dev/null".into())).expect("/dev/null opens");
    let mut facts = WorkerMetrics::new(Some(log.lines()));
    bencher.bench_local(|| facts.exchange(&s, black_box(&record)));
}

/// A scrape of two workers with a hundred workloads.
#[divan::bench]
fn scrape(bencher: Bencher<'_, '_>) {
    let names: Vec<String> = (0..100).map(|i| format!("workload-{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let s = Arc::new(sample::snapshot("0123456789abcdef", &names));
    let mut facts = WorkerMetrics::new(None);
    (0..100).for_each(|w| facts.exchange(&s, &sample::completed(w)));
    bencher.bench_local(|| {
        let copies = (0..2)
            .filter_map(|_| MetricsSnapshot::of(facts.copy()))
            .collect();
        merge(copies).render(&[])
    });
}
