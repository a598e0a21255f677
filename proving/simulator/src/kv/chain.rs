//! Names of blocks: each stands for its tokens and all tokens before them.
//!
//! Invariant: two sequences have the same name for block i when their first i + 1 blocks hold the same tokens, and
//! only then (but for a collision of 64 bits).
//! Not here: which block holds what (`pool`), how a name is made (`experiment::block`).

use experiment::block;
use experiment::random::mix;

/// The name of one full block and of everything before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockHash(pub u64);

impl BlockHash {
    /// The name of a block of `tokens` after the block `self`.
    #[must_use]
    pub fn then(self, tokens: &[u32]) -> Self {
        Self(block::name(self.0, tokens))
    }

    pub(super) fn of_full(self) -> u64 {
        self.0
    }

    pub(super) fn of_window(self) -> u64 {
        mix(self.0 ^ 0x5851_f42d_4c95_7f2d)
    }
}

/// The names of a sequence's blocks, as far as it may ever get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    known: Vec<BlockHash>,
    /// Names the blocks from the known ones up to `shareable`.
    past: u64,
    shareable: u32,
    /// Names the blocks after those.
    rest: u64,
}

impl Chain {
    /// The blocks of `tokens`; what is generated after them is shared with nobody. `own` tells this sequence from
    /// all others.
    #[must_use]
    pub fn of_tokens(tokens: &[u32], block_size: u32, own: u64) -> Self {
        let mut last = BlockHash(0);
        let known = tokens
            .chunks_exact(block_size.max(1) as usize)
            .map(|block| {
                last = last.then(block);
                last
            })
            .collect();
        Self::of_blocks(known, own)
    }

    /// Blocks named by the caller; those after them are shared with nobody.
    #[must_use]
    pub fn of_blocks(known: Vec<BlockHash>, own: u64) -> Self {
        Self {
            shareable: known.len() as u32,
            known,
            past: 0,
            rest: mix(own),
        }
    }

    /// A turn of a conversation: the `known` blocks, after them those of the conversation called `past`, which all of
    /// its turns have alike, up to `shareable` blocks in all; those after them are this one's alone.
    #[must_use]
    pub fn of_turn(known: Vec<BlockHash>, past: u64, shareable: u32, own: u64) -> Self {
        Self {
            shareable: shareable.max(known.len() as u32),
            known,
            past: mix(past),
            rest: mix(own),
        }
    }

    /// A sequence that shares nothing.
    #[must_use]
    pub fn unshared(own: u64) -> Self {
        Self::of_blocks(Vec::new(), own)
    }

    /// Blocks that another sequence may have too; those after them are this one's alone.
    #[must_use]
    pub fn shareable(&self) -> u32 {
        self.shareable
    }

    /// The name of block `i`.
    #[must_use]
    pub fn block(&self, i: u32) -> BlockHash {
        let named = || {
            let after = if i < self.shareable {
                self.past
            } else {
                self.rest
            };
            let place = (u64::from(i) + 1).wrapping_mul(0xd134_2543_de82_ef95);
            BlockHash(mix(after ^ place))
        };
        self.known.get(i as usize).copied().unwrap_or_else(named)
    }
}
