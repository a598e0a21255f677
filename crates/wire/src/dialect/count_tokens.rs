//! Calls that count a prompt and run nothing: of the Messages API and of the Responses API. They cost nothing.

use super::description::{Dialect, Name};

pub(super) const DIALECT: Dialect = Dialect {
    name: "count_tokens",
    paths: &["messages/count_tokens", "responses/input_tokens"],
    members: &[
        (Name::Model, "model"),
        (Name::PreviousResponse, "previous_response_id"),
        (Name::Conversation, "conversation"),
        (Name::Container, "container"),
    ],
    is_metered: false,
    reports_usage: false,
    ..Dialect::JSON
};
