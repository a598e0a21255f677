//! Words that stand in every conversation.
//!
//! Not here: their tokens in some vocabulary.

/// A role, or a channel of Harmony's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// The system.
    System,
    /// The developer.
    Developer,
    /// The user.
    User,
    /// The assistant.
    Assistant,
    /// A tool.
    Tool,
    /// The channel of reasoning.
    Analysis,
    /// The channel of what is said beside calls.
    Commentary,
    /// The channel of answers.
    Final,
    /// The channel of a tool's answer, which names its recipient there.
    CommentaryToAssistant,
    /// The channel of a call.
    CommentaryJson,
}

impl Word {
    /// As it is written.
    #[must_use]
    pub const fn text(self) -> &'static str {
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
