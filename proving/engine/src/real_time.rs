//! The scheduler on the wall clock: one task that steps, and the requests that wait for their tokens.
//!
//! A step takes the time that its cost says. Up to two steps are under way, as in the engine that is simulated;
//! tokens go out one after another, each at the front end's cost.
//! Invariant: whoever drops its [`JobHandle`] before the end is aborted, and its blocks are free before the next step
//! is chosen. The task ends when the engine does.
//! Not here: which requests run (`scheduler`), what a step costs (`cost`), virtual time (`virtual_time`).

mod handle;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use simulator::scheduler::{Emitted, MAX_STEPS_UNDER_WAY, Request, RequestId, Scheduler, Step};
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use crate::config::Hardware;
use crate::generation::Generation;
use crate::plan::Finish;
use crate::recorder::Recorder;
pub(crate) use handle::{JobHandle, Progress};

/// How far behind the clock the engine may fall, when the machine is busy, before it lets lost time go.
const MOST_BEHIND: Duration = Duration::from_millis(100);

/// A sequence to be run, with those who want to know.
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) generation: Generation,
    pub(crate) finish: Finish,
    pub(crate) progress: Arc<Progress>,
    pub(crate) choice: usize,
}

pub(crate) enum Command {
    Submit(Box<Job>),
    Abort(RequestId),
}

struct Engine {
    scheduler: Scheduler,
    hardware: Hardware,
    jobs: HashMap<RequestId, Job>,
    under_way: VecDeque<(Step, Instant)>,
    /// When the last step that was scheduled will have run.
    busy_until: Instant,
    /// There was nothing to run.
    idle: bool,
    /// Tokens on their way through the front end.
    leaving: VecDeque<(Emitted, Instant)>,
    recorder: Arc<Recorder>,
}

/// Runs until the last sender is gone.
pub(crate) async fn run(
    hardware: Hardware,
    recorder: Arc<Recorder>,
    mut inbox: mpsc::UnboundedReceiver<Command>,
) {
    let mut engine = Engine {
        scheduler: Scheduler::new(hardware.scheduler),
        hardware,
        jobs: HashMap::new(),
        under_way: VecDeque::new(),
        busy_until: Instant::now(),
        idle: true,
        leaving: VecDeque::new(),
        recorder,
    };
    loop {
        while let Ok(command) = inbox.try_recv() {
            engine.handle(command);
        }
        engine.schedule(Instant::now());
        engine.account();
        let Some(due) = engine.next_due() else {
            match inbox.recv().await {
                Some(command) => engine.handle(command),
                None => return,
            }
            continue;
        };
        tokio::select! {
            biased;
            command = inbox.recv() => match command {
                Some(command) => engine.handle(command),
                None => return,
            },
            () = sleep_until(due.into()) => engine.advance(Instant::now()),
        }
    }
}

impl Engine {
    fn handle(&mut self, command: Command) {
        match command {
            Command::Submit(job) => {
                let id = job.request.id;
                match self.scheduler.submit(job.request.clone()) {
                    Ok(()) => drop(self.jobs.insert(id, *job)),
                    // What never fits is refused before it comes here, so this is a bug; the client sees a cut.
                    Err(_) => job.progress.fail(),
                }
            }
            Command::Abort(id) => {
                self.scheduler.abort(id);
                self.jobs.remove(&id);
            }
        }
    }

    fn schedule(&mut self, now: Instant) {
        let ahead = if self.hardware.scheduler.async_scheduling {
            MAX_STEPS_UNDER_WAY
        } else {
            1
        };
        while self.under_way.len() < ahead {
            let Some(step) = self.scheduler.step() else {
                self.idle |= self.under_way.is_empty();
                return;
            };
            for admission in step.admitted.iter().filter(|admission| admission.first) {
                if let Some(job) = self.jobs.get_mut(&admission.id) {
                    job.generation
                        .scheduled(now, u64::from(admission.cached_tokens));
                }
            }
            let behind = now.saturating_duration_since(self.busy_until) > MOST_BEHIND;
            let began = if behind || self.idle {
                now.max(self.busy_until)
            } else {
                self.busy_until
            };
            self.idle = false;
            let took = self.hardware.cost.of(&step.load());
            self.busy_until = began + took;
            self.recorder.step(took, step.tokens());
            self.under_way.push_back((step, self.busy_until));
        }
    }

    fn account(&self) {
        self.recorder.metrics().scheduler(self.scheduler.stats());
    }

    fn next_due(&self) -> Option<Instant> {
        let step = self.under_way.front().map(|(_, ends)| *ends);
        let token = self.leaving.front().map(|(_, at)| *at);
        match (step, token) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn advance(&mut self, now: Instant) {
        while let Some((step, ends)) = self.under_way.pop_front_if(|(_, ends)| *ends <= now) {
            let mut at = self
                .leaving
                .back()
                .map_or(ends, |(_, last)| ends.max(*last));
            for emitted in self.scheduler.complete(&step) {
                at += self.hardware.frontend.per_token;
                self.leaving.push_back((emitted, at));
            }
        }
        while let Some((emitted, at)) = self.leaving.pop_front_if(|(_, at)| *at <= now) {
            self.deliver(emitted, at);
        }
    }

    fn deliver(&mut self, emitted: Emitted, at: Instant) {
        let Some(job) = self.jobs.get_mut(&emitted.id) else {
            return;
        };
        job.generation.token(at);
        if emitted.last {
            job.generation.finish(job.finish);
        }
        job.progress.reach(job.choice, emitted.index as usize + 1);
        if emitted.last {
            self.jobs.remove(&emitted.id);
        }
    }
}
