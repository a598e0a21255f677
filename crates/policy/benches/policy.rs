//! What policy costs on the way of a request: a take, alone and contended, and header filtering.
//!
//! Not here: whole exchanges at a socket (the proving ground).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use policy::clock::Mono;
use policy::credential::{KnownSet, forwards};
use policy::limit::{Bucket, Rate};
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
