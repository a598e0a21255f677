//! Google's `generateContent` and `streamGenerateContent`, which name their model in the path
//! (<https://ai.google.dev/api/generate-content>): no path of the gate's is one, and what a backend is asked for may be.
//! What the model thought is beside `candidatesTokenCount`, and what its tools gave it beside `promptTokenCount`.

use super::description::{Dialect, Name};

pub(super) const DIALECT: Dialect = Dialect {
    name: "generate_content",
    provider: "gcp.gemini",
    members: &[],
    reports: &[
        (Name::Usage, "usageMetadata"),
        (Name::PromptTokens, "promptTokenCount"),
        (Name::PromptBeside, "toolUsePromptTokenCount"),
        (Name::CompletionTokens, "candidatesTokenCount"),
        (Name::ReasoningBeside, "thoughtsTokenCount"),
        (Name::TotalTokens, "totalTokenCount"),
        (Name::CachedBeside, "cachedContentTokenCount"),
        (Name::PromptModalities, "promptTokensDetails"),
        (Name::CompletionModalities, "candidatesTokensDetails"),
        (Name::EventUsage, "usageMetadata"),
        (Name::EventError, "error"),
    ],
    generates: true,
    ..Dialect::JSON
};
