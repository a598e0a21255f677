//! When this machine's cores stood still: what is late by so much is not a subject's doing.
//!
//! On each core a thread sleeps for a tick, again and again. Where it wakes much later than it should, nothing of ours ran
//! there meanwhile: a host took the core away, or a task of higher priority had it.
//! Taken for granted: the kernel gives a core to who has slept before 20 ms are over, so that a busy subject is no stall; and no CPU
//! quota throttles this process together with its subject.
//! Not here: a generator's own lateness (`load`), which makes a run void.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

const TICK: Duration = Duration::from_millis(5);
/// Waking so late is a stall.
const STALL_MIN: Duration = Duration::from_millis(20);

/// Watches for stalls until it is asked for them.
pub(crate) struct Watch {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Vec<(Instant, Instant)>>>,
}

/// The times in which a core stood still, in order, none touching another.
#[derive(Debug, Default)]
pub(crate) struct Stalls(Vec<(Instant, Instant)>);

impl Watch {
    /// Begins on every core that this process may use.
    pub(crate) fn start() -> io::Result<Self> {
        let usable = sched_getaffinity(None)?;
        let cores = (0..CpuSet::MAX_CPU).filter(|&core| usable.is_set(core));
        let mut watch = Self {
            is_over: Arc::default(),
            threads: Vec::new(),
        };
        for core in cores {
            let is_over = Arc::clone(&watch.is_over);
            let named = thread::Builder::new().name(format!("stalls-{core}"));
            watch
                .threads
                .push(named.spawn(move || stalls_of(core, &is_over))?);
        }
        Ok(watch)
    }

    /// What was found.
    pub(crate) fn end(mut self) -> Stalls {
        self.is_over.store(true, Ordering::Relaxed);
        let threads = self.threads.drain(..);
        Stalls::of(threads.flat_map(|thread| thread.join().unwrap_or_default()))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Stalls {
    /// Of times in any order, which may overlap.
    pub(crate) fn of(times: impl IntoIterator<Item = (Instant, Instant)>) -> Self {
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort_unstable();
        times.dedup_by(|later, earlier| {
            let touches = later.0 <= earlier.1;
            if touches {
                earlier.1 = earlier.1.max(later.1);
            }
            touches
        });
        Self(times)
    }

    /// How much of the time from `from` to `to` a core stood still.
    pub(crate) fn between(&self, from: Instant, to: Instant) -> Duration {
        let parts = self.0.iter().map(|&(began, ended)| {
            let (began, ended) = (began.max(from), ended.min(to));
            ended.saturating_duration_since(began)
        });
        parts.sum()
    }

    /// How often, and the longest of them.
    pub(crate) fn most(&self) -> (usize, Duration) {
        let longest = self.0.iter().map(|(began, ended)| *ended - *began).max();
        (self.0.len(), longest.unwrap_or_default())
    }
}

fn stalls_of(core: usize, is_over: &AtomicBool) -> Vec<(Instant, Instant)> {
    let mut own = CpuSet::new();
    own.set(core);
    // Where it may not be pinned, it watches whichever core it is given.
    let _ = sched_setaffinity(None, &own);
    let mut stalls = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let due = Instant::now() + TICK;
        thread::sleep(TICK);
        let woke = Instant::now();
        if woke.saturating_duration_since(due) >= STALL_MIN {
            stalls.push((due, woke));
        }
    }
    stalls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_that_touch_are_one_and_only_what_lies_in_a_time_counts() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let stalls = Stalls::of([(at(300), at(400)), (at(0), at(100)), (at(50), at(200))]);
        assert_eq!(stalls.most(), (2, Duration::from_millis(200)));
        for (from, to, ms) in [
            (0, 1000, 300),
            (150, 350, 100),
            (200, 300, 0),
            (320, 330, 10),
            (400, 100, 0),
        ] {
            let between = stalls.between(at(from), at(to));
            assert_eq!(between, Duration::from_millis(ms), "{from} to {to}");
        }
        assert_eq!(Stalls::default().most(), (0, Duration::ZERO));
    }

    #[test]
    fn every_core_is_watched_until_the_end() {
        let watch = Watch::start().expect("threads start");
        let cores = thread::available_parallelism().expect("cores").get();
        assert!(watch.threads.len() >= cores);
        let is_over = Arc::clone(&watch.is_over);
        testing::nothing_happens_for(TICK * 3);
        // Each of them holds it as long as it goes on.
        let holders = watch.threads.len() + 2;
        assert_eq!(Arc::strong_count(&is_over), holders, "a thread has ended");
        let _found = watch.end();
        assert_eq!(Arc::strong_count(&is_over), 1, "a thread goes on");
    }
}
