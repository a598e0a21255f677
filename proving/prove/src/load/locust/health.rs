//! What this process uses, as heartbeats say it.
//!
//! Locust's own workers have one thread and report its share of one CPU. This process may have many: its share is of
//! all CPUs that it may use, so that the master's warning at 90 % means the same.
//! Not here: what others use (`host::usage`).

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use super::message::Health;
use crate::host::usage;

/// Between two measurements; heartbeats in between repeat the last.
const INTERVAL: Duration = Duration::from_secs(5);

/// Measures from one call to the next.
pub(super) struct Meter {
    cpus: f64,
    measured: Instant,
    cpu: Duration,
    last: Health,
}

impl Meter {
    pub(super) fn new(now: Instant) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let mut meter = Self {
            cpus: cpus as f64,
            measured: now,
            cpu: process_cpu(),
            last: Health::default(),
        };
        meter.last.memory_bytes = memory();
        meter
    }

    pub(super) fn health(&mut self, now: Instant) -> Health {
        let passed = now - self.measured;
        if passed >= INTERVAL {
            let cpu = process_cpu();
            let used = cpu.saturating_sub(self.cpu).as_secs_f64();
            self.last = Health {
                cpu_percent: 100.0 * used / (passed.as_secs_f64() * self.cpus),
                memory_bytes: memory(),
            };
            (self.measured, self.cpu) = (now, cpu);
        }
        self.last
    }
}

fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

fn memory() -> u64 {
    i32::try_from(std::process::id()).map_or(0, usage::rss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_thread_is_seen_and_so_is_memory() {
        let began = Instant::now();
        let mut meter = Meter::new(began);
        assert!(meter.health(began).memory_bytes > 1 << 20);
        let before = process_cpu();
        let mut sum = 0_u64;
        while process_cpu() < before + Duration::from_millis(50) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let later = began + INTERVAL;
        let health = meter.health(later);
        let least = 100.0 * 0.05 / (INTERVAL.as_secs_f64() * meter.cpus);
        assert!(health.cpu_percent >= least, "{health:?}");
        assert_eq!(meter.health(later), health, "kept until the next");
    }
}
