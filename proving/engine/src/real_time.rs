//! The simulated engines on the wall clock: one task that sleeps until something is due, and the requests that wait for
//! their tokens.
//!
//! When steps run is decided by the same machine as in virtual time; tokens go out one after another, each at the front
//! end's cost.
//! Invariant: whoever drops its [`JobHandle`] before the end is aborted, and its blocks are free before the next step
//! is chosen. The task ends when the engine does.
//! Not here: which requests run and when (`simulator::virtual_time`), what a step costs (`simulator::cost`).

mod handle;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use simulator::scheduler::{Emitted, Request, RequestId};
use simulator::virtual_time::{Iteration, VirtualEngine};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

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
    /// Forget the prefixes that are cached, and say whether they were.
    ResetPrefixCache(oneshot::Sender<bool>),
}

struct Engine {
    machine: VirtualEngine,
    hardware: Hardware,
    jobs: HashMap<RequestId, Job>,
    /// The machine's time 0.
    epoch: Instant,
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
        machine: VirtualEngine::parallel(
            hardware.scheduler,
            hardware.cost.clone(),
            hardware.parallelism,
        ),
        hardware,
        jobs: HashMap::new(),
        epoch: Instant::now(),
        leaving: VecDeque::new(),
        recorder,
    };
    loop {
        // Before anything is posted: what arrives in lost time is not to wait for it again.
        engine.let_lost_time_go(Instant::now());
        while let Ok(command) = inbox.try_recv() {
            engine.handle(command);
        }
        engine.advance(Instant::now());
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
                Some(command) => {
                    engine.let_lost_time_go(Instant::now());
                    engine.handle(command);
                }
                None => return,
            },
            () = sleep_until(due) => {}
        }
    }
}

impl Engine {
    fn handle(&mut self, command: Command) {
        match command {
            Command::Submit(job) => {
                let at = self.epoch.elapsed();
                self.machine.post(at, job.request.clone());
                self.jobs.insert(job.request.id, *job);
            }
            Command::Abort(id) => {
                self.machine.abort(id);
                self.jobs.remove(&id);
            }
            Command::ResetPrefixCache(answer) => {
                // Who asked may have left.
                let _ = answer.send(self.machine.reset_prefix_cache());
            }
        }
    }

    fn account(&self) {
        self.recorder.metrics().schedulers(self.machine.ranks());
    }

    fn next_due(&self) -> Option<Instant> {
        let step = self.machine.next_due().map(|due| self.epoch + due);
        let token = self.leaving.front().map(|(_, at)| *at);
        match (step, token) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Where the machine is too far behind the wall clock, what it lacks is no time for it.
    fn let_lost_time_go(&mut self, now: Instant) {
        let behind = self.machine.next_due().map_or(Duration::ZERO, |due| {
            now.saturating_duration_since(self.epoch + due)
        });
        if behind > MOST_BEHIND {
            self.epoch += behind;
        }
    }

    fn advance(&mut self, now: Instant) {
        loop {
            match self
                .machine
                .iterate(now.saturating_duration_since(self.epoch))
            {
                Ok(Some(iteration)) => self.ran(&iteration),
                Ok(None) => break,
                // What never fits is refused before it comes here, so this is a bug; the client sees a cut.
                Err((id, _)) => {
                    if let Some(job) = self.jobs.remove(&id) {
                        job.progress.fail();
                    }
                }
            }
        }
        while let Some((emitted, at)) = self.leaving.pop_front_if(|(_, at)| *at <= now) {
            self.deliver(emitted, at);
        }
    }

    fn ran(&mut self, iteration: &Iteration) {
        self.recorder.step(iteration, self.machine.groups());
        if let Some(bounds) = self
            .hardware
            .bounds
            .take_if(|b| b.are_left_by(&iteration.load))
        {
            eprintln!(
                "warning: {} sequences run at a time, or longer ones, than the recording has that the preset was fitted \
                 to (at most {} of {} tokens): what their steps cost is extrapolated",
                iteration.load.decodes, bounds.sequences, bounds.context,
            );
        }
        for admitted in &iteration.admitted {
            if let Some(job) = self.jobs.get_mut(&admitted.id) {
                let [queued, scheduled] =
                    [admitted.queued, admitted.scheduled].map(|at| (self.epoch + at).into_std());
                let cached = u64::from(admitted.cached_tokens);
                job.generation
                    .scheduled(queued, scheduled, admitted.rank, cached);
            }
        }
        let made = self.epoch + iteration.at;
        let mut at = self
            .leaving
            .back()
            .map_or(made, |(_, last)| made.max(*last));
        for emitted in &iteration.emitted {
            if emitted.index == 0
                && let Some(job) = self.jobs.get_mut(&emitted.id)
            {
                job.generation.made_first(made.into_std());
            }
            at += self.hardware.frontend.per_token;
            self.leaving.push_back((*emitted, at));
        }
    }

    fn deliver(&mut self, emitted: Emitted, at: Instant) {
        let Some(job) = self.jobs.get_mut(&emitted.id) else {
            return;
        };
        job.generation.token(at.into_std());
        if emitted.last {
            job.generation.finish(job.finish);
        }
        job.progress.reach(job.choice, emitted.index as usize + 1);
        if emitted.last {
            self.jobs.remove(&emitted.id);
        }
    }
}

#[cfg(test)]
mod tests;
