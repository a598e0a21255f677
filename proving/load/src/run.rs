//! A run: users and arrivals on a thread a core, from the first connection to the last answer.
//!
//! Invariant: the moments at which the measurement begins and ends are known before the first request, so that whoever
//! samples the subject samples the same interval. Threads share nothing but counters that one writes and others read.
//! Not here: sampling; the law of what is due (`experiment`), a single exchange (`client`, `observer`).

mod control;
mod cpu;
mod lanes;
mod plan;
mod state;
mod thread;
mod timers;
mod user;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use experiment::certificate::{Certificate, Certifier, LATE_S, Leaving};
use experiment::workload::{SessionCounts, WorkloadError};
use serde::{Deserialize, Serialize};

use crate::client::TrustError;
use crate::observer::{Counters, Live, Measure, Observations};

pub use control::Control;
pub use cpu::thread_cpu;
pub use plan::{MOST_THREADS, Plan, Shape, Traffic};

/// Time for all threads to be ready before the plan begins.
const HEADSTART: Duration = Duration::from_millis(20);

/// The run itself failed; what the subject did is never one of these.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The operating system gave no thread, timer or event queue.
    #[error("the load client could not start: {0}")]
    Start(#[from] io::Error),
    /// The plan cannot be carried out.
    #[error("{0}")]
    Plan(String),
    /// The workload makes no sense.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// Nobody's certificates could be taken for good.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// A bug in the client.
    #[error("bug: the load client's thread panicked")]
    Panicked,
}

/// A run that is going on.
pub struct Running {
    /// When the plan began.
    pub start: Instant,
    /// When the measurement begins.
    pub begin: Instant,
    /// When the measurement ends at the latest.
    pub end: Instant,
    control: Control,
    /// By thread and profile.
    live: Vec<Vec<Arc<Live>>>,
    threads: Vec<JoinHandle<Result<Outcome, LoadError>>>,
}

/// What was seen of one profile.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ProfileOutcome {
    /// Of its exchanges.
    pub observations: Observations,
    /// Of its sessions.
    pub sessions: SessionCounts,
}

/// What a run was like. Read from a text it has no part of a certificate.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Outcome {
    /// In the plan's order.
    pub profiles: Vec<ProfileOutcome>,
    /// Length of the measurement.
    pub measured: Duration,
    /// CPU time of the client's threads in it.
    pub client_cpu: Duration,
    /// Rows of exchanges that found no room where they were to go.
    pub records_lost: u64,
    /// When it ended, since its start; what came later are answers alone.
    pub ended: Duration,
    /// Whether [`Control::stop`] ended it: what was under way then is nobody's fault.
    pub is_cut: bool,
    /// When requests were due and when they left, where the plan asks for a certificate.
    #[serde(skip)]
    pub sends: Option<Certifier>,
}

impl Running {
    /// Answers of which the first body byte has come and the last has not.
    #[must_use]
    pub fn open(&self) -> u64 {
        let all = self.live.iter().flatten();
        all.map(|live| live.open()).sum()
    }

    /// What each profile did so far, added up over threads.
    #[must_use]
    pub fn counters(&self) -> Vec<Counters> {
        let profiles = self.live.first().map_or(0, Vec::len);
        let mut sums = vec![Counters::default(); profiles];
        for thread in &self.live {
            for (sum, live) in sums.iter_mut().zip(thread) {
                live.read(sum);
            }
        }
        sums
    }

    /// Changes or ends the run.
    #[must_use]
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// Whether every request has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Waits for the requests in flight and takes what was seen.
    ///
    /// # Errors
    /// The client itself failed.
    pub fn finish(self) -> Result<Outcome, LoadError> {
        let mut outcome = Outcome::default();
        for thread in self.threads {
            outcome.absorb(thread.join().map_err(|_| LoadError::Panicked)??);
        }
        Ok(outcome)
    }
}

