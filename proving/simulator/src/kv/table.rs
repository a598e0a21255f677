//! The blocks of one sequence, in order.
//!
//! Invariant: block i of the table holds tokens `i * block_size ..`; what a sliding window has left behind is given
//! back and leaves a gap.
//! Not here: whether there is room (`KvCache`).

use super::pool::{NIL, Pool};
use super::{Chain, Hit, KvConfig};

/// The blocks that one sequence holds.
#[derive(Clone, Debug, Default)]
pub struct Table {
    full: Vec<u32>,
    window: Vec<u32>,
    /// Window blocks before this one are given back.
    passed: u32,
    /// Blocks before this one were named.
    named: u32,
}

impl Table {
    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.full.is_empty()
    }

    pub(super) fn blocks(&self) -> u32 {
        self.full.len() as u32
    }

    /// Every block held, once for each reference.
    pub(super) fn held(&self) -> impl Iterator<Item = u32> + '_ {
        self.full
            .iter()
            .chain(&self.window)
            .copied()
            .filter(|&block| block != NIL)
    }

    pub(super) fn extend(&mut self, pool: &mut Pool, blocks: u32, with_window: bool) {
        for _ in 0..blocks {
            self.full.push(pool.take().unwrap_or(NIL));
            if with_window {
                self.window.push(pool.take().unwrap_or(NIL));
            }
        }
    }

    /// Names the blocks before `end`, all of which are full.
    pub(super) fn name(&mut self, pool: &mut Pool, chain: &Chain, end: u32) {
        for i in self.named..end {
            let hash = chain.block(i);
            pool.name(self.full[i as usize], hash.of_full());
            match self.window.get(i as usize) {
                Some(&block) if block != NIL => pool.name(block, hash.of_window()),
                _ => {}
            }
        }
        self.named = self.named.max(end);
    }

    /// Gives back the window blocks that no later token looks at.
    pub(super) fn slide(&mut self, pool: &mut Pool, computed: u32, window: u32, block_size: u32) {
        let needed_from = (computed + 1).saturating_sub(window) / block_size;
        for i in (self.passed..needed_from.min(self.window.len() as u32)).rev() {
            let block = std::mem::replace(&mut self.window[i as usize], NIL);
            if block != NIL {
                pool.put_back(block);
            }
        }
        self.passed = self.passed.max(needed_from);
    }

    pub(super) fn release(&mut self, pool: &mut Pool) {
        let longest = self.full.len().max(self.window.len());
        for i in (0..longest).rev() {
            for blocks in [&self.window, &self.full] {
                match blocks.get(i) {
                    Some(&block) if block != NIL => pool.put_back(block),
                    _ => {}
                }
            }
        }
        self.full.clear();
        self.window.clear();
        (self.passed, self.named) = (0, 0);
    }
}

/// The cached blocks with which a sequence is going to start.
pub(super) struct Admission {
    full: Vec<u32>,
    window: Vec<u32>,
    revived: u32,
}

impl Admission {
    pub(super) fn plan(config: &KvConfig, pool: &Pool, chain: &Chain, hit: Hit) -> Self {
        let found = |name| pool.named(name).unwrap_or(NIL);
        let full: Vec<u32> = (0..hit.blocks)
            .map(|i| found(chain.block(i).of_full()))
            .collect();
        let window: Vec<u32> = config.sliding_window.map_or_else(Vec::new, |window| {
            let from = (hit.tokens + 1).saturating_sub(window) / config.block_size;
            (0..hit.blocks)
                .map(|i| {
                    if i < from {
                        NIL
                    } else {
                        found(chain.block(i).of_window())
                    }
                })
                .collect()
        });
        let revived = full
            .iter()
            .chain(&window)
            .filter(|&&block| block != NIL && pool.is_free(block))
            .count() as u32;
        Self {
            full,
            window,
            revived,
        }
    }

    pub(super) fn blocks(&self) -> u32 {
        self.full.len() as u32
    }

    /// Blocks that were free and no longer will be.
    pub(super) fn revived(&self) -> u32 {
        self.revived
    }

    pub(super) fn take(self, table: &mut Table, pool: &mut Pool) {
        for &block in self
            .full
            .iter()
            .chain(&self.window)
            .filter(|&&block| block != NIL)
        {
            pool.share(block);
        }
        table.named = self.full.len() as u32;
        table.full = self.full;
        table.window = self.window;
    }
}
