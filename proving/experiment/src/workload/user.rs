//! One user of a closed loop: session after session, one question at a time.
//!
//! Invariant: the host says when the answer before ended; what is asked then follows from seed, profile and number
//! alone, and when from these and the answers' ends.
//! Not here: arrivals that wait for nobody (`open`).

use std::time::Duration;

use super::turn::Walk;
use super::{Deal, Enter, Load, SessionCounts, Sessions, Stay, Turn, Workload};
use crate::arrivals::{Due, Pace};

/// One user.
#[derive(Debug, Clone)]
pub struct User {
    number: u64,
    comes_in: Duration,
    enters: Enter,
    deal: Deal,
    pace: Pace,
    stay: Stay,
    walk: Option<Walk>,
    tally: SessionCounts,
}

impl User {
    pub(super) fn new(workload: &Workload, profile: usize, number: u32) -> Option<Self> {
        let Workload { seed, profiles, .. } = workload;
        let described = profiles.get(profile)?;
        let Load::Closed {
            users,
            ref think,
            enter,
            stay,
        } = described.load
        else {
            return None;
        };
        let actor = Workload::actor(profile, u64::from(number));
        Some(Self {
            number: actor.number,
            comes_in: workload.comes_in(profile, number, users),
            enters: enter,
            deal: Deal::new(*seed, profile, actor.number, u64::from(users)),
            pace: Pace::new(*seed, described.scope, actor, think),
            stay,
            walk: None,
            tally: SessionCounts::default(),
        })
    }

    /// Its number in its profile.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// When it comes in: the `from` of its first turn.
    #[must_use]
    pub const fn comes_in(&self) -> Duration {
        self.comes_in
    }

    /// The next turn, where the answer before ended (or the user came in) at `from`; `None` once the user has left.
    pub fn next(&mut self, from: Duration, sessions: &impl Sessions) -> Option<Turn> {
        let mut walk = match self.walk.take().filter(|walk| walk.left() > 0) {
            Some(walk) => walk,
            None => self.begin(sessions)?,
        };
        let due = match std::mem::take(&mut self.enters) {
            Enter::Thinking => self.pace.next(from, walk.think(sessions))?,
            Enter::Asking => Due {
                from,
                at: from,
                drawn: false,
            },
        };
        let turn = walk.take(due);
        self.walk = Some(walk);
        Some(turn)
    }

    /// The turn failed: the rest of its session, which builds on its answer, is skipped.
    pub fn abandon(&mut self) {
        if let Some(walk) = self.walk.take() {
            self.tally.abandon(walk.left());
        }
    }

    /// What became of its sessions.
    #[must_use]
    pub const fn tally(&self) -> SessionCounts {
        self.tally
    }

    fn begin(&mut self, sessions: &impl Sessions) -> Option<Walk> {
        if let Stay::Sessions(left) = &mut self.stay {
            *left = left.checked_sub(1)?;
        }
        let (session, repeat) = self.deal.next(sessions.count())?;
        if self.stay == Stay::Once && repeat > 0 {
            return None;
        }
        self.tally.begin(repeat);
        Some(Walk::new(session, repeat, sessions))
    }
}
