//! Calls that count a prompt and run nothing: of the Messages API, and of the Responses API. They cost nothing.

use super::description::{Dialect, ErrorFormat, Name};

/// Anthropic's.
pub(super) const MESSAGES: Dialect = Dialect {
    name: "count_tokens",
    provider: "anthropic",
    paths: &["messages/count_tokens"],
    members: &[(Name::Model, "model"), (Name::Container, "container")],
    is_metered: false,
    reports_usage: false,
    errors: ErrorFormat::Anthropic,
    ..Dialect::JSON
};

/// OpenAI's.
pub(super) const RESPONSES: Dialect = Dialect {
    name: "input_tokens",
    paths: &["responses/input_tokens"],
    members: &[
        (Name::Model, "model"),
        (Name::PreviousResponse, "previous_response_id"),
        (Name::Conversation, "conversation"),
    ],
    is_metered: false,
    reports_usage: false,
    ..Dialect::JSON
};
