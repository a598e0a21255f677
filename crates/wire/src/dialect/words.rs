//! Operations in the words of those who make them.
//!
//! Not here: their names in metrics and the access log (`Dialect::name`).

use super::Operation;

impl Operation {
    /// Calls of this kind, as messages to people speak of them.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Chat => "chat completions",
            Self::Completions => "completions",
            Self::Responses => "responses",
            Self::Messages => "messages",
            Self::Embeddings => "embeddings",
            Self::Models | Self::GeminiModels => "lists of models",
            Self::CountTokens | Self::InputTokens | Self::CountContent => "counts of tokens",
            Self::Moderations => "moderations",
            Self::Rerank => "reranking",
            Self::Speech => "speech",
            Self::Transcriptions => "transcriptions",
            Self::Images => "images",
            Self::ImageEdits => "edits of images",
            Self::GenerateContent => "generateContent",
            Self::EmbedContent => "embedContent",
            Self::Converse => "Converse",
            Self::CohereChat => "Cohere's chat",
            Self::CohereEmbed => "Cohere's embeddings",
            Self::Unread => "calls that are not read",
            Self::Http => "plain HTTP",
            Self::ResponsesSocket => "responses over a WebSocket",
            Self::RealtimeSocket => "sessions of the Realtime API",
            Self::Realtime => "answers of the Realtime API",
            Self::KeptResponse => "responses that the gate keeps",
            Self::Files => "files",
            Self::Batches => "batches",
            Self::BatchUsage => "usage of batches",
            Self::Mcp => "messages to servers of tools",
        }
    }
}
