//! One run on a thread of its own.
//!
//! Invariant: the moments at which the measurement begins and ends are known before the first
//! request, so that whoever samples the subject samples the same interval.
//! Not here: sampling.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep_until, timeout_at};

use crate::connection::BUFFER_BYTES;
use crate::cpu::thread_cpu;
use crate::observations::Observations;
use crate::pace::Schedule;
use crate::plan::{Arrivals, Plan};
use crate::user::{Shared, live};

/// Time for the thread to start before the plan does.
const HEADSTART: Duration = Duration::from_millis(20);

/// The run itself failed; what the subject did is never one of these.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The operating system gave no thread, timer or event queue.
    #[error("the load client could not start: {0}")]
    Start(#[from] io::Error),
    /// A bug in the client.
    #[error("bug: the load client's thread panicked")]
    Panicked,
}

/// A run that is going on.
pub struct Running {
    /// When the measurement begins.
    pub begin: Instant,
    /// When the measurement ends at the latest.
    pub end: Instant,
    open: Arc<AtomicU64>,
    thread: JoinHandle<Result<Observations, LoadError>>,
}

impl Running {
    /// Responses of which the first body byte has come and the last has not.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Whether every request has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the requests in flight and takes what was seen.
    ///
    /// # Errors
    /// The client itself failed.
    pub fn finish(self) -> Result<Observations, LoadError> {
        self.thread.join().map_err(|_| LoadError::Panicked)?
    }
}

/// Starts `plan` on a new thread.
///
/// # Errors
/// The operating system gave no thread.
pub fn start(plan: Plan) -> Result<Running, LoadError> {
    let start = Instant::now() + HEADSTART;
    let begin = start + plan.warm_up;
    let end = begin + plan.measure;
    let open = Arc::new(AtomicU64::new(0));
    let gauge = Arc::clone(&open);
    let work = move || drive(plan, [start, begin, end].map(Into::into), gauge);
    let thread = std::thread::Builder::new()
        .name("load".into())
        .spawn(work)?;
    Ok(Running {
        begin,
        end,
        open,
        thread,
    })
}

fn drive(
    plan: Plan,
    moments: [tokio::time::Instant; 3],
    open: Arc<AtomicU64>,
) -> Result<Observations, LoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let [start, begin, end] = moments;
    let schedule = match plan.arrivals {
        Arrivals::Open { per_second, .. } => Some(Rc::new(Schedule::new(
            start,
            end,
            per_second,
            plan.most.unwrap_or(u64::MAX),
        ))),
        Arrivals::Closed { .. } | Arrivals::Hold { .. } => None,
    };
    let buffer = Rc::new(RefCell::new(vec![0; BUFFER_BYTES].into_boxed_slice()));
    let (seen, sent) = (RefCell::new(Observations::new()), Cell::new(0));
    let shared = Rc::new(Shared {
        plan,
        start,
        begin,
        end,
        schedule,
        seen,
        buffer,
        sent,
        open,
        done: Notify::new(),
    });
    LocalSet::new().block_on(&runtime, orchestrate(&shared))?;
    let mut seen = shared.seen.borrow().clone();
    seen.unsent = shared
        .schedule
        .as_ref()
        .map_or(0, |schedule| schedule.unsent());
    Ok(seen)
}

async fn orchestrate(shared: &Rc<Shared>) -> io::Result<()> {
    let mut users = JoinSet::new();
    for place in 0..shared.plan.arrivals.connections() {
        users.spawn_local(live(Rc::clone(shared), place));
    }
    let releasing = shared.schedule.clone();
    let release = async move {
        match releasing {
            Some(schedule) => schedule.run().await,
            None => Ok(()),
        }
    };
    let all = async {
        while users.join_next().await.is_some() {}
        if shared.all_sent() {
            shared.done.notify_one();
        }
    };
    let patience = shared.end + shared.plan.timeout * 2;
    let (released, (), _) = tokio::join!(release, watch(shared), timeout_at(patience, all));
    released
}

/// Takes the thread's CPU time over exactly the measured interval, which ends early with the last of a number of requests.
async fn watch(shared: &Shared) {
    sleep_until(shared.begin).await;
    let before = (thread_cpu(), tokio::time::Instant::now());
    tokio::select! {
        () = sleep_until(shared.end) => {}
        () = shared.done.notified() => {}
    }
    let mut seen = shared.seen.borrow_mut();
    seen.client_cpu = thread_cpu().saturating_sub(before.0);
    seen.measured = before.1.elapsed();
}
