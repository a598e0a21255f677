//! What policy costs on the way of a request: a take, alone and contended, and header filtering.
//!
//! Not here: whole exchanges at a socket (the proving ground).

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use policy::clock::Mono;
use policy::credential::{KnownSet, forwards};
use policy::limit::rolling::{Rolling, Room, Share};
use policy::limit::{Bucket, Kind, Rate};
use policy::wire::head::Head;

fn main() {
    divan::main();
}

/// Never empty within a run, so that every take writes.
fn bucket() -> Bucket {
    Bucket::new(Rate {
        amount: 1_000_000_000,
        per: Duration::from_secs(1),
        burst: 1 << 40,
    })
}

/// Nobody else at the bucket.
#[divan::bench(sample_size = 10_000, sample_count = 300)]
fn take_alone(bencher: divan::Bencher<'_, '_>) {
    let bucket = bucket();
    bencher.bench(|| bucket.take(divan::black_box(1), Mono(1)).is_ok());
}

/// The worst there is: another core does nothing but take from the same bucket.
#[divan::bench(sample_size = 10_000, sample_count = 300)]
fn take_contended(bencher: divan::Bencher<'_, '_>) {
    beside_a_hammer(|bucket| {
        bencher.bench(|| bucket.take(divan::black_box(1), Mono(1)).is_ok());
    });
}

#[divan::bench(sample_size = 10_000, sample_count = 300)]
fn take_and_settle_alone(bencher: divan::Bencher<'_, '_>) {
    let bucket = bucket();
    bencher.bench(|| take_and_settle(&bucket));
}

#[divan::bench(sample_size = 10_000, sample_count = 300)]
fn take_and_settle_contended(bencher: divan::Bencher<'_, '_>) {
    beside_a_hammer(|bucket| bencher.bench(|| take_and_settle(bucket)));
}

fn take_and_settle(bucket: &Bucket) -> bool {
    let taken = bucket.take(divan::black_box(900), Mono(1)).is_ok();
    bucket.settle(900, divan::black_box(700), Mono(1));
    taken
}

/// Of this kind, and what one take is of it; at each, one more leaves the window than is taken, so that all are given.
#[derive(Debug, Clone, Copy)]
struct Flow {
    kind: Kind,
    amount: u64,
    units: u64,
}

const FLOWS: [Flow; 4] = [
    flow(Kind::Requests, 2, 1),
    flow(Kind::Requests, 1000, 1),
    flow(Kind::Requests, 1_000_000, 1),
    flow(Kind::Tokens, 100_000, 900),
];

const fn flow(kind: Kind, amount: u64, units: u64) -> Flow {
    Flow {
        kind,
        amount,
        units,
    }
}

impl std::fmt::Display for Flow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.amount, self.kind.as_str())
    }
}

impl Flow {
    fn window(self) -> Rolling {
        let rate = Rate {
            amount: self.amount,
            per: Duration::from_secs(60),
            burst: self.amount,
        };
        Rolling::new(self.kind, rate, Room::Ample)
    }

    /// The time between two takes at which the window stays full.
    fn pause(self) -> Duration {
        Duration::from_secs(60).mul_f64(1.01) / u32::try_from(self.amount / self.units).unwrap_or(1)
    }
}

/// A window that is always full: each take has to let go of something first.
#[divan::bench(args = FLOWS, sample_size = 10_000)]
fn rolling_take_when_full(bencher: divan::Bencher<'_, '_>, flow: Flow) {
    let (window, pause, now) = (flow.window(), flow.pause(), Cell::new(Mono(0)));
    bencher.bench_local(|| {
        now.set(now.get().after(pause));
        window.take(divan::black_box(flow.units), now.get()).is_ok()
    });
}

/// What is more than the window admits.
#[divan::bench(args = FLOWS, sample_size = 1000)]
fn rolling_refuse(bencher: divan::Bencher<'_, '_>, flow: Flow) {
    let window = flow.window();
    let mut now = Mono(0);
    while window.take(flow.units, now).is_ok() {
        now = now.after(Duration::from_micros(1));
    }
    bencher.bench(|| window.take(divan::black_box(flow.units), now).is_err());
}

/// What a header of each answer says.
#[divan::bench(args = FLOWS, sample_size = 1000)]
fn rolling_level(bencher: divan::Bencher<'_, '_>, flow: Flow) {
    let window = flow.window();
    while window.take(flow.units, Mono(0)).is_ok() {}
    bencher.bench(|| window.level(divan::black_box(Mono(1))));
}

/// A take that has room, and its settlement.
#[divan::bench(sample_size = 1000)]
fn rolling_take_and_settle(bencher: divan::Bencher<'_, '_>) {
    let window = flow(Kind::Tokens, 1 << 39, 1).window();
    let now = Mono(1);
    bencher.bench(|| {
        let taken = window.take(divan::black_box(900), now).is_ok();
        let share = Share {
            reserved: 900,
            at: now,
        };
        window.settle(share, 900, divan::black_box(700), now);
        taken
    });
}

fn beside_a_hammer(measured: impl FnOnce(&Bucket)) {
    let (bucket, done) = (bucket(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                divan::black_box(bucket.take(1, Mono(1)).is_ok());
            }
        });
        measured(&bucket);
        done.store(true, Ordering::Relaxed);
    });
}

/// The head that the OpenAI SDK sends.
#[divan::bench]
fn filter_sdk_headers(bencher: divan::Bencher<'_, '_>) {
    let mut head = Head::new();
    for (name, value) in [
        ("host", "127.0.0.1:1975"),
        ("accept-encoding", "gzip, deflate"),
        ("connection", "keep-alive"),
        ("accept", "application/json"),
        ("content-type", "application/json"),
        ("user-agent", "OpenAI/Python 2.0"),
        ("x-stainless-lang", "python"),
        ("x-stainless-package-version", "2.0.0"),
        ("x-stainless-os", "Linux"),
        ("x-stainless-arch", "x64"),
        ("x-stainless-runtime", "CPython"),
        ("x-stainless-runtime-version", "3.13"),
        ("authorization", "Bearer none"),
        ("x-stainless-async", "false"),
        ("x-workload-app", "toolbench-agent"),
        ("x-stainless-retry-count", "0"),
        ("x-stainless-read-timeout", "600"),
        ("content-length", "1024"),
    ] {
        head.push(name.as_bytes(), value.as_bytes())
            .expect("a field");
    }
    let api = ("/chat/completions", KnownSet::default());
    bencher.bench(|| {
        let head = divan::black_box(&head);
        head.iter()
            .filter(|field| forwards(field, head, b"x-workload-app", &[], api))
            .count()
    });
}
