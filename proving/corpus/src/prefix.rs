//! Prefixes that prompts share, and the prefix-cache hit rate that follows.
//!
//! An engine keeps prompts in blocks; a full block is named by its tokens and all before them. A request hits the
//! longest chain of blocks that some earlier prompt had, but never its last token, which has to be computed. Counted
//! as vLLM counts (`prefix_cache_queries`: tokens of prompts; `prefix_cache_hits`: tokens of hits), for sessions one
//! after the other and a cache that never evicts: what a real cache of that size loses is not predicted.
//! Invariant: within a session the chain is exact. Across sessions it is exact for the first 256 blocks of each
//! prompt, and beyond those as long as [`Known`] has room; then it is too small, by fewer blocks than its stride.
//! Not here: how prompts become tokens (`geometry`), names of blocks (`experiment::block`), the engine's own cache
//! (`simulator::kv`).

use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

use experiment::block;
use serde::{Deserialize, Serialize};

/// Tokens in a block, as vLLM has it.
pub const BLOCK_TOKENS: u32 = 16;
/// Names that [`Known`] holds: 75 MB of table. Five million blocks of 16 tokens are some 320 MB of text.
pub const MOST_KNOWN: usize = 7_000_000;
/// Blocks from the start of a prompt that are always remembered.
const ALWAYS: u32 = 256;
/// Stands for them in a name.
const ALWAYS_LEVEL: u32 = 31;
/// From there on nothing is thinned out: past it, new blocks are not remembered.
const MOST_LEVEL: u32 = 10;

/// What one request adds to the blocks of its session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnBlocks {
    /// Tokens of the prompt.
    pub tokens: u32,
    /// Tokens that the prompt before did not begin with.
    pub new_tokens: u32,
    /// Full blocks from the start that earlier prompts of the session had.
    pub own: u32,
    /// The names of the full blocks after those.
    pub fresh: Vec<u64>,
}

/// The blocks of the prompts of one session.
#[derive(Debug)]
pub struct SessionBlocks {
    block: usize,
    own: HashSet<u64, BuildHasherDefault<AsIs>>,
    before: Vec<u32>,
    chain: Vec<u64>,
}

impl SessionBlocks {
    /// For a session that has no prompt yet.
    #[must_use]
    pub fn new(block_tokens: u32) -> Self {
        Self {
            block: block_tokens.max(1) as usize,
            own: HashSet::default(),
            before: Vec::new(),
            chain: Vec::new(),
        }
    }

    /// The next prompt.
    pub fn prompt(&mut self, ids: Vec<u32>) -> TurnBlocks {
        let common = common_prefix(&self.before, &ids);
        self.chain.truncate(common / self.block);
        let shared = self.chain.len();
        let mut last = self.chain.last().copied().unwrap_or(0);
        for tokens in ids.chunks_exact(self.block).skip(shared) {
            last = block::name(last, tokens);
            self.chain.push(last);
        }
        let further = self.chain[shared..].iter();
        let own = shared + further.take_while(|name| self.own.contains(name)).count();
        let fresh = self.chain[own..].to_vec();
        self.own.extend(&fresh);
        let turn = TurnBlocks {
            tokens: ids.len() as u32,
            new_tokens: (ids.len() - common) as u32,
            own: own as u32,
            fresh,
        };
        self.before = ids;
        turn
    }
}

/// Tokens asked for and found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hits {
    /// Tokens of prompts.
    pub queries_tokens: u64,
    /// Tokens that a cache would have.
    pub hit_tokens: u64,
    /// Those of them that earlier requests of the same session left.
    pub hit_tokens_own: u64,
}

impl Hits {
    /// Share of tokens that are found, 0 to 1.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.hit_tokens as f64 / self.queries_tokens.max(1) as f64
    }

    /// Adds another's.
    pub fn add(&mut self, other: Self) {
        self.queries_tokens += other.queries_tokens;
        self.hit_tokens += other.hit_tokens;
        self.hit_tokens_own += other.hit_tokens_own;
    }
}

