//! Harmony, the format of gpt-oss: a conversation becomes special tokens and plain text.
//!
//! As oss-harmony 0.0.10 renders it (openai-harmony 0.0.8 gives the same counts), from the messages that vLLM 0.32.0 makes of a request
//! (`entrypoints/openai/parser/harmony_utils.py`).
//! Invariant: text from outside is always plain: a `<|start|>` that a user spells is seven ordinary tokens.
//! Invariant: a text that is rendered has a bounded length, whatever the body says (`section`).
//! Not here: tool schemas (`typescript`), the order of turns and what is dropped (`turns`).

mod section;
mod turns;
mod typescript;

pub(crate) use turns::render;

use std::borrow::Cow;

use crate::uncountable::Uncountable;
use crate::vocabulary::Vocabulary;
use crate::words::{Word, Words};

/// A rendered conversation.
#[derive(Default)]
pub(crate) struct Script<'t> {
    pieces: Vec<Piece<'t>>,
}

/// Each text is encoded on its own.
enum Piece<'t> {
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests show a script"))]
    Special(&'static str),
    Word(Word),
    Text(Cow<'t, str>),
}

impl<'t> Script<'t> {
    fn special(&mut self, name: &'static str) {
        self.pieces.push(Piece::Special(name));
    }

    fn word(&mut self, word: Word) {
        self.pieces.push(Piece::Word(word));
    }

    fn text(&mut self, text: Cow<'t, str>) {
        self.pieces.push(Piece::Text(text));
    }

    /// The number of tokens.
    pub(crate) fn count(&self, vocabulary: &Vocabulary, words: &Words) -> Result<u64, Uncountable> {
        self.pieces.iter().try_fold(0, |sum, piece| match piece {
            Piece::Special(_) => Ok(sum + 1),
            Piece::Word(word) => Ok(sum + words.count(*word, vocabulary)?),
            Piece::Text(text) => Ok(sum + vocabulary.count(text)?),
        })
    }

    /// The text with its special tokens spelled out.
    #[cfg(test)]
    pub(crate) fn shown(&self) -> String {
        let shown = self.pieces.iter().map(|piece| match piece {
            Piece::Special(name) => *name,
            Piece::Word(word) => word.text(),
            Piece::Text(text) => text,
        });
        shown.collect()
    }
}
