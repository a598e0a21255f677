//! Engines on a clock that their caller moves: in virtual time hours pass in seconds, in real time the caller waits.
//!
//! Between two looks at its inbox an engine does what vLLM's loop does: it takes what has arrived, schedules while
//! fewer steps are under way than it may have, and otherwise waits for the oldest. What arrives during that wait is
//! seen only afterwards, as there. With data parallelism there are several engines (ranks), each with a scheduler and
//! a KV cache of its own, and every request goes to one of them as it arrives.
//! Invariant: time never goes back; the same calls give the same iterations.
//! Not here: who sends requests, and what is made of the tokens (`replay`, `soak`, the HTTP face).

mod balancer;
mod group;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use crate::cost::StepCost;
use crate::scheduler::{
    Emitted, Load, NeverFits, Request, RequestId, SchedulerConfig, SchedulerStats, Step,
};
use balancer::Balancer;
use group::Group;

/// Engines at most that share a front end.
pub const MOST_RANKS: u32 = 64;

/// How many engines there are, and whether they wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallelism {
    /// Engines, each with the whole model and its own cache (`data_parallel_size`); at least 1.
    pub data: u32,
    /// Engines that share their experts run every step together: none goes on before all are ready.
    pub lockstep: bool,
}

impl Default for Parallelism {
    /// One engine.
    fn default() -> Self {
        Self {
            data: 1,
            lockstep: false,
        }
    }
}

/// Schedulers, their costs and a clock.
#[derive(Debug)]
pub struct VirtualEngine {
    /// Those that step together.
    groups: Vec<Group>,
    balancer: Balancer,
    cost: StepCost,
    inbox: BinaryHeap<Reverse<Posted>>,
    posted: u64,
    now: Duration,
}

/// A step that has run.
#[derive(Clone, Debug)]
pub struct Iteration {
    /// When the step had run.
    pub at: Duration,
    /// When it began.
    pub began: Duration,
    /// What ran, by rank from `rank` on; a rank in lock-step may have had nothing to run.
    pub steps: Vec<Option<Step>>,
    /// The load that it took its time from: of ranks in lock-step, the slowest.
    pub load: Load,
    /// What came out.
    pub emitted: Vec<Emitted>,
    /// Requests that left the queue for the first time.
    pub admitted: Vec<Admitted>,
    /// The rank, or the first of those in lock-step.
    pub rank: usize,
}

/// When a request entered the queue and left it, by the engine's own stamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// Which.
    pub id: RequestId,
    /// By which rank.
    pub rank: usize,
    /// The engine took it from its inbox: vLLM's `QUEUED`.
    pub queued: Duration,
    /// Its first step was chosen: vLLM's `SCHEDULED`.
    pub scheduled: Duration,
    /// Tokens that the prefix cache spared.
    pub cached_tokens: u32,
}

impl Iteration {
    /// Tokens computed, by all ranks.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.steps.iter().flatten().map(Step::tokens).sum()
    }

    /// What each rank's GPUs did for it in the mean over all ranks, of which so many [`groups`](VirtualEngine::groups) run
    /// steps of their own: for how long, and how many tokens.
    #[must_use]
    pub fn on_each_rank(&self, groups: usize) -> (Duration, u64) {
        let took = self.at.saturating_sub(self.began);
        let ranks = self.steps.len() * groups;
        let tokens = self.tokens() / ranks.max(1) as u64;
        (took.div_f64(groups.max(1) as f64), tokens)
    }
}

#[derive(Debug)]
struct Posted {
    at: Duration,
    number: u64,
    request: Request,
}

impl VirtualEngine {
    /// One idle engine at time 0.
    #[must_use]
    pub fn new(config: SchedulerConfig, cost: StepCost) -> Self {
        Self::parallel(config, cost, Parallelism::default())
    }

