//! A model's vocabulary: text in, number of tokens out.
//!
//! Invariant: the time that a count takes grows with the text, whatever it says: no vocabulary here compares
//! all pairs of a long piece.
//! Not here: what text a conversation becomes (`prompts`), text that arrives in pieces (`output`).

mod added;
mod bpe;
mod classes;
mod desk;
mod fetch;
mod huggingface;
mod known;
mod pairs;
mod pieced;
mod pieces;
mod processor;
mod special;
mod window;

use std::sync::Arc;

use tokenizers::Tokenizer;

use crate::memo::Memo;
use huggingface::HuggingFace;
use pieced::Pieced;
use prompts::{Uncountable, UnusableModel};

/// A vocabulary, ready to count.
pub(crate) enum Vocabulary {
    /// A built-in one.
    Pieced(Pieced),
    /// That of a `tokenizer.json` of a known kind.
    HuggingFace(Box<HuggingFace>),
    /// Any other, from its `tokenizer.json`.
    Own(Box<Tokenizer>),
}

impl Vocabulary {
    pub(crate) fn own(tokenizer_json: &[u8]) -> Result<Self, UnusableModel> {
        let mut tokenizer = Tokenizer::from_bytes(tokenizer_json)
            .map_err(|error| UnusableModel::Tokenizer(error.to_string()))?;
        // Files often carry the padding and truncation of somebody's training run: engines switch both off.
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(None)
            .map_err(|error| UnusableModel::Tokenizer(error.to_string()))?;
        Ok(match HuggingFace::read(tokenizer_json, &tokenizer) {
            Some(known) => Self::HuggingFace(Box::new(known)),
            None => Self::Own(Box::new(tokenizer)),
        })
    }

    /// OpenAI's since GPT-4o; gpt-oss has it with more special tokens.
    pub(crate) fn o200k() -> Self {
        Self::Pieced(Pieced::o200k())
    }

    /// OpenAI's before that, and of its embedding models.
    pub(crate) fn cl100k() -> Self {
        Self::Pieced(Pieced::cl100k())
    }

    /// Longer texts are looked up in `memo`, and remembered there; not for a vocabulary of which nothing is known.
    pub(crate) fn remember_in(&mut self, memo: Arc<Memo>) {
        match self {
            Self::Pieced(pieced) => pieced.remember_in(memo),
            Self::HuggingFace(known) => known.remember_in(memo),
            Self::Own(_) => {}
        }
    }

    /// Counts as on a processor of which nothing is known.
    #[cfg(test)]
    fn on_any_processor(&mut self) {
        match self {
            Self::Pieced(pieced) => pieced.on_any_processor(),
            Self::HuggingFace(known) => known.on_any_processor(),
            Self::Own(_) => {}
        }
    }

    /// Counts plain text: what looks like a special token is text, except in a `tokenizer.json`, where the
    /// tokenizer itself reads it as one and so does the engine.
    pub(crate) fn count(&self, text: &str) -> Result<u64, Uncountable> {
        match self {
            Self::Pieced(pieced) => pieced.count(text),
            Self::HuggingFace(known) => known.count(text, false),
            Self::Own(tokenizer) => encoded(tokenizer, text, false),
        }
    }

    /// Counts a prompt that is given as text and not as a conversation: the engine's tokenizer reads the special
    /// tokens that the text spells out and, unless told otherwise, adds its own.
    pub(crate) fn count_prompt(
        &self,
        text: &str,
        is_harmony: bool,
        adds_special: bool,
    ) -> Result<u64, Uncountable> {
        match self {
            Self::HuggingFace(known) => known.count(text, adds_special),
            Self::Own(tokenizer) => encoded(tokenizer, text, adds_special),
            Self::Pieced(_) if is_harmony => {
                special::parts(text).try_fold(0, |sum, part| match part {
                    special::Part::Special => Ok(sum + 1),
                    special::Part::Plain(plain) => Ok(sum + self.count(plain)?),
                })
            }
            Self::Pieced(pieced) => pieced.count(text),
        }
    }

    /// Counts all but the last pieces of a text: the bytes they take and their tokens. None for a vocabulary that
    /// does not tell its pieces.
    ///
    /// A piece is what is encoded apart from the rest. Pieces are counted one by one, since a prefix alone could be
    /// cut into others: a run of space is one piece at the end of a text and two before a digit.
    pub(crate) fn count_all_but<const KEPT: usize>(
        &self,
        text: &str,
    ) -> Option<Result<(usize, u64), Uncountable>> {
        match self {
            Self::Pieced(pieced) => Some(pieced.count_all_but::<KEPT>(text)),
            Self::HuggingFace(_) | Self::Own(_) => None,
        }
    }
}

fn encoded(tokenizer: &Tokenizer, text: &str, add_special: bool) -> Result<u64, Uncountable> {
    tokenizer
        .encode_fast(text, add_special)
        .map(|encoding| encoding.len() as u64)
        .map_err(|error| Uncountable::Tokenizer(error.to_string()))
}

#[cfg(test)]
mod tests;
