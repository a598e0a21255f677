//! The KV cache: which blocks hold which tokens, shared between prompts that begin alike.
//!
//! Tokens live in blocks of a fixed size. A full block is named by the hash of its tokens chained with the block
//! before it, so that one name stands for a whole prefix. A released block keeps its name until it is used for
//! something else, the longest released first.
//! Invariant: every block is either free or referenced, never both; the references of all tables together are the
//! references of all blocks.
//! Not here: who gets blocks and who has to give them back (`scheduler`).

mod chain;
mod pool;
mod table;

pub use chain::{BlockHash, Chain};
pub use table::Table;

use pool::Pool;

/// Blocks that a simulated cache has at most: beyond any machine, and still only some hundred megabytes here.
pub const MOST_BLOCKS: u32 = 1 << 24;

/// Size and habits of a KV cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvConfig {
    /// Tokens in a block.
    pub block_size: u32,
    /// Blocks as vLLM reports them (`num_gpu_blocks`). One of them is never given out: vLLM keeps it as the
    /// "null" block.
    pub blocks: u32,
    /// Whether a new prompt may use blocks that hold its beginning already.
    pub prefix_caching: bool,
    /// When set, half of the layers look back this many tokens only (gpt-oss: 128) and keep blocks of their own
    /// for those; a block then holds half of the layers.
    pub sliding_window: Option<u32>,
}

/// The blocks of one engine.
#[derive(Debug)]
pub struct KvCache {
    config: KvConfig,
    pool: Pool,
}

/// What of a prompt is cached already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hit {
    /// Whole blocks from the start of the prompt.
    pub blocks: u32,
    /// The same in tokens.
    pub tokens: u32,
}

impl KvCache {
    /// An empty cache.
    #[must_use]
    pub fn new(config: KvConfig) -> Self {
        Self {
            config,
            pool: Pool::new(config.blocks.saturating_sub(1)),
        }
    }

    /// The settings it was made with.
    #[must_use]
    pub fn config(&self) -> &KvConfig {
        &self.config
    }

    /// Blocks that may be given out.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.pool.len()
    }

    /// Blocks that nobody references.
    #[must_use]
    pub fn free(&self) -> u32 {
        self.pool.free()
    }

    /// Share of the blocks that is referenced, 0 to 1.
    #[must_use]
    pub fn usage(&self) -> f64 {
        if self.capacity() == 0 {
            return 0.0;
        }
        1.0 - f64::from(self.free()) / f64::from(self.capacity())
    }

    /// Blocks that `tokens` tokens of one sequence occupy once all are computed.
    #[must_use]
    pub fn blocks_for(&self, tokens: u32) -> u32 {
        let full = tokens.div_ceil(self.config.block_size);
        match self.config.sliding_window {
            None => full,
            Some(window) => full + full.min(window.div_ceil(self.config.block_size) + 1),
        }
    }

    /// The longest cached beginning of a sequence of `tokens` tokens. The last token never counts: it has to be
    /// computed for the next one to be sampled.
    #[must_use]
    pub fn look_up(&self, chain: &Chain, tokens: u32) -> Hit {
        if !self.config.prefix_caching {
            return Hit::default();
        }
        let most = tokens.saturating_sub(1) / self.config.block_size;
        let full = (0..most)
            .take_while(|&i| self.pool.named(chain.block(i).of_full()).is_some())
            .count() as u32;
        let blocks = match self.config.sliding_window {
            None => full,
            Some(window) => self.window_hit(chain, full, window),
        };
        Hit {
            blocks,
            tokens: blocks * self.config.block_size,
        }
    }

    /// The longest beginning of at most `most` blocks whose last window is cached too.
    fn window_hit(&self, chain: &Chain, most: u32, window: u32) -> u32 {
        let wanted = window.saturating_sub(1).div_ceil(self.config.block_size);
        let (mut end, mut run) = (most, 0);
        for i in (0..most).rev() {
            if self.pool.named(chain.block(i).of_window()).is_none() {
                (end, run) = (i, 0);
                continue;
            }
            run += 1;
            if run == wanted {
                return end;
            }
        }
        end
    }

    /// Starts a sequence on what is cached of it, with room for `tokens` more. With `whole`, only if so many
    /// tokens in all would find room too. False, and nothing taken, when there is none.
    pub fn admit(
        &mut self,
        table: &mut Table,
        chain: &Chain,
        hit: Hit,
        tokens: u32,
        whole: Option<u32>,
    ) -> bool {
        debug_assert!(
            table.is_empty(),
            "a sequence is admitted with an empty table"
        );
        let plan = table::Admission::plan(&self.config, &self.pool, chain, hit);
        let end = hit.tokens + tokens;
        let needed = self
            .new_blocks(&plan, end, end)
            .max(whole.map_or(0, |all| self.new_blocks(&plan, all, end)));
        if needed + plan.revived() > self.pool.free() {
            return false;
        }
        plan.take(table, &mut self.pool);
        let grown = self.grow(table, chain, hit.tokens, tokens);
        debug_assert!(grown, "room was checked");
        grown
    }

    /// New blocks for `all` tokens, when the first step computes up to `end`. Half of the layers never hold more
    /// than a window and a step.
    fn new_blocks(&self, plan: &table::Admission, all: u32, end: u32) -> u32 {
        let blocks = |tokens: u32| {
            tokens
                .div_ceil(self.config.block_size)
                .saturating_sub(plan.blocks())
        };
        match self.config.sliding_window {
            None => blocks(all),
            Some(window) => blocks(all) + blocks(all.min(end + window)),
        }
    }

    /// Room for `tokens` more after `computed` ones, and names for the blocks that are then full and may be shared. False, and
    /// nothing taken, when there is none.
    pub fn grow(&mut self, table: &mut Table, chain: &Chain, computed: u32, tokens: u32) -> bool {
        if let Some(window) = self.config.sliding_window {
            table.slide(&mut self.pool, computed, window, self.config.block_size);
        }
        let end = computed + tokens;
        let missing = end
            .div_ceil(self.config.block_size)
            .saturating_sub(table.blocks());
        if missing > 0 {
            let groups = if self.config.sliding_window.is_some() {
                2
            } else {
                1
            };
            if missing * groups > self.pool.free() {
                return false;
            }
            table.extend(&mut self.pool, missing, groups == 2);
        }
        if self.config.prefix_caching {
            let full = end / self.config.block_size;
            table.name(&mut self.pool, chain, full.min(chain.shareable()));
        }
        true
    }

    /// Gives back every block of a sequence that will come again, under names by which it may find them. Blocks
    /// that are its alone get theirs only now: nobody else could have asked for them.
    pub fn suspend(&mut self, table: &mut Table, chain: &Chain, computed: u32) {
        if self.config.prefix_caching {
            table.name(&mut self.pool, chain, computed / self.config.block_size);
        }
        table.release(&mut self.pool);
    }

    /// Gives back every block of a sequence, the last first, so that its beginning stays cached longest.
    pub fn release(&mut self, table: &mut Table) {
        table.release(&mut self.pool);
    }

    /// Forgets every name. False, and nothing forgotten, while blocks are in use.
    pub fn reset(&mut self) -> bool {
        let idle = self.free() == self.capacity();
        if idle {
            self.pool.forget();
        }
        idle
    }

    /// Checks the invariant against all tables there are. Says what is wrong; for tests.
    ///
    /// # Errors
    /// Names the first block or count that is not as it has to be.
    pub fn audit<'a>(&self, tables: impl Iterator<Item = &'a Table>) -> Result<(), String> {
        self.pool.audit(tables.flat_map(Table::held))
    }
}

#[cfg(test)]
mod tests;