    /// Idle engines at time 0, each with these limits and this cache.
    #[must_use]
    pub fn parallel(config: SchedulerConfig, cost: StepCost, parallelism: Parallelism) -> Self {
        let ranks = parallelism.data.clamp(1, MOST_RANKS) as usize;
        let groups = if parallelism.lockstep {
            vec![Group::new(config, 0..ranks)]
        } else {
            (0..ranks)
                .map(|rank| Group::new(config, rank..rank + 1))
                .collect()
        };
        Self {
            groups,
            balancer: Balancer::new(ranks),
            cost,
            inbox: BinaryHeap::new(),
            posted: 0,
            now: Duration::ZERO,
        }
    }

    /// The engine's time.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.now
    }

    /// What all ranks together hold now and have done; KV usage is their mean.
    #[must_use]
    pub fn stats(&self) -> SchedulerStats {
        SchedulerStats::sum(self.ranks())
    }

    /// How many engines run steps of their own: ranks in lock-step are one.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// What each rank holds now and has done.
    pub fn ranks(&self) -> impl Iterator<Item = SchedulerStats> + '_ {
        self.groups.iter().flat_map(Group::stats)
    }

    /// Sends a request that reaches the engines at `at`.
    pub fn post(&mut self, at: Duration, request: Request) {
        let number = self.posted;
        self.posted += 1;
        self.inbox.push(Reverse(Posted {
            at,
            number,
            request,
        }));
    }

    /// Ends a request wherever it is and frees its blocks. False when there is none of that id: it may just have
    /// finished.
    pub fn abort(&mut self, id: RequestId) -> bool {
        let before = self.inbox.len();
        self.inbox.retain(|Reverse(posted)| posted.request.id != id);
        before != self.inbox.len() || self.groups.iter_mut().any(|group| group.abort(id))
    }

    /// Forgets the prefixes that the caches hold. False, and nothing forgotten, by a rank whose blocks are in use: vLLM
    /// refuses then, too.
    pub fn reset_prefix_cache(&mut self) -> bool {
        let mut all = true;
        for group in &mut self.groups {
            all &= group.reset_prefix_cache();
        }
        all
    }

    /// When the next thing happens by itself, if anything will.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let arrival = self.inbox.peek().map(|Reverse(next)| next.at.max(self.now));
        let woken = self.groups.iter().any(|group| group.woken);
        let completion = self.groups.iter().filter_map(Group::next_end);
        completion
            .chain(arrival)
            .chain(woken.then_some(self.now))
            .min()
    }

    /// Goes on until a step has run. `None` when nothing is left to do, or nothing until after `limit`.
    ///
    /// # Errors
    /// When a request that was posted could never run. It is dropped; the engine can go on.
    pub fn iterate(
        &mut self,
        limit: Duration,
    ) -> Result<Option<Iteration>, (RequestId, NeverFits)> {
        loop {
            self.route();
            for group in &mut self.groups {
                group.wake(self.now, &self.cost)?;
            }
            let completion = (0..self.groups.len())
                .filter_map(|i| Some((self.groups.get(i)?.next_end()?, i)))
                .min();
            let arrival = self.inbox.peek().map(|Reverse(next)| next.at);
            let due = match (arrival, completion) {
                (Some(arrival), Some((end, _))) => arrival.min(end),
                (Some(arrival), None) => arrival,
                (None, Some((end, _))) => end,
                (None, None) => return Ok(None),
            };
            if due > limit {
                return Ok(None);
            }
            self.now = self.now.max(due);
            self.balancer.publish(self.now, &self.groups);
            if let Some((end, i)) = completion
                && end <= due
                && let Some(iteration) = self.groups.get_mut(i).and_then(|g| g.complete(self.now))
            {
                return Ok(Some(iteration));
            }
        }
    }

    /// Gives each request that has arrived to a rank.
    fn route(&mut self) {
        while self
            .inbox
            .peek()
            .is_some_and(|Reverse(next)| next.at <= self.now)
        {
            let Some(Reverse(posted)) = self.inbox.pop() else {
                return;
            };
            let rank = self.balancer.choose();
            let group = self.groups.iter_mut().find(|group| group.has(rank));
            if let Some(group) = group {
                group.receive(rank, posted.request);
            }
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
