//! A vocabulary whose pattern and merges are known here: a text is cut into pieces, and each is counted.
//!
//! Invariant: counts do not depend on what was counted before, nor on who counts beside.
//! Not here: the cuts (`pieces`), the merges (`bpe`).

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use super::bpe;
use super::known::{self, Known};
use super::pairs::Pairs;
use super::pieces::{BATCH, Grammar, Pieces};
use crate::memo::Memo;
use crate::uncountable::Uncountable;

/// Callers at once whose memory of pieces is kept.
const MOST_KNOWN: usize = 16;

/// Pieces, as bytes.
pub(super) type Wholes = HashSet<Box<[u8]>>;

/// A vocabulary.
pub(crate) struct Pieced {
    grammar: Grammar,
    /// As `pairs` reads it.
    pairs: Cow<'static, [u8]>,
    /// Pieces that are one token though their bytes do not merge to it.
    wholes: Wholes,
    /// What those who do not count now remember.
    known: Mutex<Vec<Known>>,
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
            known: Mutex::new(Vec::new()),
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
        let mut known = self.remembered().pop().unwrap_or_else(Known::new);
        let mut pieces = Pieces::new(self.grammar, text);
        let (mut ends, mut from) = ([0; BATCH], 0);
        loop {
            let found = pieces.next(&mut ends);
            for &to in ends.iter().take(found) {
                let count = self.piece(&pairs, &mut known, text.as_bytes(), from, to);
                tell(to - from, count);
                from = to;
            }
            if found == 0 {
                break;
            }
        }
        let mut remembered = self.remembered();
        if remembered.len() < MOST_KNOWN {
            remembered.push(known);
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
    ) -> u64 {
        if to - from <= known::SHORT {
            return known.count(text, from, to, |piece| {
                if self.is_whole(piece) {
                    1
                } else {
                    bpe::count(pairs, piece)
                }
            });
        }
        let piece = text.get(from..to).unwrap_or_default();
        if let Some(tokens) = known.long(piece) {
            return tokens;
        }
        let tokens = if self.is_whole(piece) {
            1
        } else {
            bpe::count_parts(pairs, piece, |part| {
                // What is remembered is of pieces, which may be whole tokens where parts are not.
                if self.wholes.is_empty() {
                    return known
                        .count(piece, part.start, part.end, |part| bpe::count(pairs, part));
                }
                bpe::count(pairs, piece.get(part).unwrap_or_default())
            })
        };
        known.keep_long(piece, tokens);
        tokens
    }

    fn is_whole(&self, piece: &[u8]) -> bool {
        !self.wholes.is_empty() && self.wholes.contains(piece)
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, Vec<Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