impl Outcome {
    /// Adds what another thread saw, or another run in step with this one ([`Plan::fleet`]).
    pub fn absorb(&mut self, other: Self) {
        self.measured = self.measured.max(other.measured);
        self.client_cpu += other.client_cpu;
        self.records_lost += other.records_lost;
        self.ended = self.ended.max(other.ended);
        self.is_cut |= other.is_cut;
        match (&mut self.sends, other.sends) {
            (Some(sum), Some(one)) => sum.absorb(one),
            (sum, one @ Some(_)) => *sum = one,
            (_, None) => {}
        }
        let profiles = &mut self.profiles;
        profiles.resize_with(
            profiles.len().max(other.profiles.len()),
            ProfileOutcome::default,
        );
        for (sum, one) in profiles.iter_mut().zip(other.profiles) {
            sum.observations.absorb(&one.observations);
            sum.sessions.absorb(one.sessions);
        }
    }

    /// Whether what was sent has the law that was asked for; `None` where the plan did not ask for it.
    #[must_use]
    pub fn certificate(&self) -> Option<Certificate> {
        let certificate = self.sends.clone()?.certify(self.ended);
        Some(certificate.with_leaving(self.leaving()))
    }

    /// How late sends of the measured time left after the generator had turned to them.
    fn leaving(&self) -> Leaving {
        let total = self.total();
        let times = total.histogram(Measure::Leaving);
        #[expect(clippy::cast_precision_loss, reason = "microseconds below 2^53")]
        let s = |us: u64| us as f64 / 1e6;
        let late_us = (LATE_S * 1e6) as u64;
        if times.is_empty() {
            return Leaving::default();
        }
        Leaving {
            sends: times.len(),
            late: times.count_between(late_us + 1, times.high()),
            p50_s: s(times.value_at_quantile(0.5)),
            p99_s: s(times.value_at_quantile(0.99)),
            max_s: s(times.max()),
        }
    }

    /// All profiles as one.
    #[must_use]
    pub fn total(&self) -> Observations {
        let mut sum = Observations::default();
        for profile in &self.profiles {
            sum.absorb(&profile.observations);
        }
        sum
    }
}

/// A run all of whose threads are ready.
pub struct Ready {
    plan: Arc<Plan>,
    control: Control,
    live: Vec<Vec<Arc<Live>>>,
    starts: Vec<SyncSender<Instant>>,
    threads: Vec<JoinHandle<Result<Outcome, LoadError>>>,
}

/// Starts `plan` on threads of its own, once all of them are ready.
///
/// # Errors
/// The plan makes no sense, or the operating system does not give what it needs.
pub fn start(plan: Plan) -> Result<Running, LoadError> {
    Ok(prepare(plan)?.start_at(Instant::now() + HEADSTART))
}

/// Makes the threads of `plan`, which wait to be told when to start.
///
/// # Errors
/// The plan makes no sense, or the operating system does not give what it needs.
pub fn prepare(plan: Plan) -> Result<Ready, LoadError> {
    plan.check()?;
    let plan = Arc::new(plan);
    let control = Control::new(&plan);
    let (ready, is_ready) = sync_channel(plan.threads);
    let (mut live, mut starts, mut threads) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..plan.threads {
        let own: Vec<Arc<Live>> = plan.traffic.iter().map(|_| Arc::default()).collect();
        let (start, when) = sync_channel(1);
        let given = thread::Given {
            plan: Arc::clone(&plan),
            part: plan.part_of(index as u64),
            live: own.clone(),
            wishes: control.wishes(),
        };
        let ready = ready.clone();
        let work = move || thread::run(given, &ready, &when);
        let named = std::thread::Builder::new().name("load".into());
        threads.push(named.spawn(work)?);
        live.push(own);
        starts.push(start);
    }
    drop(ready);
    for _ in 0..plan.threads {
        is_ready.recv().map_err(|_| LoadError::Panicked)??;
    }
    Ok(Ready {
        plan,
        control,
        live,
        starts,
        threads,
    })
}

impl Ready {
    /// Starts all threads at one moment.
    #[must_use]
    pub fn start_at(self, start: Instant) -> Running {
        // A thread that is gone says why when it is joined.
        for thread in &self.starts {
            let _gone = thread.send(start);
        }
        let begin = start + self.plan.warm_up;
        Running {
            start,
            begin,
            end: begin + self.plan.measure,
            control: self.control,
            live: self.live,
            threads: self.threads,
        }
    }
}
