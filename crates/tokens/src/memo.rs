//! Counts of texts that were counted before: an agent's call repeats its whole history.
//!
//! A text between two special tokens is encoded apart from all others, so its count is its own. It is found by a keyed
//! 128-bit hash of vocabulary and text (SipHash-1-3): without the key, which is the process's own, nobody finds two texts
//! of one hash. Messages and tools whose count depends on nothing else are found by their JSON (`known_messages`).
//! Invariant: memory is set at the start. A place belongs to one of four texts, of which the one that was asked for least
//! lately goes first.
//! Not here: counting (`vocabulary`), where the key comes from (the host).

use std::hash::Hasher;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use siphasher::sip128::{Hasher128, SipHasher13};

use crate::shape::Shape;

/// Shorter texts are counted as fast as they are looked up, bytes.
const SHORTEST: usize = 128;
/// Texts that share a place.
const WAYS: usize = 4;
/// Locks; who counts takes one for some nanoseconds.
const SHARDS: usize = 64;

/// One text: its hash and its tokens, or what a JSON value counts ([`Shaped`]). All zero is nobody's.
type Entry = (u128, u64);

/// What a JSON value counts, and its shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shaped {
    pub(crate) tokens: u64,
    pub(crate) shape: Shape,
}

impl Shaped {
    const fn of_entry(entry: u64) -> Self {
        let bits = (entry >> 32) as u32;
        Self {
            tokens: entry & u32::MAX as u64,
            shape: Shape::from_bits(bits),
        }
    }

    /// Both halves in one; none for more tokens than a body can have.
    fn entry(self) -> Option<u64> {
        let tokens = u32::try_from(self.tokens).ok()?;
        Some(u64::from(self.shape.bits()) << 32 | u64::from(tokens))
    }
}

/// What is remembered, by all who count.
#[derive(Debug)]
pub struct Memo {
    key: [u64; 2],
    shards: Vec<Mutex<Shard>>,
    next: AtomicU64,
}

/// Places under one lock, and what became of lookups there.
#[derive(Debug)]
struct Shard {
    places: Vec<[Entry; WAYS]>,
    stats: MemoStats,
}

/// What became of lookups since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoStats {
    /// Texts that were known.
    pub hits: u64,
    /// Texts that had to be counted.
    pub misses: u64,
    /// Bytes of texts that were known.
    pub hit_bytes: u64,
    /// Bytes of texts that had to be counted.
    pub missed_bytes: u64,
    /// Texts that were forgotten for others.
    pub evictions: u64,
}

impl Memo {
    /// Takes so many bytes of memory at most, and at least some kilobytes. The key has to be one that nobody can know.
    #[must_use]
    pub fn new(bytes: usize, key: [u64; 2]) -> Self {
        let places = bytes / SHARDS / size_of::<[Entry; WAYS]>();
        let shard = || {
            Mutex::new(Shard {
                places: vec![[(0, 0); WAYS]; places.max(1)],
                stats: MemoStats::default(),
            })
        };
        Self {
            key,
            shards: (0..SHARDS).map(|_| shard()).collect(),
            next: AtomicU64::new(0),
        }
    }

    /// What became of lookups.
    #[must_use]
    pub fn stats(&self) -> MemoStats {
        let mut sum = MemoStats::default();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            sum.hits += shard.stats.hits;
            sum.misses += shard.stats.misses;
            sum.hit_bytes += shard.stats.hit_bytes;
            sum.missed_bytes += shard.stats.missed_bytes;
            sum.evictions += shard.stats.evictions;
        }
        sum
    }

    /// A number that no other vocabulary, and no kind of JSON, has here.
    pub(crate) fn number(&self) -> u64 {
        self.next.fetch_add(1, Relaxed)
    }

    /// Tokens of a text in the vocabulary of this number: remembered, or what `count` says.
    pub(crate) fn count<E>(
        &self,
        vocabulary: u64,
        text: &str,
        count: impl FnOnce() -> Result<u64, E>,
    ) -> Result<u64, E> {
        if text.len() < SHORTEST {
            return count();
        }
        let hash = self.hash(vocabulary, text);
        let bytes = text.len() as u64;
        if let Some(tokens) = self.find(hash, bytes) {
            return Ok(tokens);
        }
        let tokens = count()?;
        self.keep(hash, Some(bytes), tokens);
        Ok(tokens)
    }

    /// What `count` says of a JSON value of the kind of this number, however short; the texts in one that is not known
    /// are counted as missed, and not itself.
    pub(crate) fn remembered<E>(
        &self,
        kind: u64,
        json: &str,
        count: impl FnOnce() -> Result<Shaped, E>,
    ) -> Result<Shaped, E> {
        let hash = self.hash(kind, json);
        if let Some(entry) = self.find(hash, json.len() as u64) {
            return Ok(Shaped::of_entry(entry));
        }
        let counted = count()?;
        if let Some(entry) = counted.entry() {
            self.keep(hash, None, entry);
        }
        Ok(counted)
    }

    fn hash(&self, vocabulary: u64, text: &str) -> u128 {
        let [first, second] = self.key;
        let mut hasher = SipHasher13::new_with_keys(first, second);
        hasher.write_u64(vocabulary);
        hasher.write(text.as_bytes());
        hasher.finish128().as_u128().max(1)
    }

    fn find(&self, hash: u128, bytes: u64) -> Option<u64> {
        self.at(hash, |ways, stats| {
            let at = ways.iter().position(|(of, _)| *of == hash)?;
            let (_, tokens) = *ways.get(at)?;
            ways.get_mut(..=at)?.rotate_right(1);
            stats.hits += 1;
            stats.hit_bytes += bytes;
            Some(tokens)
        })
    }

    /// Remembers tokens: of a text of so many bytes that was missed, or of what is told of by its texts.
    fn keep(&self, hash: u128, missed: Option<u64>, tokens: u64) {
        self.at(hash, |ways, stats| {
            stats.misses += u64::from(missed.is_some());
            stats.missed_bytes += missed.unwrap_or(0);
            ways.rotate_right(1);
            let entry = ways.first_mut()?;
            let (gone, _) = std::mem::replace(entry, (hash, tokens));
            stats.evictions += u64::from(gone != 0 && gone != hash);
            Some(())
        });
    }

    /// Does something with the texts of a place, the one asked for last first.
    fn at<T>(
        &self,
        hash: u128,
        what: impl FnOnce(&mut [Entry; WAYS], &mut MemoStats) -> Option<T>,
    ) -> Option<T> {
        #[expect(clippy::cast_possible_truncation, reason = "two independent parts")]
        let (shard, place) = (hash as usize % SHARDS, (hash >> 64) as usize);
        let mut shard = self
            .shards
            .get(shard)?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Shard { places, stats } = &mut *shard;
        let place = place % places.len();
        what(places.get_mut(place)?, stats)
    }
}

#[cfg(test)]
mod tests;
