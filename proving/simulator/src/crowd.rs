//! Everybody who asks, and the engines that answer them, in virtual time.
//!
//! Users ask, read, think and ask again; conversations of an open loop begin whoever still waits. Before several engines
//! a [`Balancer`] chooses one for each question.
//! Invariant: what happens is told in the order of its time; the same seed, wishes and preset give the same.
//! Not here: what is made of it (`soak`, `campaign`).

mod balancer;
mod conversation;
mod exchange;
mod file;
mod questions;
mod traffic;
mod users;

pub use balancer::{Affinity, Balancer, Balancing, MOST_REPLICAS};
pub use exchange::Exchange;
pub use file::FileError;
pub use questions::{Question, Questions};
pub use traffic::{Answers, Comes, Length, Profile, Talk, Traffic};

pub(crate) use conversation::Conversations;
pub(crate) use users::{Delivered, Sum, Told};

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use experiment::workload::{Workload, WorkloadError};

use crate::preset::Preset;
use crate::scheduler::{NeverFits, SchedulerStats};
use crate::virtual_time::{Iteration, VirtualEngine};
use users::{Post, Users};

/// Why nobody can be let at the engines.
#[derive(Debug, thiserror::Error)]
pub enum CrowdError {
    /// It makes no sense.
    #[error("{0}")]
    Plan(&'static str),
    /// A profile makes no sense.
    #[error("profile {name}: {member}: {says}")]
    Profile {
        /// Which.
        name: String,
        /// Of what it says.
        member: &'static str,
        /// What is wrong.
        says: &'static str,
    },
    /// The profiles together make no sense.
    #[error(transparent)]
    Workload(WorkloadError),
    /// Requests would be cut.
    #[error("profile {name}: prompt and answer are on average longer than {most} tokens")]
    Long {
        /// Which profile.
        name: String,
        /// Most tokens of prompt and output together.
        most: u32,
    },
    /// A request could never run.
    #[error("request {number} of the soak never fits: {reason}")]
    NeverFits {
        /// Which, from 0.
        number: u64,
        /// Why.
        reason: NeverFits,
    },
    /// An open loop that the engines cannot follow.
    #[error("more than 100,000 requests are under way: more arrive than the engine can serve")]
    Overload,
}

/// Engines, those who ask them, and the clock.
pub(crate) struct Crowd {
    users: Users,
    replicas: Vec<VirtualEngine>,
    balancing: Balancing,
    /// When users will have the last token of what each engine was asked.
    leaving: BinaryHeap<Reverse<(Duration, usize)>>,
}

/// A step that has run, and what came of it.
pub(crate) struct Ran {
    pub(crate) replica: usize,
    pub(crate) iteration: Iteration,
    pub(crate) delivered: Delivered,
}

impl Crowd {
    /// Nobody yet; [`Crowd::wish`] lets users in. `workload` is the traffic's.
    pub(crate) fn new(
        traffic: &Traffic,
        workload: Workload,
        preset: &Preset,
        replicas: u32,
        balancer: Balancer,
    ) -> Self {
        let replicas = replicas.clamp(1, MOST_REPLICAS);
        let engine =
            |_| VirtualEngine::parallel(preset.scheduler, preset.step.clone(), preset.parallelism);
        let replicas: Vec<VirtualEngine> = (0..replicas).map(engine).collect();
        Self {
            users: Users::new(traffic, workload, preset, replicas.len()),
            balancing: Balancing::new(balancer, replicas.len()),
            replicas,
            leaving: BinaryHeap::new(),
        }
    }

    /// So many users of each profile are to be at work from `now` on: those of the lowest numbers. Who is to leave has
    /// its answer first, and leaves when it would ask again; who comes back asks at once.
    pub(crate) fn wish(&mut self, counts: &[u32], now: Duration) {
        self.users.wish(counts, now);
    }

    /// Goes on until a step has run; `None` where none has by `until`.
    pub(crate) fn go_on(&mut self, until: Duration) -> Result<Option<Ran>, CrowdError> {
        loop {
            let engines = self.replicas.iter().enumerate();
            let due = engines.filter_map(|(i, engine)| Some((engine.next_due()?, i)));
            let due = due.min().filter(|&(at, _)| at <= until);
            let asks = self.users.next_at().filter(|&at| at <= until);
            match (asks, due) {
                (Some(asks), due) if due.is_none_or(|(at, _)| asks <= at) => {
                    if let Some(post) = self.users.ask_next()? {
                        self.send(post);
                    }
                }
                (_, Some((at, replica))) => {
                    if let Some(ran) = self.run(replica, at)? {
                        return Ok(Some(ran));
                    }
                }
                (_, None) => return Ok(None),
            }
        }
    }

    fn send(&mut self, post: Post) {
        while let Some(Reverse((_, replica))) = self
            .leaving
            .peek()
            .copied()
            .filter(|Reverse((at, _))| *at <= post.asked)
        {
            self.leaving.pop();
            self.balancing.answered(replica);
        }
        let chain = &post.request.chain;
        let name = |block| chain.block(block).0;
        let replica = self.balancing.choose(post.prompt_blocks, name);
        if let Some(engine) = self.replicas.get_mut(replica) {
            engine.post(post.at, post.request);
        }
    }

    /// What an engine does by `at`, to the end of one step.
    fn run(&mut self, replica: usize, at: Duration) -> Result<Option<Ran>, CrowdError> {
        let Some(engine) = self.replicas.get_mut(replica) else {
            return Ok(None);
        };
        let ran = engine.iterate(at).map_err(|(id, reason)| {
            let number = Users::number_of(id);
            CrowdError::NeverFits { number, reason }
        })?;
        let Some(iteration) = ran else {
            return Ok(None);
        };
        let delivered = self.users.deliver(replica, &iteration);
        if self.replicas.len() > 1 {
            let answers = delivered.answers.iter();
            self.leaving
                .extend(answers.map(|answer| Reverse((answer.last, replica))));
        }
        Ok(Some(Ran {
            replica,
            iteration,
            delivered,
        }))
    }

    /// What each engine holds now and has done; the ranks of the first come first.
    pub(crate) fn engines(&self) -> impl Iterator<Item = SchedulerStats> + '_ {
        self.replicas.iter().flat_map(VirtualEngine::ranks)
    }

    /// What all hold together.
    pub(crate) fn stats(&self) -> SchedulerStats {
        SchedulerStats::sum(self.engines())
    }

    /// How many groups of ranks each replica has that run steps of their own.
    pub(crate) fn groups(&self) -> usize {
        self.replicas.first().map_or(1, VirtualEngine::groups)
    }

    /// What was told of each engine's requests, in the order of [`Crowd::engines`].
    pub(crate) fn told(&self) -> &[Told] {
        self.users.told()
    }

    /// Users of each profile that are wished for.
    pub(crate) fn counts(&self) -> &[u32] {
        self.users.counts()
    }

    /// Users that are at work: those who have to leave are until their answer is there.
    pub(crate) fn at_work(&self) -> u32 {
        self.users.at_work()
    }

    /// Every question's moment, in seconds.
    pub(crate) fn asked_s(&self) -> &[f64] {
        self.users.asked_s()
    }
}

#[cfg(test)]
mod tests;
