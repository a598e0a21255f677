//! Since when calls of one shape differ.
//!
//! Invariant: at most [`RUNS_MAX`] shapes are kept; of one that is forgotten, what differs began later.
//! Not here: what follows from it (`calibration`).

use std::collections::VecDeque;

use super::CLEARED_AFTER;
use crate::shape::Shape;

/// Shapes that are kept.
pub(super) const RUNS_MAX: usize = 128;
/// Calls that have to differ before most of a shape are said to.
const ENOUGH: u32 = 3;

/// Calls of one shape, from the first that differed until enough in a row agree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub(super) shape: Shape,
    /// When the first differed, seconds since 1970.
    pub(super) first_s: i64,
    differed: u32,
    agreed: u32,
    /// Those that agreed since one differed last.
    in_a_row: u8,
}

impl Run {
    /// Whether half of them differ, or more.
    pub(super) const fn mostly_differs(&self) -> bool {
        self.differed >= ENOUGH && self.differed >= self.agreed
    }
}

/// Those that have not ended, the first to begin first.
#[derive(Clone, Debug, Default)]
pub(super) struct Runs(VecDeque<Run>);

impl Runs {
    /// A call differed; since when do those that have no more features than it.
    pub(super) fn differed(&mut self, shape: Shape, now_s: i64) -> i64 {
        if let Some(run) = self.of(shape) {
            run.differed = run.differed.saturating_add(1);
            run.in_a_row = 0;
        } else {
            if self.0.len() >= RUNS_MAX {
                self.0.pop_front();
            }
            self.0.push_back(Run {
                shape,
                first_s: now_s,
                differed: 1,
                agreed: 0,
                in_a_row: 0,
            });
        }
        let within = self.0.iter().filter(|run| shape.holds(run.shape));
        within.map(|run| run.first_s).min().unwrap_or(now_s)
    }

    /// A call agreed.
    pub(super) fn agreed(&mut self, shape: Shape) {
        if let Some(run) = self.of(shape) {
            run.agreed = run.agreed.saturating_add(1);
            run.in_a_row = run.in_a_row.saturating_add(1);
            if run.in_a_row >= CLEARED_AFTER {
                self.0.retain(|run| run.shape != shape);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Run> {
        self.0.iter()
    }

    fn of(&mut self, shape: Shape) -> Option<&mut Run> {
        self.0.iter_mut().find(|run| run.shape == shape)
    }
}
