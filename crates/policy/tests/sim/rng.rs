//! What a run draws: a whole one hangs on one number.

use testing::Draw;

#[derive(Debug, Clone)]
pub(crate) struct Rng(Draw);

impl Rng {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Draw::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// From `from` to just below `to`.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from)
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }
}
