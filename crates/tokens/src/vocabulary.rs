//! A model's vocabulary: text in, number of tokens out.
//!
//! Invariant: the time that a count takes grows with the text, whatever it says: no vocabulary here compares
//! all pairs of a long piece.
//! Not here: what text a conversation becomes (`harmony`, `template`), text that arrives in pieces (`output`).

mod special;

use tokenizers::Tokenizer;

use crate::uncountable::{Uncountable, UnusableModel};

/// A vocabulary, ready to count.
pub(crate) enum Vocabulary {
    /// OpenAI's since GPT-4o; gpt-oss has it with more special tokens.
    O200k,
    /// OpenAI's before that, and of its embedding models.
    Cl100k,
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
        Ok(Self::Own(Box::new(tokenizer)))
    }

    /// Loads a built-in vocabulary now, which takes tens of milliseconds, and not at the first count.
    pub(crate) fn loaded(self) -> Self {
        match self {
            Self::O200k => _ = bpe_openai::o200k_base(),
            Self::Cl100k => _ = bpe_openai::cl100k_base(),
            Self::Own(_) => {}
        }
        self
    }

    /// Counts plain text: what looks like a special token is text, except in a `tokenizer.json`, where the
    /// tokenizer itself reads it as one and so does the engine.
    pub(crate) fn count(&self, text: &str) -> Result<u64, Uncountable> {
        match self {
            Self::O200k => Ok(bpe_openai::o200k_base().count(text) as u64),
            Self::Cl100k => Ok(bpe_openai::cl100k_base().count(text) as u64),
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
            Self::Own(tokenizer) => encoded(tokenizer, text, adds_special),
            _ if is_harmony => special::parts(text).try_fold(0, |sum, part| match part {
                special::Part::Special => Ok(sum + 1),
                special::Part::Plain(plain) => Ok(sum + self.count(plain)?),
            }),
            _ => self.count(text),
        }
    }

    /// Counts all but the last pieces of a text: the bytes they take and their tokens. None for a vocabulary that
    /// does not tell its pieces.
    ///
    /// A piece is what is encoded apart from the rest. Pieces are counted one by one, since a prefix alone could be
    /// cut into others: a run of space is one piece at the end of a text and two before a digit.
    pub(crate) fn count_all_but<const KEPT: usize>(&self, text: &str) -> Option<(usize, u64)> {
        let tokenizer = match self {
            Self::O200k => bpe_openai::o200k_base(),
            Self::Cl100k => bpe_openai::cl100k_base(),
            Self::Own(_) => return None,
        };
        let (mut bytes, mut tokens, mut kept) = (0, 0, [""; KEPT]);
        for piece in tokenizer.split(text) {
            kept.rotate_left(1);
            if let Some(newest) = kept.last_mut() {
                let settled = std::mem::replace(newest, piece);
                bytes += settled.len();
                tokens += tokenizer.bpe.count(settled.as_bytes()) as u64;
            }
        }
        Some((bytes, tokens))
    }
}

fn encoded(tokenizer: &Tokenizer, text: &str, add_special: bool) -> Result<u64, Uncountable> {
    tokenizer
        .encode_fast(text, add_special)
        .map(|encoding| encoding.len() as u64)
        .map_err(|error| Uncountable::Tokenizer(error.to_string()))
}
