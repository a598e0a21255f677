//! Who sends the load of a measurement: this process, or a fleet of processes beside it.
//!
//! Processes of a fleet are told what to send and one moment at which to begin; each has the users and arrivals whose number
//! leaves its own as the remainder, and what they saw is added up as what the threads of one process saw.
//! Invariant: all of them are ready before the moment at which they begin is told; one that is gone ends the measurement, and
//! none is left when it has ended.
//! Not here: what travels to them (`order`), the process itself (`worker`).

mod order;
pub(crate) mod worker;

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use experiment::workload::Part;
use load::run::{Outcome, Running, start};

use super::bodies::Requests;
use super::cell::{self, Sent};
use super::scenario::{Scenario, Timing};
use crate::host::process::OWN;
use order::{Moment, Order, Said, Seen, Word};

/// Time for what starts it to reach every process.
const HEADSTART: Duration = Duration::from_millis(50);

/// Whoever sends.
pub(super) enum Generator {
    Here(Running),
    Fleet(Fleet),
}

/// What was sent, and by whom.
pub(super) struct Generated {
    /// Of all processes.
    pub(super) outcome: Outcome,
    /// What each process of a fleet had answered; empty where this process sent.
    pub(super) answered: Vec<u64>,
}

/// Processes that send in step.
pub(super) struct Fleet {
    workers: Vec<Worker>,
    begin: Instant,
    end: Instant,
    /// Whose turn it is goes on from theirs.
    requests: Arc<Requests>,
}

/// One of them.
struct Worker {
    child: Child,
    /// Closing it ends the process.
    words: Option<ChildStdin>,
    is_ready: Receiver<()>,
    open: Arc<AtomicU64>,
    hears: Option<JoinHandle<Result<Seen, String>>>,
}

impl Generator {
    /// Begins to send what is `sent`, from so many processes where they can send it.
    pub(super) fn start(
        targets: &[SocketAddr],
        sent: Sent,
        (scenario, timing): (&Scenario, Timing),
        processes: usize,
    ) -> Result<Self, String> {
        // Who has no user has nothing to send.
        let processes = processes.min(scenario.users);
        match &sent.requests {
            Some(requests) if processes > 1 => {
                let order = |index| {
                    let part = Part {
                        index,
                        of: processes as u64,
                    };
                    Order::new(targets, requests, (scenario, timing), part)
                };
                let workers: Result<Vec<Worker>, String> = (0..processes as u64)
                    .map(|index| Worker::start(&order(index)))
                    .collect();
                Fleet::begin(workers?, timing, Arc::clone(requests)).map(Self::Fleet)
            }
            _ => {
                let plan = cell::plan(targets, sent, (scenario, timing), Part::WHOLE);
                let running = start(plan).map_err(|error| error.to_string())?;
                Ok(Self::Here(running))
            }
        }
    }

    /// When the measurement begins.
    pub(super) const fn begin(&self) -> Instant {
        match self {
            Self::Here(running) => running.begin,
            Self::Fleet(fleet) => fleet.begin,
        }
    }

    /// When the measurement ends.
    pub(super) const fn end(&self) -> Instant {
        match self {
            Self::Here(running) => running.end,
            Self::Fleet(fleet) => fleet.end,
        }
    }

    /// Answers that have begun and not ended.
    pub(super) fn open(&self) -> u64 {
        match self {
            Self::Here(running) => running.open(),
            Self::Fleet(fleet) => {
                let each = fleet.workers.iter();
                each.map(|worker| worker.open.load(Ordering::Relaxed)).sum()
            }
        }
    }

    /// Ends it at once.
    pub(super) fn stop(&mut self) {
        match self {
            Self::Here(running) => running.control().stop(),
            // One that is gone says so when it is heard.
            Self::Fleet(fleet) => fleet
                .workers
                .iter_mut()
                .for_each(|worker| drop(worker.tell(Word::Stop))),
        }
    }

    /// Waits for what is under way.
    pub(super) fn finish(self) -> Result<Generated, String> {
        match self {
            Self::Here(running) => {
                let outcome = running.finish().map_err(|error| error.to_string())?;
                Ok(Generated {
                    outcome,
                    answered: Vec::new(),
                })
            }
            Self::Fleet(fleet) => fleet.finish(),
        }
    }
}

impl Fleet {
    /// Lets them begin, once all are ready.
    fn begin(
        mut workers: Vec<Worker>,
        timing: Timing,
        requests: Arc<Requests>,
    ) -> Result<Self, String> {
        for worker in &mut workers {
            if worker.is_ready.recv().is_err() {
                return Err(worker.why_gone());
            }
        }
        let start = Instant::now() + HEADSTART;
        let moment = Moment::of(start);
        for worker in &mut workers {
            if worker.tell(Word::Start(moment)).is_err() {
                return Err(worker.why_gone());
            }
        }
        let begin = start + timing.warm_up;
        Ok(Self {
            workers,
            begin,
            end: begin + timing.measure,
            requests,
        })
    }

    fn finish(mut self) -> Result<Generated, String> {
        let mut outcome = Outcome::default();
        let mut answered = Vec::new();
        let processes = self.workers.len();
        for worker in &mut self.workers {
            let seen = worker.heard()?;
            answered.push(seen.outcome.total().answered);
            outcome.absorb(seen.outcome);
            let fixed = self.requests.fixed();
            fixed.go_on_from(seen.turns * processes);
        }
        Ok(Generated { outcome, answered })
    }
}

impl Worker {
    fn start(order: &Order) -> Result<Self, String> {
        let said = |error: std::io::Error| format!("a process to send could not start: {error}");
        let mut child = Command::new(OWN)
            .arg("load-worker")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(said)?;
        let (words, says) = (child.stdin.take(), child.stdout.take());
        let (ready, is_ready) = channel();
        let open = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&open);
        let hears = says.map(|says| thread::spawn(move || hear(says, &ready, &counted)));
        let mut worker = Self {
            child,
            words,
            is_ready,
            open,
            hears,
        };
        match worker.tell(order) {
            Ok(()) => Ok(worker),
            Err(_) => Err(worker.why_gone()),
        }
    }

    fn tell(&mut self, what: impl serde::Serialize) -> Result<(), String> {
        let words = self.words.as_mut().ok_or("it has ended")?;
        rmp_serde::encode::write_named(words, &what).map_err(|error| error.to_string())?;
        words.flush().map_err(|error| error.to_string())
    }

    /// What it saw, once it has ended.
    fn heard(&mut self) -> Result<Seen, String> {
        let gone = || Err("a process that sent was gone before it told what it saw".to_owned());
        let Some(hears) = self.hears.take() else {
            return gone();
        };
        hears.join().unwrap_or_else(|_| gone())
    }

    fn why_gone(&mut self) -> String {
        self.words = None;
        match self.heard() {
            Err(says) => says,
            Ok(_) => "a process that sent ended before it began".to_owned(),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.words = None;
        // It may have ended already; what remains of it is taken either way.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Hears what one says to its end.
fn hear(
    mut says: impl std::io::Read,
    ready: &Sender<()>,
    open: &AtomicU64,
) -> Result<Seen, String> {
    loop {
        match rmp_serde::from_read(&mut says) {
            Ok(Said::Ready) => drop(ready.send(())),
            Ok(Said::Open(count)) => open.store(count, Ordering::Relaxed),
            Ok(Said::Ended(seen)) => return Ok(*seen),
            Ok(Said::Failed(why)) => return Err(why),
            Err(_) => {
                return Err("a process that sent was gone before it told what it saw".to_owned());
            }
        }
    }
}
