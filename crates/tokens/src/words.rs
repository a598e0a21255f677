//! Words that stand in every conversation, counted once for each vocabulary.
//!
//! Not here: what they frame (`harmony`, `overhead`, `template`).

use crate::uncountable::Uncountable;
use crate::vocabulary::Vocabulary;

/// A role, or a channel of Harmony's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    Analysis,
    Commentary,
    Final,
    /// The channel of a tool's answer, which names its recipient there.
    CommentaryToAssistant,
    /// The channel of a call.
    CommentaryJson,
}

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

impl Word {
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Analysis => "analysis",
            Self::Commentary => "commentary",
            Self::Final => "final",
            Self::CommentaryToAssistant => "commentary to=assistant",
            Self::CommentaryJson => "commentary json",
        }
    }
}

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
