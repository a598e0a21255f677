//! Gaps in the order in which they were drawn, and the uniforms that they become.
//!
//! Of users, gaps stand in the order of the moments they count from: what comes later was drawn without knowledge of
//! them, so that they are independent however users' turns interleave. Of arrivals, a gap is what lies between one
//! moment and the next, whatever was said to lie between.
//! Invariant: intended and achieved gaps are tested by the same law.
//! Not here: tests (`checks`).

use std::collections::BTreeMap;
use std::time::Duration;

use super::collector::{NEVER, Send, WITHDRAWN};
use super::lag::Lag;
use crate::arrivals::{Law, Process, Scope};
use crate::random::Rng;
use crate::workload::{Load, SEQUENCE, Workload};

/// Of what is drawn to tell short gaps apart: a certificate is the same whenever it is made.
const SEED: u64 = 2;

/// The gaps of one profile.
pub(super) struct Gaps<'a> {
    pub(super) seed: u64,
    pub(super) number: usize,
    pub(super) process: &'a Process,
    pub(super) scope: Scope,
    pub(super) open: bool,
    pub(super) intended: Series,
    pub(super) achieved: Series,
    /// Users that were seen, ascending; of arrivals, their sequence.
    pub(super) actors: Vec<u64>,
    /// The run's end, in seconds.
    pub(super) end_s: f64,
}

/// Gaps as pairs of moments, in nanoseconds.
#[derive(Default)]
pub(super) struct Series {
    pub(super) pairs: Vec<(u64, u64)>,
    /// One for each gap; none where the law leaves nothing to chance.
    pub(super) uniforms: Vec<f64>,
}

impl Series {
    /// Gaps, in seconds.
    pub(super) fn gaps_s(&self) -> Vec<f64> {
        let gap = |&(from, to): &(u64, u64)| to.saturating_sub(from) as f64 * 1e-9;
        self.pairs.iter().map(gap).collect()
    }

    /// The moments at which gaps end, in seconds.
    pub(super) fn times_s(&self) -> Vec<f64> {
        self.pairs.iter().map(|&(_, to)| to as f64 * 1e-9).collect()
    }

    /// The last moment, in seconds.
    pub(super) fn last_s(&self) -> f64 {
        self.pairs.last().map_or(0.0, |&(_, to)| to as f64 * 1e-9)
    }
}

impl<'a> Gaps<'a> {
    /// Sorts `sends`. `None` where there is no such profile.
    pub(super) fn new(
        workload: &'a Workload,
        number: usize,
        sends: &mut Vec<Send>,
        end_ns: u64,
        lag: &Lag,
    ) -> Option<Self> {
        let profile = workload.profiles.get(number)?;
        let open = matches!(profile.load, Load::Open { .. });
        sends.retain(|send| send.drawn);
        let (intended, achieved, actors) = if open {
            (
                consecutive(sends.iter().map(|send| send.due_ns)),
                consecutive(sends.iter().map(|send| send.sent_ns)),
                vec![SEQUENCE; sends.len()],
            )
        } else {
            sends.sort_unstable_by_key(|send| (send.from_ns, send.actor, send.due_ns));
            let patience_ns = (lag.limit_s * 1e9) as u64;
            let left = |send: &Send| match send.sent_ns {
                NEVER if send.due_ns.saturating_add(patience_ns) < end_ns => end_ns,
                NEVER | WITHDRAWN => send.due_ns,
                sent_ns => sent_ns,
            };
            (
                sends.iter().map(|s| (s.from_ns, s.due_ns)).collect(),
                sends.iter().map(|s| (s.from_ns, left(s))).collect(),
                sends.iter().map(|s| u64::from(s.actor)).collect(),
            )
        };
        let mut gaps = Self {
            seed: workload.seed,
            number,
            process: profile.process(),
            scope: profile.scope,
            open,
            intended: Series::default(),
            achieved: Series::default(),
            actors,
            end_s: end_ns as f64 * 1e-9,
        };
        gaps.intended = gaps.series(intended);
        gaps.achieved = gaps.series(achieved);
        gaps.actors.sort_unstable();
        gaps.actors.dedup();
        Some(gaps)
    }

    /// The law of one actor.
    pub(super) fn law(&self, actor: u64) -> Law {
        let actor = Workload::actor(self.number, actor);
        Law::new(self.seed, self.scope, actor, self.process)
    }

    fn series(&self, pairs: Vec<(u64, u64)>) -> Series {
        let shared = self.open || self.scope != Scope::User;
        let mut laws: BTreeMap<u64, Law> = BTreeMap::new();
        // Of each gap a number of its own: gaps of no time at all stand for as many that had some.
        let mut within = Rng::stream(SEED, &[self.number as u64]);
        let uniforms = pairs
            .iter()
            .zip(&self.actors)
            .filter_map(|(&(from, to), &actor)| {
                let key = if shared { 0 } else { actor };
                let law = laws.entry(key).or_insert_with(|| self.law(actor));
                law.uniform(
                    Duration::from_nanos(from),
                    Duration::from_nanos(to),
                    within.unit(),
                )
            })
            .collect();
        Series { pairs, uniforms }
    }
}

/// What lies between each moment and the next, from the start of the run on; those that never were are left out.
fn consecutive(moments: impl Iterator<Item = u64>) -> Vec<(u64, u64)> {
    let mut moments: Vec<u64> = moments.filter(|&at| at < WITHDRAWN).collect();
    moments.sort_unstable();
    let before = std::iter::once(0).chain(moments.iter().copied());
    before.zip(moments.iter().copied()).collect()
}
