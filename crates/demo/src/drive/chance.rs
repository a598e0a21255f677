//! Numbers by a seed.
//!
//! Not here: what is made of them (`workload`).

/// `SplitMix64`.
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// One of `0..n`; 0 where there is none.
    pub(super) fn below(&mut self, n: usize) -> usize {
        let n = n.max(1) as u64;
        usize::try_from(self.bits() % n).unwrap_or_default()
    }

    /// One of these.
    pub(super) fn of<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let at = self.below(choices.len());
        choices.get(at)
    }
}
