//! A hundred and fifty reloads leak no memory, threads or descriptors.

use std::time::Duration;

use super::{call, reload};
use crate::harness::Gate;
use crate::harness::streams::Streams;

const RELOADS: usize = 150;
/// Names of threads for blocking work.
const POOLS: [&str; 2] = ["tokio-rt-worker", "callout-names"];
const WARM: std::ops::RangeInclusive<usize> = 20..=50;

/// What a process holds.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
    /// Resident memory, KiB.
    memory: u64,
    /// Threads that were started by name.
    threads: usize,
    /// Threads of the runtimes' pools for blocking work, which end those that have had nothing to do for 10 s.
    pool: usize,
    descriptors: usize,
}

impl Held {
    /// The most of both.
    fn max(self, other: Self) -> Self {
        Self {
            memory: self.memory.max(other.memory),
            threads: self.threads.max(other.threads),
            pool: self.pool.max(other.pool),
            descriptors: self.descriptors.max(other.descriptors),
        }
    }
}

fn resources(gate: &Gate) -> Held {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gate.id())).expect("it runs");
    let field = |name: &str| {
        let line = status
            .lines()
            .find_map(|l| l.strip_prefix(name))
            .expect("a field");
        line.split_whitespace()
            .next()
            .and_then(|n| n.parse::<u64>().ok())
            .expect("a number")
    };
    let list = |what: &str| {
        let list = std::fs::read_dir(format!("/proc/{}/{what}", gate.id())).expect("it runs");
        list.filter_map(Result::ok)
    };
    // A thread that ends while it is looked at is none.
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
    let (pool, named): (Vec<_>, Vec<_>) = list("task")
        .filter_map(name)
        .partition(|name| POOLS.contains(&name.trim()));
    Held {
        memory: field("VmRSS:"),
        threads: named.len(),
        pool: pool.len(),
        descriptors: list("fd").count(),
    }
}

/// The same, once the pool is about as small as that: it grows with what is asked of it at once, and shrinks after ten
/// seconds. One that leaked would have grown hundreds of times.
fn settled(gate: &Gate, pool: usize) -> Held {
    testing::found("the pool shrinks", || {
        Some(resources(gate)).filter(|now| now.pool <= pool + 2)
    })
}

#[test]
fn a_hundred_and_fifty_reloads_leak_no_memory_threads_or_descriptors() {
    let upstream = Streams::start(Duration::from_millis(20));
    let config = |n: usize| {
        let mut text = format!(
            "backends: {{ up: {{ url: http://{}/v1 }} }}\nroutes:\n",
            upstream.address
        );
        text.push_str(
            "  - { name: r, workload: w, backend: up, limits: [ { tokens: 100M, per: 1m } ] }\n",
        );
        for k in 0..100 {
            text.push_str(&format!(
                "  - {{ name: r{k}, workload: w{n}-{k}, backend: up, limits: [ {{ requests: 5, per: 1m }} ] }}\n"
            ));
        }
        text
    };
    let gate = Gate::start(&config(0), &[]);
    let began = testing::Began::now();
    // The most of many moments: memory and threads of a warm gate come and go by megabytes.
    let mut warm = Held::default();
    for n in 1..=RELOADS {
        reload(&gate, &config(n % 7));
        assert_eq!(call(&gate, "w").status, 200);
        if WARM.contains(&n) {
            warm = warm.max(resources(&gate));
        }
    }
    let end = settled(&gate, warm.pool);
    let took = began.shown();
    println!("{RELOADS} reloads in {took}: {warm:?} to {end:?}");
    // A thread of the pool that came since has a heap of its own.
    let heaps = 1 + end.pool.saturating_sub(warm.pool) as u64;
    assert!(
        end.memory < warm.memory + heaps * 6 * 1024,
        "memory grew: {warm:?} to {end:?}"
    );
    assert!(end.threads <= warm.threads, "threads: {warm:?} to {end:?}");
    assert!(
        end.descriptors <= warm.descriptors + 4,
        "descriptors: {warm:?} to {end:?}"
    );
    assert_eq!(gate.records(RELOADS).len(), RELOADS);
}
