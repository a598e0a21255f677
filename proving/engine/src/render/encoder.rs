//! Where a prompt's token ids are gathered, with a memory of texts that were encoded before.
//!
//! The prompts of one session repeat what was said before, so what costs is encoding the same text again and again.
//! Invariant: with a memory or without, the ids are the same: a text is looked up by itself, not by a hash of it.
//! Not here: what is encoded, and in which pieces (the formats).

use std::collections::HashMap;

use crate::tokenizer::{Piece, TokenId, Tokenizer};

/// Bytes of text that a [`Memo`] holds at most; past it, it starts anew.
const MOST_TEXT: usize = 8 << 20;

/// Texts that were encoded, with their ids.
#[derive(Debug, Default)]
pub struct Memo {
    known: HashMap<Box<str>, Box<[TokenId]>>,
    text: usize,
}

impl Memo {
    fn encode(&mut self, tokenizer: &Tokenizer, text: &str, ids: &mut Vec<TokenId>) {
        if let Some(known) = self.known.get(text) {
            ids.extend_from_slice(known);
            return;
        }
        let fresh = tokenizer.encode(text);
        ids.extend_from_slice(&fresh);
        if self.text + text.len() > MOST_TEXT {
            self.known.clear();
            self.text = 0;
        }
        if text.len() <= MOST_TEXT {
            self.text += text.len();
            self.known.insert(text.into(), fresh.into());
        }
    }
}

/// Gathers the ids of a prompt.
pub(crate) struct Encoder<'a> {
    tokenizer: &'a Tokenizer,
    memo: Option<&'a mut Memo>,
    ids: Vec<TokenId>,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(tokenizer: &'a Tokenizer) -> Self {
        Self {
            tokenizer,
            memo: None,
            ids: Vec::new(),
        }
    }

    pub(crate) fn with_memo(tokenizer: &'a Tokenizer, memo: &'a mut Memo) -> Self {
        Self {
            memo: Some(memo),
            ..Self::new(tokenizer)
        }
    }

    pub(crate) fn into_ids(self) -> Vec<TokenId> {
        self.ids
    }

    /// A mark that the vocabulary has; nothing where it has none of that name.
    pub(crate) fn mark(&mut self, name: &str) {
        self.ids.extend(self.tokenizer.mark(name));
    }

    /// A mark, or its text where the vocabulary has none of that name.
    pub(crate) fn mark_or_text(&mut self, name: &str) {
        match self.tokenizer.mark(name) {
            Some(id) => self.ids.push(id),
            None => self.text(name),
        }
    }

    /// Text, in which nothing is a mark.
    pub(crate) fn text(&mut self, text: &str) {
        match &mut self.memo {
            Some(memo) => memo.encode(self.tokenizer, text, &mut self.ids),
            None => self.ids.extend(self.tokenizer.encode(text)),
        }
    }

    /// Text that a template wrote, in which marks are marks.
    pub(crate) fn marked(&mut self, text: &str) {
        let tokenizer = self.tokenizer;
        tokenizer.cut_at_marks(text, |piece| match piece {
            Piece::Text(text) => self.text(text),
            Piece::Mark(id) => self.ids.push(id),
        });
    }
}
