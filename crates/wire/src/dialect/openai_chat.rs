//! OpenAI's chat completions, as every engine has them.

use super::description::{Dialect, Name};

pub(super) const DIALECT: Dialect = Dialect {
    name: "chat",
    paths: &["chat/completions"],
    members: &[
        (Name::Model, "model"),
        (Name::Stream, "stream"),
        (Name::StreamOptions, "stream_options"),
        (Name::IncludeUsage, "stream_options.include_usage"),
        (Name::MaxTokens, "max_tokens"),
        (Name::MaxCompletionTokens, "max_completion_tokens"),
        (Name::N, "n"),
        (Name::NPredict, "n_predict"),
        (Name::MinTokens, "min_tokens"),
        (Name::BeamWidth, "beam_width"),
        (Name::Deferred, "deferred"),
        (Name::Counted, "messages"),
        (Name::Counted, "tools"),
        (Name::Counted, "functions"),
        (Name::User, "user"),
        (Name::User, "safety_identifier"),
    ],
    reports: REPORTS,
    generates: true,
    ..Dialect::JSON
};

pub(super) const REPORTS: &[(Name, &str)] = &[
    (Name::Usage, "usage"),
    (Name::PromptTokens, "prompt_tokens"),
    (Name::CompletionTokens, "completion_tokens"),
    (Name::TotalTokens, "total_tokens"),
    (Name::PromptDetails, "prompt_tokens_details"),
    (Name::CachedTokens, "cached_tokens"),
    // DeepSeek's, and Moonshot's.
    (Name::CachedBeside, "prompt_cache_hit_tokens"),
    (Name::CachedBeside, "cached_tokens"),
    // OpenRouter's.
    (Name::WrittenTokens, "cache_write_tokens"),
    (Name::CompletionDetails, "completion_tokens_details"),
    (Name::ReasoningTokens, "reasoning_tokens"),
    (Name::AudioTokens, "audio_tokens"),
    (Name::EventChoices, "choices"),
    (Name::EventUsage, "usage"),
    (Name::EventError, "error"),
    (Name::EndMark, "[DONE]"),
];
