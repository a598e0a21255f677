//! Which rank a request goes to, as vLLM's front end chooses among data-parallel engines.
//!
//! The front end knows what each engine last last_published: its requests running and waiting, published at most every 100 ms.
//! It takes the engine with the least `4 * waiting + running`, the first of several, and counts the request as waiting
//! there until it hears again.
//! Invariant: with one rank nothing is chosen and nothing is counted.
//! Not here: the engines themselves (`group`).

use std::time::Duration;

use super::group::Group;

/// Between two publications at least (vLLM's coordinator: 100 ms).
const PERIOD: Duration = Duration::from_millis(100);

/// A waiting request counts as much as so many that run.
const WAITING_WEIGHT: usize = 4;

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    running: usize,
    waiting: usize,
}

#[derive(Debug)]
pub(super) struct Balancer {
    last_published: Vec<Counts>,
    next_publication: Duration,
}

impl Balancer {
    pub(super) fn new(ranks: usize) -> Self {
        Self {
            last_published: vec![Counts::default(); ranks],
            next_publication: PERIOD,
        }
    }

    /// Hears what the engines hold, if it is time. To be called before what happens at `now` changes it.
    pub(super) fn publish(&mut self, now: Duration, groups: &[Group]) {
        if self.last_published.len() == 1 || now < self.next_publication {
            return;
        }
        let stats = groups.iter().flat_map(Group::stats);
        for (counts, stats) in self.last_published.iter_mut().zip(stats) {
            *counts = Counts {
                running: stats.running,
                waiting: stats.waiting,
            };
        }
        let periods = now.as_nanos() / PERIOD.as_nanos() + 1;
        self.next_publication = PERIOD * u32::try_from(periods).unwrap_or(u32::MAX);
    }

    /// The rank that a request goes to.
    pub(super) fn choose(&mut self) -> usize {
        if self.last_published.len() == 1 {
            return 0;
        }
        let score = |counts: &Counts| counts.waiting * WAITING_WEIGHT + counts.running;
        let least =
            (0..self.last_published.len()).min_by_key(|&rank| score(&self.last_published[rank]));
        let rank = least.unwrap_or(0);
        if let Some(counts) = self.last_published.get_mut(rank) {
            counts.waiting += 1;
        }
        rank
    }
}
