//! A vocabulary whose pattern and merges are known here: a text is cut into pieces, and each is counted.
//!
//! Invariant: counts do not depend on what was counted before, nor on who counts beside.
//! Not here: the cuts (`pieces`), the merges (`bpe`).

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::bpe;
use super::known::{Key, Known};
use super::pairs::Pairs;
use super::pieces::{BATCH, Grammar, Pieces};
use crate::memo::Memo;
use crate::uncountable::Uncountable;

/// Callers at once whose desks are kept.
const MOST_DESKS: usize = 16;

/// What one who counts works with.
#[derive(Default)]
struct Desk {
    known: Known,
    batches: Box<[Batch; 2]>,
}

/// Pieces that are counted together.
struct Batch {
    from: usize,
    ends: [usize; BATCH],
    /// Of the short ones.
    keys: [Option<Key>; BATCH],
    found: usize,
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            from: 0,
            ends: [0; BATCH],
            keys: [None; BATCH],
            found: 0,
        }
    }
}

impl Batch {
    /// Finds the next pieces, from `from` on, and asks for what is known of them.
    #[inline]
    fn fill(&mut self, pieces: &mut Pieces<'_>, known: &Known, text: &[u8], from: usize) {
        self.from = from;
        self.found = pieces.next(&mut self.ends);
        let mut from = from;
        for (&to, key) in self.ends.iter().zip(&mut self.keys).take(self.found) {
            *key = Key::of(text, from, to);
            if let Some(key) = *key {
                known.fetch(key);
            }
            from = to;
        }
    }

    fn end(&self) -> usize {
        let last = self
            .found
            .checked_sub(1)
            .and_then(|last| self.ends.get(last));
        last.copied().unwrap_or(self.from)
    }
}

/// Pieces, as bytes.
pub(super) type Wholes = HashSet<Box<[u8]>>;

/// A vocabulary.
pub(crate) struct Pieced {
    grammar: Grammar,
    /// As `pairs` reads it.
    pairs: Cow<'static, [u8]>,
    /// Pieces that are one token though their bytes do not merge to it.
    wholes: Wholes,
    /// What those work with who do not count now.
    desks: Mutex<Vec<Desk>>,
    /// Of longer texts, with this vocabulary's number there.
    memo: Option<(Arc<Memo>, u64)>,
}

impl Pieced {
    pub(super) fn o200k() -> Self {
        let pairs = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.pairs"));
        Self::new(Grammar::O200k, Cow::Borrowed(pairs), HashSet::new())
    }

    pub(super) fn cl100k() -> Self {
        let pairs = include_bytes!(concat!(env!("OUT_DIR"), "/cl100k.pairs"));
        Self::new(Grammar::Cl100k, Cow::Borrowed(pairs), HashSet::new())
    }

    pub(super) const fn new(grammar: Grammar, pairs: Cow<'static, [u8]>, wholes: Wholes) -> Self {
        Self {
            grammar,
            pairs,
            wholes,
            desks: Mutex::new(Vec::new()),
            memo: None,
        }
    }

    /// Longer texts are looked up in `memo`, and remembered there.
    pub(super) fn remember_in(&mut self, memo: Arc<Memo>) {
        let number = memo.number();
        self.memo = Some((memo, number));
    }

    /// The tokens of a text.
    pub(super) fn count(&self, text: &str) -> Result<u64, Uncountable> {
        match &self.memo {
            Some((memo, number)) => memo.count(*number, text, || self.count_anew(text)),
            None => self.count_anew(text),
        }
    }

    fn count_anew(&self, text: &str) -> Result<u64, Uncountable> {
        let mut tokens = 0;
        self.each(text, |_, count| tokens += count)?;
        Ok(tokens)
    }

    /// The tokens of all but the last pieces of a text, and the bytes that they take.
    pub(super) fn count_all_but<const KEPT: usize>(
        &self,
        text: &str,
    ) -> Result<(usize, u64), Uncountable> {
        let (mut bytes, mut tokens, mut kept) = (0, 0, [(0, 0); KEPT]);
        self.each(text, |length, count| {
            kept.rotate_left(1);
            if let Some(newest) = kept.last_mut() {
                let (length, count) = std::mem::replace(newest, (length, count));
                bytes += length;
                tokens += count;
            }
        })?;
        Ok((bytes, tokens))
    }

    /// The length and the tokens of each piece.
    fn each(&self, text: &str, mut tell: impl FnMut(usize, u64)) -> Result<(), Uncountable> {
        let damaged = || Uncountable::Tokenizer("its table of merges is damaged".to_owned());
        let pairs = Pairs::read(&self.pairs).ok_or_else(damaged)?;
        let mut desk = self.desks().pop().unwrap_or_default();
        let Desk { known, batches } = &mut desk;
        let [now, next] = &mut **batches;
        let text_bytes = text.as_bytes();
        let mut pieces = Pieces::new(self.grammar, text);
        // While some pieces are counted, what is known of the next ones is on its way from memory.
        let (mut now, mut next) = (now, next);
        now.fill(&mut pieces, known, text_bytes, 0);
        while now.found > 0 {
            next.fill(&mut pieces, known, text_bytes, now.end());
            let mut from = now.from;
            for (&to, &key) in now.ends.iter().zip(&now.keys).take(now.found) {
                let count = self.piece(&pairs, known, text_bytes, from, to, key);
                tell(to - from, count);
                from = to;
            }
            std::mem::swap(&mut now, &mut next);
        }
        let mut desks = self.desks();
        if desks.len() < MOST_DESKS {
            desks.push(desk);
        }
        Ok(())
    }

    /// The tokens of one piece.
    #[inline]
    fn piece(
        &self,
        pairs: &Pairs<'_>,
        known: &mut Known,
        text: &[u8],
        from: usize,
        to: usize,
        key: Option<Key>,
    ) -> u64 {
        let piece = text.get(from..to).unwrap_or_default();
        if let Some(key) = key {
            return known.short(key, || {
                if self.is_whole(piece) {
                    1
                } else {
                    bpe::count(pairs, piece)
                }
            });
        }
        if let Some(tokens) = known.long(piece) {
            return tokens;
        }
        let tokens = if self.is_whole(piece) {
            1
        } else {
            bpe::count_parts(pairs, piece, |part| {
                // What is remembered is of pieces, which may be whole tokens where parts are not.
                let key = Key::of(piece, part.start, part.end);
                let count = || bpe::count(pairs, piece.get(part).unwrap_or_default());
                match key.filter(|_| self.wholes.is_empty()) {
                    Some(key) => known.short(key, count),
                    None => count(),
                }
            })
        };
        known.keep_long(piece, tokens);
        tokens
    }

    fn is_whole(&self, piece: &[u8]) -> bool {
        !self.wholes.is_empty() && self.wholes.contains(piece)
    }

    fn desks(&self) -> std::sync::MutexGuard<'_, Vec<Desk>> {
        self.desks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
