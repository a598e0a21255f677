//! An engine on a clock of its own: hours pass in seconds.
//!
//! One iteration is what vLLM's engine loop does between two looks at its inbox: it takes what has arrived, schedules
//! while fewer steps are under way than it may have, and otherwise waits for the oldest. What arrives during that
//! wait is seen only afterwards, as there.
//! Invariant: time never goes back; the same calls give the same turns.
//! Not here: who sends requests, and what is made of the tokens (`replay`, `soak`).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use crate::cost::StepCost;
use crate::scheduler::{
    Emitted, Load, MAX_STEPS_UNDER_WAY, NeverFits, Request, RequestId, Scheduler, SchedulerConfig,
    SchedulerStats, Step,
};

/// A scheduler, its costs and a clock.
#[derive(Debug)]
pub struct VirtualEngine {
    scheduler: Scheduler,
    cost: StepCost,
    inbox: BinaryHeap<Reverse<Posted>>,
    posted: u64,
    under_way: VecDeque<InFlight>,
    /// When the last step that was scheduled will have run.
    busy_until: Duration,
    now: Duration,
}

/// A step that has run.
#[derive(Clone, Debug)]
pub struct Iteration {
    /// When the step had run.
    pub at: Duration,
    /// When it began.
    pub began: Duration,
    /// What ran.
    pub step: Step,
    /// The same in figures.
    pub load: Load,
    /// What came out.
    pub emitted: Vec<Emitted>,
}

#[derive(Debug)]
struct InFlight {
    step: Step,
    load: Load,
    began: Duration,
    ends: Duration,
}

#[derive(Debug)]
struct Posted {
    at: Duration,
    number: u64,
    request: Request,
}

impl VirtualEngine {
    /// An idle engine at time 0.
    #[must_use]
    pub fn new(config: SchedulerConfig, cost: StepCost) -> Self {
        Self {
            scheduler: Scheduler::new(config),
            cost,
            inbox: BinaryHeap::new(),
            posted: 0,
            under_way: VecDeque::new(),
            busy_until: Duration::ZERO,
            now: Duration::ZERO,
        }
    }

    /// The engine's time.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// What the engine holds now, and what it has done.
    #[must_use]
    pub fn stats(&self) -> SchedulerStats {
        self.scheduler.stats()
    }

    /// Sends a request that reaches the queue at `at`.
    pub fn post(&mut self, at: Duration, request: Request) {
        let number = self.posted;
        self.posted += 1;
        self.inbox.push(Reverse(Posted {
            at,
            number,
            request,
        }));
    }

    /// Goes on until a step has run. `None` when nothing is left to do, or nothing until after `limit`.
    ///
    /// # Errors
    /// When a request that was posted could never run.
    pub fn iterate(
        &mut self,
        limit: Duration,
    ) -> Result<Option<Iteration>, (RequestId, NeverFits)> {
        loop {
            self.receive()?;
            if self.schedule() {
                continue;
            }
            if let Some(oldest) = self.under_way.pop_front() {
                if oldest.ends > limit {
                    self.under_way.push_front(oldest);
                    return Ok(None);
                }
                return Ok(Some(self.complete(oldest)));
            }
            match self.inbox.peek() {
                Some(Reverse(next)) if next.at <= limit => self.now = self.now.max(next.at),
                _ => return Ok(None),
            }
        }
    }

    fn receive(&mut self) -> Result<(), (RequestId, NeverFits)> {
        while self
            .inbox
            .peek()
            .is_some_and(|Reverse(next)| next.at <= self.now)
        {
            if let Some(Reverse(posted)) = self.inbox.pop() {
                let id = posted.request.id;
                self.scheduler
                    .submit(posted.request)
                    .map_err(|error| (id, error))?;
            }
        }
        Ok(())
    }

    fn schedule(&mut self) -> bool {
        let ahead = if self.scheduler.config().async_scheduling {
            MAX_STEPS_UNDER_WAY
        } else {
            1
        };
        if self.under_way.len() >= ahead {
            return false;
        }
        let Some(step) = self.scheduler.step() else {
            return false;
        };
        let load = step.load();
        let began = self.now.max(self.busy_until);
        let ends = began + self.cost.of(&load);
        self.busy_until = ends;
        self.under_way.push_back(InFlight {
            step,
            load,
            began,
            ends,
        });
        true
    }

    fn complete(&mut self, oldest: InFlight) -> Iteration {
        self.now = self.now.max(oldest.ends);
        Iteration {
            at: self.now,
            began: oldest.began,
            emitted: self.scheduler.complete(&oldest.step),
            load: oldest.load,
            step: oldest.step,
        }
    }
}

impl PartialEq for Posted {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Posted {}

impl PartialOrd for Posted {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Posted {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

#[cfg(test)]
mod tests;
