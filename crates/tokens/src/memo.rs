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

/// Shorter texts are counted as fast as they are looked up, bytes.
const SHORTEST: usize = 128;
/// Texts that share a place.
const WAYS: usize = 4;
/// Locks; who counts takes one for some nanoseconds.
const SHARDS: usize = 64;

/// One text: its hash and its tokens. All zero is nobody's.
type Entry = (u128, u64);

/// What is remembered, by all who count.
#[derive(Debug)]
pub struct Memo {
    key: [u64; 2],
    shards: Vec<Mutex<Vec<[Entry; WAYS]>>>,
    next: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    hit_bytes: AtomicU64,
    missed_bytes: AtomicU64,
    evictions: AtomicU64,
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
        let shard = || Mutex::new(vec![[(0, 0); WAYS]; places.max(1)]);
        Self {
            key,
            shards: (0..SHARDS).map(|_| shard()).collect(),
            next: AtomicU64::new(0),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            hit_bytes: AtomicU64::new(0),
            missed_bytes: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    /// What became of lookups.
    #[must_use]
    pub fn stats(&self) -> MemoStats {
        MemoStats {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            hit_bytes: self.hit_bytes.load(Relaxed),
            missed_bytes: self.missed_bytes.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
        }
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
        self.remembered(vocabulary, text, || {
            let tokens = count()?;
            self.misses.fetch_add(1, Relaxed);
            self.missed_bytes.fetch_add(text.len() as u64, Relaxed);
            Ok(tokens)
        })
    }

    /// What `count` says of a JSON value of the kind of this number, however short; the texts in one that is not known
    /// are counted as missed, and not itself.
    pub(crate) fn remembered<E>(
        &self,
        kind: u64,
        json: &str,
        count: impl FnOnce() -> Result<u64, E>,
    ) -> Result<u64, E> {
        let hash = self.hash(kind, json);
        if let Some(tokens) = self.find(hash) {
            self.hits.fetch_add(1, Relaxed);
            self.hit_bytes.fetch_add(json.len() as u64, Relaxed);
            return Ok(tokens);
        }
        let tokens = count()?;
        self.keep(hash, tokens);
        Ok(tokens)
    }

    fn hash(&self, vocabulary: u64, text: &str) -> u128 {
        let [first, second] = self.key;
        let mut hasher = SipHasher13::new_with_keys(first, second);
        hasher.write_u64(vocabulary);
        hasher.write(text.as_bytes());
        hasher.finish128().as_u128().max(1)
    }

    fn find(&self, hash: u128) -> Option<u64> {
        self.at(hash, |ways| {
            let at = ways.iter().position(|(of, _)| *of == hash)?;
            let (_, tokens) = *ways.get(at)?;
            ways.get_mut(..=at)?.rotate_right(1);
            Some(tokens)
        })
    }

    fn keep(&self, hash: u128, tokens: u64) {
        self.at(hash, |ways| {
            ways.rotate_right(1);
            let entry = ways.first_mut()?;
            let (gone, _) = std::mem::replace(entry, (hash, tokens));
            if gone != 0 && gone != hash {
                self.evictions.fetch_add(1, Relaxed);
            }
            Some(())
        });
    }

    /// Does something with the texts of a place, the one asked for last first.
    fn at<T>(&self, hash: u128, what: impl FnOnce(&mut [Entry; WAYS]) -> Option<T>) -> Option<T> {
        #[expect(clippy::cast_possible_truncation, reason = "two independent parts")]
        let (shard, place) = (hash as usize % SHARDS, (hash >> 64) as usize);
        let mut places = self
            .shards
            .get(shard)?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let place = place % places.len();
        what(places.get_mut(place)?)
    }
}

#[cfg(test)]
mod tests;
