//! Hundreds of reloads leak no memory, threads or descriptors.

use std::time::{Duration, Instant};

use super::{call, reload};
use crate::harness::Gate;
use crate::harness::streams::Streams;

const RELOADS: usize = 300;
const WARM: std::ops::RangeInclusive<usize> = 30..=90;

/// Resident memory in KiB, threads, and descriptors of a process.
fn resources(gate: &Gate) -> (u64, u64, usize) {
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
    let open = std::fs::read_dir(format!("/proc/{}/fd", gate.id()))
        .expect("it runs")
        .count();
    (field("VmRSS:"), field("Threads:"), open)
}

/// The same, once there are no more threads than that, or after twice the time that a thread of the runtime's pool for
/// blocking work stays when it has none (10 s).
fn settled(gate: &Gate, threads: u64) -> (u64, u64, usize) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let now = resources(gate);
        if now.1 <= threads || Instant::now() > until {
            return now;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn hundreds_of_reloads_leak_no_memory_threads_or_descriptors() {
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
    let began = Instant::now();
    // The most of many moments: memory and threads of a warm gate come and go by megabytes.
    let mut warm = (0, 0, 0);
    for n in 1..=RELOADS {
        reload(&gate, &config(n % 7));
        assert_eq!(call(&gate, "w").status, 200);
        if WARM.contains(&n) {
            let now = resources(&gate);
            warm = (warm.0.max(now.0), warm.1.max(now.1), warm.2.max(now.2));
        }
    }
    let end = settled(&gate, warm.1);
    println!(
        "{RELOADS} reloads in {:?}; (KiB, threads, descriptors): {warm:?} to {end:?}",
        began.elapsed()
    );
    // A thread that came since has a heap of its own.
    let heaps = 1 + end.1.saturating_sub(warm.1);
    assert!(
        end.0 < warm.0 + heaps * 6 * 1024,
        "memory grew: {warm:?} to {end:?}"
    );
    // Threads for blocking work come and go; one that leaked would have done so hundreds of times.
    assert!(end.1 <= warm.1 + 2, "threads: {warm:?} to {end:?}");
    assert!(end.2 <= warm.2 + 4, "descriptors: {warm:?} to {end:?}");
    assert_eq!(gate.records(RELOADS).len(), RELOADS);
}
