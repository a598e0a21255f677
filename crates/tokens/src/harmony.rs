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

use crate::uncountable::Uncountable;
use crate::vocabulary::Vocabulary;

/// A rendered conversation.
#[derive(Default)]
pub(crate) struct Script {
    pieces: Vec<Piece>,
}

/// Each text is encoded on its own.
enum Piece {
    #[cfg_attr(not(test), expect(dead_code, reason = "only tests show a script"))]
    Special(&'static str),
    Text(String),
}

impl Script {
    fn special(&mut self, name: &'static str) {
        self.pieces.push(Piece::Special(name));
    }

    fn text(&mut self, text: impl Into<String>) {
        self.pieces.push(Piece::Text(text.into()));
    }

    /// The number of tokens.
    pub(crate) fn count(&self, vocabulary: &Vocabulary) -> Result<u64, Uncountable> {
        self.pieces.iter().try_fold(0, |sum, piece| match piece {
            Piece::Special(_) => Ok(sum + 1),
            Piece::Text(text) => Ok(sum + vocabulary.count(text)?),
        })
    }

    /// The text with its special tokens spelled out.
    #[cfg(test)]
    pub(crate) fn shown(&self) -> String {
        let shown = self.pieces.iter().map(|piece| match piece {
            Piece::Special(name) => *name,
            Piece::Text(text) => text.as_str(),
        });
        shown.collect()
    }
}
