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

pub use turns::{render, render_answer};

use std::borrow::Cow;

use crate::Word;

/// A rendered conversation.
#[derive(Debug, Default)]
pub struct Script<'t> {
    pieces: Vec<Piece<'t>>,
}

/// Each is encoded on its own.
#[derive(Debug)]
pub enum Piece<'t> {
    /// A special token.
    Special(&'static str),
    /// A word that stands in every conversation.
    Word(Word),
    /// Text, in which nothing is a special token.
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

    /// All of it, in order.
    #[must_use]
    pub fn pieces(&self) -> &[Piece<'t>] {
        &self.pieces
    }

    /// The text with its special tokens spelled out.
    #[must_use]
    pub fn shown(&self) -> String {
        let shown = self.pieces.iter().map(|piece| match piece {
            Piece::Special(name) => *name,
            Piece::Word(word) => word.text(),
            Piece::Text(text) => text,
        });
        shown.collect()
    }
}
