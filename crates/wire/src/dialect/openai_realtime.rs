//! OpenAI's Realtime API: a WebSocket on which a model answers again and again, and reports what each answer used.

use super::description::{Dialect, Name};

/// One answer of a model.
pub(super) const RESPONSE: Dialect = Dialect {
    name: "realtime",
    reports: &[
        (Name::Usage, "usage"),
        (Name::PromptTokens, "input_tokens"),
        (Name::CompletionTokens, "output_tokens"),
        (Name::TotalTokens, "total_tokens"),
        (Name::PromptDetails, "input_token_details"),
        (Name::CachedTokens, "cached_tokens"),
        (Name::CachedDetails, "cached_tokens_details"),
        (Name::AudioTokens, "audio_tokens"),
        (Name::CompletionDetails, "output_token_details"),
        (Name::EventUsage, "response.usage"),
        (Name::EventError, "error"),
    ],
    generates: true,
    is_metered: true,
    reports_usage: true,
    ..Dialect::UNREAD
};

/// The connection on which answers come.
pub(super) const SOCKET: Dialect = Dialect {
    name: "realtime_socket",
    ..Dialect::UNREAD
};
