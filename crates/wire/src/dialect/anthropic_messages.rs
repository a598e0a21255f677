//! Anthropic's Messages API. Its `input_tokens` leaves out what the cache served and stored.

use super::description::{Dialect, ErrorFormat, Name};

pub(super) const DIALECT: Dialect = Dialect {
    name: "messages",
    provider: "anthropic",
    paths: &["messages"],
    members: &[
        (Name::Model, "model"),
        (Name::Stream, "stream"),
        (Name::MaxTokens, "max_tokens"),
        (Name::Container, "container"),
        (Name::Counted, "messages"),
        (Name::Counted, "system"),
        (Name::Counted, "tools"),
        (Name::User, "metadata.user_id"),
    ],
    reports: &[
        (Name::Usage, "usage"),
        (Name::PromptTokens, "input_tokens"),
        (Name::CompletionTokens, "output_tokens"),
        (Name::CacheRead, "cache_read_input_tokens"),
        (Name::CacheStored, "cache_creation_input_tokens"),
        (Name::CacheWrites, "cache_creation"),
        (Name::Iterations, "iterations"),
        (Name::CacheWrite5m, "ephemeral_5m_input_tokens"),
        (Name::CacheWrite1h, "ephemeral_1h_input_tokens"),
        // `message_start` and `message_delta`.
        (Name::BeginningUsage, "message.usage"),
        (Name::EventUsage, "usage"),
        (Name::EventError, "error"),
    ],
    generates: true,
    errors: ErrorFormat::Anthropic,
    ..Dialect::JSON
};

/// The type of an error with this status (<https://docs.anthropic.com/en/api/errors>).
pub(super) fn error_type(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 => "overloaded_error",
        504 => "timeout_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}
