//! Words that stand in every conversation, counted once for each vocabulary.
//!
//! Not here: what they frame (`prompts`, `overhead`).

use prompts::{Uncountable, Word};

use crate::vocabulary::Vocabulary;

const ALL: [Word; 10] = [
    Word::System,
    Word::Developer,
    Word::User,
    Word::Assistant,
    Word::Tool,
    Word::Analysis,
    Word::Commentary,
    Word::Final,
    Word::CommentaryToAssistant,
    Word::CommentaryJson,
];

/// The tokens of each word in one vocabulary; none where the vocabulary could not count it.
pub(crate) struct Words([Option<u64>; ALL.len()]);

impl Words {
    pub(crate) fn of(vocabulary: &Vocabulary) -> Self {
        Self(ALL.map(|word| vocabulary.count(word.text()).ok()))
    }

    /// The tokens of a word in that vocabulary.
    pub(crate) fn count(&self, word: Word, vocabulary: &Vocabulary) -> Result<u64, Uncountable> {
        match self.0.get(word as usize).copied().flatten() {
            Some(tokens) => Ok(tokens),
            None => vocabulary.count(word.text()),
        }
    }
}
