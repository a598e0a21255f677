//! The beginnings of prompts that one endpoint has seen, as far as its own cache can still have them.
//!
//! A table of blocks in sets of [`WAYS`], as a processor's cache has them: a block that finds no room in its set takes the place of the
//! one that was used the longest time ago there. Time is what was new: its unit is [`UNIT_BYTES`] of prompt that the endpoint had not
//! seen. What was not used while more of it came than its cache holds is taken to be gone there, which is how an engine forgets, too.
//! Invariant: memory is [`SLOTS`] words, and none before the first prompt; a block that was never added is found by chance alone, once in
//! 2^40 looks. Workers look and add at the same time without a lock: what is lost by that is a block that is not found.
//! Not here: the chain of a prompt (`prompt`).

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::prompt::{Block, Prompt};

/// Words of the table: half a megabyte.
pub(super) const SLOTS: usize = 1 << 16;
/// Blocks of a set; a line of the processor's cache.
pub(super) const WAYS: usize = 8;
const SETS: u64 = (SLOTS / WAYS) as u64;
/// Prompt for one unit of the clock.
pub(super) const UNIT_BYTES: u64 = 256;
/// Of a word those bits that say when the block was used.
const TIME_BITS: u32 = 24;
const TIME: u64 = (1 << TIME_BITS) - 1;
/// The most that an endpoint can be taken to remember, in units: times beyond it could not be told apart.
const REACH_MAX: u64 = TIME / 2;
/// What one is taken to remember that says nothing of its cache.
const REACH: u64 = SLOTS as u64;

/// What one endpoint has seen.
#[derive(Debug)]
pub struct Prefixes {
    slots: OnceLock<Box<[AtomicU64]>>,
    /// Units that were new so far.
    clock: AtomicU64,
    /// When it was last emptied.
    since: AtomicU64,
    /// How many units the endpoint's own cache holds.
    reach: AtomicU64,
}

impl Default for Prefixes {
    fn default() -> Self {
        Self {
            slots: OnceLock::new(),
            // Nothing has time 0: an empty word is no block.
            clock: AtomicU64::new(1),
            since: AtomicU64::new(1),
            reach: AtomicU64::new(REACH),
        }
    }
}

impl Prefixes {
    /// How many blocks of a prompt, from its beginning, the endpoint has seen.
    #[must_use]
    pub fn seen(&self, prompt: &Prompt) -> usize {
        let now = self.clock.load(Ordering::Relaxed);
        // What it has seen of a chain is a beginning of it: all before a block was used when that was.
        let has = |block: &Block| self.find(block, now).is_some();
        prompt.blocks().partition_point(has)
    }

    /// The endpoint sees this prompt.
    pub fn add(&self, prompt: &Prompt) {
        if prompt.blocks().is_empty() {
            return;
        }
        let slots = self.slots.get_or_init(|| {
            let empty = std::iter::repeat_with(|| AtomicU64::new(0));
            empty.take(SLOTS).collect()
        });
        let blocks = prompt.blocks();
        let seen = self.seen(prompt);
        let new = prompt
            .bytes_of(blocks.len())
            .saturating_sub(prompt.bytes_of(seen));
        let units = new.div_ceil(UNIT_BYTES);
        let now = self.clock.fetch_add(units, Ordering::Relaxed) + units;
        for block in blocks {
            let word = word_of(block, now);
            if let Some(slot) = place_for(slots, block, now) {
                slot.store(word, Ordering::Relaxed);
            }
        }
    }

    /// The endpoint has seen nothing any more.
    pub fn forget(&self) {
        let past = self.clock.fetch_add(1, Ordering::Relaxed) + 1;
        self.since.store(past, Ordering::Relaxed);
    }

    /// The endpoint's own cache holds so many bytes of prompts.
    pub fn reaches(&self, bytes: u64) {
        let units = (bytes / UNIT_BYTES).clamp(1, REACH_MAX);
        self.reach.store(units, Ordering::Relaxed);
    }

    /// How old the block is, where it is there.
    fn find(&self, block: &Block, now: u64) -> Option<u64> {
        let tag = tag_of(block);
        let mut words = set_of(self.slots.get()?, block)?
            .iter()
            .map(|slot| slot.load(Ordering::Relaxed));
        let word = words.find(|word| *word != 0 && word >> TIME_BITS == tag)?;
        let age = age_of(word, now);
        let since = self.since.load(Ordering::Relaxed);
        let is_known =
            age <= self.reach.load(Ordering::Relaxed) && now.saturating_sub(age) >= since;
        is_known.then_some(age)
    }
}

/// The blocks among which one stands, or may.
fn set_of<'s>(slots: &'s [AtomicU64], block: &Block) -> Option<&'s [AtomicU64; WAYS]> {
    let set = usize::try_from(block.hash % SETS).ok()?;
    slots.as_chunks().0.get(set)
}

/// Where the block stands, or may: in its own place, an empty one, or that of the oldest.
fn place_for<'s>(slots: &'s [AtomicU64], block: &Block, now: u64) -> Option<&'s AtomicU64> {
    let tag = tag_of(block);
    let rank = |slot: &&AtomicU64| {
        let word = slot.load(Ordering::Relaxed);
        match word {
            _ if word != 0 && word >> TIME_BITS == tag => u64::MAX,
            0 => u64::MAX - 1,
            _ => age_of(word, now),
        }
    };
    set_of(slots, block)?.iter().max_by_key(rank)
}

/// Of a hash the bits that say no set.
fn tag_of(block: &Block) -> u64 {
    block.hash >> TIME_BITS
}

fn word_of(block: &Block, now: u64) -> u64 {
    tag_of(block) << TIME_BITS | now & TIME
}

fn age_of(word: u64, now: u64) -> u64 {
    now.wrapping_sub(word) & TIME
}

#[cfg(test)]
mod tests;