/// The blocks of all prompts so far.
///
/// A block is known only if all before it are, so that of a long chain some suffice. While there is room, all names
/// are kept. When the room is full, blocks beyond the first [`ALWAYS`] are thinned out to every second, then every
/// fourth, up to every 1,024th; a hit that ends between two of them is counted to the former.
#[derive(Debug, Default)]
pub struct Known {
    names: HashSet<u64, BuildHasherDefault<AsIs>>,
    level: u32,
    most: usize,
    first_blocks: u64,
    not_kept: u64,
}

impl Known {
    /// Nothing is known yet; room for [`MOST_KNOWN`].
    #[must_use]
    pub fn new() -> Self {
        Self::with_room(MOST_KNOWN)
    }

    /// Room for so many names.
    #[must_use]
    pub fn with_room(most: usize) -> Self {
        Self {
            most,
            ..Self::default()
        }
    }

    /// What of a request is known, and then all of it is.
    pub fn request(&mut self, turn: &TurnBlocks, block_tokens: u32) -> Hits {
        let most = turn.tokens.saturating_sub(1) / block_tokens.max(1);
        let mut depth = turn.own;
        for (i, name) in (turn.own..most).zip(&turn.fresh) {
            let level = level_of(i);
            if level < self.level {
                continue;
            }
            if !self.names.contains(&key(*name, level)) {
                break;
            }
            depth = i + 1;
        }
        for (i, name) in (turn.own..).zip(&turn.fresh) {
            self.learn(i, *name);
        }
        let tokens = |blocks: u32| u64::from(blocks.min(most)) * u64::from(block_tokens);
        Hits {
            queries_tokens: u64::from(turn.tokens),
            hit_tokens: tokens(depth),
            hit_tokens_own: tokens(turn.own),
        }
    }

    /// Different first blocks so far.
    #[must_use]
    pub fn first_blocks(&self) -> u64 {
        self.first_blocks
    }

    /// Every how many blocks one is kept, beyond the first 256 of a prompt; 1 is exact.
    #[must_use]
    pub fn stride(&self) -> u32 {
        1 << self.level
    }

    /// Blocks for which there was no room at all.
    #[must_use]
    pub fn not_kept(&self) -> u64 {
        self.not_kept
    }

    fn learn(&mut self, i: u32, name: u64) {
        let level = level_of(i);
        if level < self.level {
            return;
        }
        while self.names.len() >= self.most && self.level < MOST_LEVEL {
            self.level += 1;
            let level = u64::from(self.level);
            self.names.retain(|key| key & 31 >= level);
        }
        if self.names.len() >= self.most {
            self.not_kept += 1;
        } else if level >= self.level && self.names.insert(key(name, level)) && i == 0 {
            self.first_blocks += 1;
        }
    }
}

/// How long a block is kept when room is short.
fn level_of(i: u32) -> u32 {
    if i < ALWAYS {
        ALWAYS_LEVEL
    } else {
        i.trailing_zeros().min(ALWAYS_LEVEL - 1)
    }
}

/// A name that says its level.
fn key(name: u64, level: u32) -> u64 {
    name & !31 | u64::from(level)
}

/// Ids that both begin with.
fn common_prefix(a: &[u32], b: &[u32]) -> usize {
    const STEP: usize = 64;
    let alike = a.chunks(STEP).zip(b.chunks(STEP));
    let whole = alike.take_while(|(a, b)| a == b && a.len() == STEP).count() * STEP;
    let rest = a[whole..].iter().zip(&b[whole..]);
    whole + rest.take_while(|(a, b)| a == b).count()
}

/// Names are hashes already, but for their last five bits.
#[derive(Debug, Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(byte);
        }
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = n.rotate_right(5);
    }
}

#[cfg(test)]
mod tests;
