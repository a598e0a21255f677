//! An open loop: sessions start when they are due, and their later turns follow their answers.
//!
//! Invariant: arrival `k` of a profile is the same session at the same moment, whatever part it is in and whatever
//! became of those before it.
//! Not here: how many may be under way at once (`load`).

use std::time::Duration;

use super::turn::Walk;
use super::{Deal, Load, Part, SEQUENCE, SessionCounts, Sessions, Turn, Workload};
use crate::arrivals::{Actor, Pace, Process, Scope};

/// The arrivals of a profile that are of one part.
#[derive(Debug, Clone)]
pub struct Arrivals {
    seed: u64,
    profile: usize,
    scope: Scope,
    think: Process,
    part: Part,
    pace: Pace,
    deal: Deal,
    number: u64,
    before: Duration,
}

/// A session that starts.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// Its number among all arrivals of the profile, from 0.
    pub number: u64,
    /// Its first turn, which counts from the arrival before.
    pub first: Turn,
    /// Its later turns.
    pub visit: Visit,
    /// What it adds to the profile's counts once it is taken.
    pub begun: SessionCounts,
}

/// The later turns of a session that has started.
#[derive(Debug, Clone)]
pub struct Visit {
    walk: Walk,
    pace: Pace,
}

impl Arrivals {
    pub(super) fn new(workload: &Workload, profile: usize, part: Part) -> Option<Self> {
        let seed = workload.seed;
        let described = workload.profiles.get(profile)?;
        let Load::Open { arrivals, think } = &described.load else {
            return None;
        };
        let (scope, sequence) = (described.scope, Workload::actor(profile, SEQUENCE));
        Some(Self {
            seed,
            profile,
            scope,
            think: think.clone(),
            part,
            pace: Pace::new(seed, scope, sequence, arrivals),
            // A trace's arrivals are those of its sessions, one after the other.
            deal: Deal::new(seed, profile, 0, 1).in_order(matches!(arrivals, Process::Trace(_))),
            number: 0,
            before: Duration::ZERO,
        })
    }

    /// The next arrival; `None` once a trace is over, or where there are no sessions.
    pub fn next(&mut self, sessions: &impl Sessions) -> Option<Arrival> {
        loop {
            let due = self.pace.next(self.before, None)?;
            let number = self.number;
            (self.before, self.number) = (due.at, number + 1);
            if !self.part.has(number) {
                continue;
            }
            let (session, repeat) = self.deal.at(number, sessions.count())?;
            let mut begun = SessionCounts::default();
            begun.begin(repeat);
            let mut walk = Walk::new(session, repeat, sessions);
            let first = walk.take(due);
            let actor = Actor {
                number,
                ..Workload::actor(self.profile, number)
            };
            let pace = Pace::new(self.seed, self.scope, actor, &self.think);
            let visit = Visit { walk, pace };
            return Some(Arrival {
                number,
                first,
                visit,
                begun,
            });
        }
    }
}

impl Visit {
    /// The next turn, where the answer before ended at `from`; `None` when the session is over.
    pub fn next(&mut self, from: Duration, sessions: &impl Sessions) -> Option<Turn> {
        if self.walk.left() == 0 {
            return None;
        }
        let due = self.pace.next(from, self.walk.think(sessions))?;
        Some(self.walk.take(due))
    }

    /// A turn failed: the rest of the session, which builds on its answer, is skipped.
    #[must_use = "it is to be added to the profile's tally"]
    pub fn abandon(self) -> SessionCounts {
        let mut tally = SessionCounts::default();
        tally.abandon(self.walk.left());
        tally
    }
}
