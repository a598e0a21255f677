//! A vocabulary whose pattern and merges are known here: a text is cut into pieces, and each is counted.
//!
//! Invariant: counts do not depend on what was counted before, nor on who counts beside.
//! Not here: the cuts (`pieces`), the merges (`bpe`), what a thread knows of pieces (`desk`).

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bpe;
use super::desk::{self, Batch, Desk};
use super::known::{Key, Known};
use super::pairs::Pairs;
use super::pieces::{Grammar, Pieces, sixteen};
use super::processor::{Level, Processor, Work};
use crate::memo::Memo;
use crate::work;
use prompts::Uncountable;

/// Pieces, as bytes.
pub(super) type Wholes = HashSet<Box<[u8]>>;

/// The numbers of those that are built in; others have those that follow.
const O200K: u64 = 0;
const CL100K: u64 = 1;
static NEXT: AtomicU64 = AtomicU64::new(2);

/// A vocabulary.
pub(crate) struct Pieced {
    grammar: Grammar,
    /// As `pairs` reads it.
    pairs: Cow<'static, [u8]>,
    /// Pieces that are one token though their bytes do not merge to it.
    wholes: Wholes,
    /// No other's of the process.
    number: u64,
    processor: Processor,
    /// Of longer texts, with this vocabulary's number there.
    memo: Option<(Arc<Memo>, u64)>,
}

impl Pieced {
    pub(super) fn o200k() -> Self {
        let pairs = include_bytes!(concat!(env!("OUT_DIR"), "/o200k.pairs"));
        let pairs = Cow::Borrowed(&pairs[..]);
        Self::numbered(O200K, Grammar::O200k, pairs, HashSet::new())
    }

    pub(super) fn cl100k() -> Self {
        let pairs = include_bytes!(concat!(env!("OUT_DIR"), "/cl100k.pairs"));
        let pairs = Cow::Borrowed(&pairs[..]);
        Self::numbered(CL100K, Grammar::Cl100k, pairs, HashSet::new())
    }

    pub(super) fn new(grammar: Grammar, pairs: Cow<'static, [u8]>, wholes: Wholes) -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self::numbered(number, grammar, pairs, wholes)
    }

    fn numbered(number: u64, grammar: Grammar, pairs: Cow<'static, [u8]>, wholes: Wholes) -> Self {
        Self {
            grammar,
            pairs,
            wholes,
            number,
            processor: Processor::at_hand(),
            memo: None,
        }
    }

    /// Longer texts are looked up in `memo`, and remembered there.
    pub(super) fn remember_in(&mut self, memo: Arc<Memo>) {
        let number = memo.number();
        self.memo = Some((memo, number));
    }

    /// Counts as on a processor of which nothing is known.
    #[cfg(test)]
    pub(super) const fn on_any_processor(&mut self) {
        self.processor = Processor::any();
    }

    /// The tokens of a text.
    pub(super) fn count(&self, text: &str) -> Result<u64, Uncountable> {
        match &self.memo {
            Some((memo, number)) => memo.count(*number, text, || self.count_anew(text)),
            None => self.count_anew(text),
        }
    }

    fn count_anew(&self, text: &str) -> Result<u64, Uncountable> {
        work::note(text.len());
        let mut tokens = 0;
        self.each(text, |batch| tokens += batch.sum())?;
        Ok(tokens)
    }

    /// The tokens of all but the last pieces of a text, and the bytes that they take.
    pub(super) fn count_all_but<const KEPT: usize>(
        &self,
        text: &str,
    ) -> Result<(usize, u64), Uncountable> {
        let (mut bytes, mut tokens, mut kept) = (0, 0, [(0, 0); KEPT]);
        self.each(text, |batch| {
            for newest_of_all in batch.each() {
                kept.rotate_left(1);
                if let Some(newest) = kept.last_mut() {
                    let (length, count) = std::mem::replace(newest, newest_of_all);
                    bytes += length;
                    tokens += count;
                }
            }
        })?;
        Ok((bytes, tokens))
    }

    /// Tells of the pieces, some at a time.
    fn each(&self, text: &str, tell: impl FnMut(&Batch)) -> Result<(), Uncountable> {
        let damaged = || Uncountable::Tokenizer("its table of merges is damaged".to_owned());
        let pairs = Pairs::read(&self.pairs).ok_or_else(damaged)?;
        desk::with(|desk| {
            let vocabulary = desk.vocabulary(self.number);
            self.processor.run(Counting {
                of: self,
                pairs,
                vocabulary,
                text,
                desk,
                tell,
            });
        });
        Ok(())
    }

    fn is_whole(&self, piece: &[u8]) -> bool {
        !self.wholes.is_empty() && self.wholes.contains(piece)
    }
}

/// A text that is counted.
struct Counting<'a, T> {
    of: &'a Pieced,
    pairs: Pairs<'a>,
    /// Its number at the desk.
    vocabulary: u8,
    text: &'a str,
    desk: &'a mut Desk,
    tell: T,
}

impl<T: FnMut(&Batch)> Work for Counting<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Level>(self, level: L) {
        let Self {
            of,
            pairs,
            vocabulary,
            text,
            desk,
            mut tell,
        } = self;
        let Desk { known, batch, .. } = desk;
        let bytes = text.as_bytes();
        let mut pieces = Pieces::new(of.grammar, text);
        while let Some(short) = known.short() {
            // When the last of them is found, what is known of the first has come from memory.
            if !batch.fill(level, &mut pieces, short, vocabulary) {
                break;
            }
            batch.look_up(short);
            let missed = Missed {
                of,
                pairs: &pairs,
                vocabulary,
            };
            batch.complete(|from, to, key| {
                let piece = bytes.get(from..to).unwrap_or_default();
                missed.count(level, known, piece, key)
            });
            tell(batch);
        }
    }
}

/// What it takes to count a piece of which nothing is known at first sight.
struct Missed<'a> {
    of: &'a Pieced,
    pairs: &'a Pairs<'a>,
    vocabulary: u8,
}

impl Missed<'_> {
    #[inline(always)]
    fn count<L: Level>(&self, level: L, known: &mut Known, piece: &[u8], key: Key) -> u64 {
        if !key.is_long() {
            return known.second(key, || {
                if self.of.is_whole(piece) {
                    1
                } else {
                    level.merged(self.pairs, piece)
                }
            });
        }
        self.count_long(level, known, piece)
    }

    #[inline(never)]
    fn count_long<L: Level>(&self, level: L, known: &mut Known, piece: &[u8]) -> u64 {
        if let Some(tokens) = known.long(piece, self.vocabulary) {
            return tokens;
        }
        let tokens = if self.of.is_whole(piece) {
            1
        } else {
            bpe::count_parts(self.pairs, piece, |part| {
                let from = part.start;
                let part = piece.get(part).unwrap_or_default();
                let key = Key::of(&sixteen(piece, from), part.len(), self.vocabulary);
                // What is remembered is of pieces, which may be whole tokens where parts are not.
                if key.is_long() || !self.of.wholes.is_empty() {
                    return level.merged(self.pairs, part);
                }
                known.second(key, || level.merged(self.pairs, part))
            })
        };
        known.keep_long(piece, self.vocabulary, tokens);
        tokens
    }
}
