//! Exact timers, kept by the ticker's runtime: the workers' have none.
//!
//! A runtime that keeps timers reads the clock around every wait for the network and goes through them,
//! also when none is set: 160 ns twice a call. What a worker times exactly is rare.
//! Invariant: a timer is made here or it panics, as the workers' runtimes know no time.
//! Not here: the deadlines of every exchange (`wheel`, `deadline`).

use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use hyper_util::rt::TokioTimer;
use tokio::runtime::Handle;
use tokio::time::{Timeout, sleep, timeout};

/// Where a worker's exact timers are kept.
#[derive(Clone)]
pub(crate) struct Timers(pub(crate) Handle);

impl Timers {
    /// Ready after so long.
    pub(crate) fn sleep(&self, after: Duration) -> tokio::time::Sleep {
        let _kept_there = self.0.enter();
        sleep(after)
    }

    /// Ready with `future`, or after so long.
    pub(crate) fn timeout<F: Future>(&self, after: Duration, future: F) -> Timeout<F> {
        let _kept_there = self.0.enter();
        timeout(after, future)
    }
}

impl Timer for Timers {
    fn sleep(&self, after: Duration) -> Pin<Box<dyn Sleep>> {
        let _kept_there = self.0.enter();
        TokioTimer::new().sleep(after)
    }

    fn sleep_until(&self, at: Instant) -> Pin<Box<dyn Sleep>> {
        let _kept_there = self.0.enter();
        TokioTimer::new().sleep_until(at)
    }

    fn reset(&self, sleep: &mut Pin<Box<dyn Sleep>>, at: Instant) {
        TokioTimer::new().reset(sleep, at);
    }
}

/// Runs hyper's tasks on this thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Local;

impl<F: Future<Output = ()> + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}
