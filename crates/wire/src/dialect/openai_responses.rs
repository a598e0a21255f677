//! OpenAI's Responses API.

use super::description::{Dialect, Name};

pub(super) const DIALECT: Dialect = Dialect {
    name: "responses",
    paths: &["responses"],
    members: &[
        (Name::Model, "model"),
        (Name::Stream, "stream"),
        (Name::MaxOutputTokens, "max_output_tokens"),
        (Name::Background, "background"),
        (Name::PreviousResponse, "previous_response_id"),
        (Name::Conversation, "conversation"),
        (Name::Counted, "input"),
        (Name::Counted, "instructions"),
        (Name::Counted, "tools"),
        (Name::User, "user"),
        (Name::User, "safety_identifier"),
    ],
    reports: &[
        (Name::Usage, "usage"),
        (Name::PromptTokens, "input_tokens"),
        (Name::CompletionTokens, "output_tokens"),
        (Name::TotalTokens, "total_tokens"),
        (Name::PromptDetails, "input_tokens_details"),
        (Name::CachedTokens, "cached_tokens"),
        (Name::CompletionDetails, "output_tokens_details"),
        (Name::ReasoningTokens, "reasoning_tokens"),
        (Name::EventUsage, "response.usage"),
        (Name::EventError, "error"),
        (Name::EventError, "response.error"),
    ],
    generates: true,
    ..Dialect::JSON
};
