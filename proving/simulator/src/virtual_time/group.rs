//! The ranks that step together: one alone, or all that share their experts.
//!
//! In lock-step a step of all ranks takes as long as the slowest of them needs; a rank without work takes part with an
//! empty step, as vLLM's runs a dummy batch.
//! Invariant: steps end in the order in which they began; what a rank receives waits until the group looks.
//! Not here: which rank a request goes to (`balancer`).

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use super::{Admitted, Iteration};
use crate::cost::StepCost;
use crate::scheduler::{
    Load, MAX_STEPS_UNDER_WAY, NeverFits, Request, RequestId, Scheduler, SchedulerConfig,
    SchedulerStats, Step,
};

#[derive(Debug)]
pub(super) struct Group {
    first_rank: usize,
    ranks: Vec<Rank>,
    /// Steps that are scheduled ahead at most.
    ahead: usize,
    under_way: VecDeque<InFlight>,
    /// When the last step that was scheduled will have run.
    busy_until: Duration,
    /// It is time to look at the inboxes.
    pub(super) woken: bool,
}

#[derive(Debug)]
struct Rank {
    scheduler: Scheduler,
    inbox: VecDeque<Request>,
    /// Requests taken from the inbox that have not run yet.
    queued: VecDeque<(RequestId, Duration)>,
}

#[derive(Debug)]
struct InFlight {
    /// By rank; of some ranks none.
    steps: Vec<Option<Step>>,
    load: Load,
    admitted: Vec<Admitted>,
    began: Duration,
    ends: Duration,
}

impl Group {
    pub(super) fn new(config: SchedulerConfig, ranks: Range<usize>) -> Self {
        Self {
            first_rank: ranks.start,
            ranks: ranks
                .map(|_| Rank {
                    scheduler: Scheduler::new(config),
                    inbox: VecDeque::new(),
                    queued: VecDeque::new(),
                })
                .collect(),
            ahead: if config.async_scheduling {
                MAX_STEPS_UNDER_WAY
            } else {
                1
            },
            under_way: VecDeque::new(),
            busy_until: Duration::ZERO,
            woken: false,
        }
    }

    /// The settings of its ranks; they are all alike.
    #[cfg(test)]
    pub(super) fn config(&self) -> &SchedulerConfig {
        self.ranks[0].scheduler.config()
    }

    pub(super) fn has(&self, rank: usize) -> bool {
        (self.first_rank..self.first_rank + self.ranks.len()).contains(&rank)
    }

    pub(super) fn stats(&self) -> impl Iterator<Item = SchedulerStats> + '_ {
        self.ranks.iter().map(|rank| rank.scheduler.stats())
    }

    pub(super) fn receive(&mut self, rank: usize, request: Request) {
        if let Some(rank) = self.ranks.get_mut(rank - self.first_rank) {
            rank.inbox.push_back(request);
        }
        self.woken |= self.under_way.is_empty();
    }

    pub(super) fn abort(&mut self, id: RequestId) -> bool {
        self.ranks.iter_mut().any(|rank| {
            let before = rank.inbox.len();
            rank.inbox.retain(|request| request.id != id);
            rank.queued.retain(|(queued, _)| *queued != id);
            before != rank.inbox.len() || rank.scheduler.abort(id)
        })
    }

    pub(super) fn reset_prefix_cache(&mut self) -> bool {
        let mut all = true;
        for rank in &mut self.ranks {
            all &= rank.scheduler.reset_prefix_cache();
        }
        all
    }

    /// When the oldest step under way will have run.
    pub(super) fn next_end(&self) -> Option<Duration> {
        self.under_way.front().map(|oldest| oldest.ends)
    }

    /// Takes what has arrived and schedules as far ahead as may be, if it was woken.
    pub(super) fn wake(
        &mut self,
        now: Duration,
        cost: &StepCost,
    ) -> Result<(), (RequestId, NeverFits)> {
        if !self.woken {
            return Ok(());
        }
        for rank in &mut self.ranks {
            while let Some(request) = rank.inbox.pop_front() {
                let id = request.id;
                rank.scheduler
                    .submit(request)
                    .map_err(|reason| (id, reason))?;
                rank.queued.push_back((id, now));
            }
        }
        self.woken = false;
        while self.under_way.len() < self.ahead && self.schedule(now, cost) {}
        Ok(())
    }

    fn schedule(&mut self, now: Duration, cost: &StepCost) -> bool {
        let steps: Vec<Option<Step>> = self
            .ranks
            .iter_mut()
            .map(|rank| rank.scheduler.step())
            .collect();
        if steps.iter().all(Option::is_none) {
            return false;
        }
        let (mut took, mut load) = (Duration::ZERO, Load::default());
        let routed = steps.iter().flatten().map(Step::tokens).sum();
        for of_rank in steps.iter().flatten().map(Step::load) {
            let of_rank = Load { routed, ..of_rank };
            let of_rank_took = cost.of(&of_rank);
            if of_rank_took >= took {
                (took, load) = (of_rank_took, of_rank);
            }
        }
        let began = now.max(self.busy_until);
        self.busy_until = began + took;
        let admitted = self.admitted(&steps, now);
        self.under_way.push_back(InFlight {
            admitted,
            steps,
            load,
            began,
            ends: self.busy_until,
        });
        true
    }

    /// The first admissions of these steps. Requests are admitted in the order in which they were queued.
    fn admitted(&mut self, steps: &[Option<Step>], now: Duration) -> Vec<Admitted> {
        let mut admitted = Vec::new();
        let first_rank = self.first_rank;
        for ((number, rank), step) in self.ranks.iter_mut().enumerate().zip(steps) {
            let first = step.iter().flat_map(|step| &step.admitted);
            for admission in first.filter(|admission| admission.first) {
                let place = rank.queued.iter().position(|(id, _)| *id == admission.id);
                let queued = place.and_then(|place| rank.queued.remove(place));
                admitted.push(Admitted {
                    id: admission.id,
                    rank: first_rank + number,
                    queued: queued.map_or(now, |(_, at)| at),
                    scheduled: now,
                    cached_tokens: admission.cached_tokens,
                });
            }
        }
        admitted
    }

    /// Takes the oldest step, which has run by `now`.
    pub(super) fn complete(&mut self, now: Duration) -> Option<Iteration> {
        let oldest = self.under_way.pop_front()?;
        self.woken = true;
        let mut emitted = Vec::new();
        for (rank, step) in self.ranks.iter_mut().zip(&oldest.steps) {
            if let Some(step) = step {
                emitted.append(&mut rank.scheduler.complete(step));
            }
        }
        Some(Iteration {
            at: now,
            began: oldest.began,
            steps: oldest.steps,
            load: oldest.load,
            emitted,
            admitted: oldest.admitted,
            rank: self.first_rank,
        })
    }
}
