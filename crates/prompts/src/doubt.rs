//! Why what was rendered or counted may be another than the engine's.
//!
//! Not here: refusals (`uncountable`).

/// Why a count is not exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Doubt {
    /// The provider does not publish its template: what it documents per message and tool was added.
    #[error("the provider's chat template is not public; its documented overhead was added")]
    TemplateUnknown,
    /// The text was encoded again: a model may sample other tokens for the same text, and framing tokens
    /// that the engine removed are counted as the format has them.
    #[error("the output was encoded again from its text")]
    EncodedAgain,
    /// A piece longer than the bound was cut where the tokenizer would not have cut it.
    #[error("a piece of text was too long to be held whole")]
    LongPiece,
    /// A number that is read or written in another way than Python does: `-0`, whole numbers beyond 64 bits, and
    /// those with an exponent where a template joins them to text.
    #[error("a number in the body is not written as the engine writes it")]
    Number,
    /// The arguments of a call are no JSON here, and may be for Python: `NaN`, `Infinity`, numbers beyond all floats, half
    /// a character, or levels beyond the parser's.
    #[error("the arguments of a call may be read in another way than the engine reads them")]
    Arguments,
    /// A call of Anthropic's dialect has no id, and the engine makes one up.
    #[error("the engine makes up an id that the body does not have")]
    Id,
    /// The chat template has something in it that is computed in another way than Jinja does.
    #[error(
        "the chat template uses something that is computed in another way than the engine does"
    )]
    Language,
    /// The settings beside the tokenizer name a class that may build another one than its file says.
    #[error("the tokenizer's settings may make another one of it than its file says")]
    TokenizerSettings,
    /// Nothing of this shape was compared with the engine that serves the model.
    #[error("nobody compared such a prompt with the engine yet")]
    NotCompared,
    /// For prompts of this shape the engine's count is another.
    #[error("the engine counts such prompts otherwise")]
    Differs,
    /// Pictures were counted by the rule that is documented for the model.
    #[error("pictures were counted by the rule that is documented for the model")]
    Media,
    /// The prompt is cut to the model's length, which is not known.
    #[error("the engine cuts the prompt to a length that is not known")]
    Truncated,
}

impl Doubt {
    /// The doubt as one word, for labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TemplateUnknown => "template_unknown",
            Self::EncodedAgain => "encoded_again",
            Self::LongPiece => "long_piece",
            Self::Number => "number",
            Self::Arguments => "arguments",
            Self::Id => "id",
            Self::Language => "language",
            Self::TokenizerSettings => "tokenizer_settings",
            Self::NotCompared => "not_compared",
            Self::Differs => "differs",
            Self::Media => "media",
            Self::Truncated => "truncated",
        }
    }
}
