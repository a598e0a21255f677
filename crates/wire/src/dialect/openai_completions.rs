//! OpenAI's older completions, and vLLM's.

use super::description::{Dialect, Name};
use super::openai_chat;

pub(super) const DIALECT: Dialect = Dialect {
    name: "text_completion",
    paths: &["completions"],
    members: &[
        (Name::Model, "model"),
        (Name::Stream, "stream"),
        (Name::StreamOptions, "stream_options"),
        (Name::IncludeUsage, "stream_options.include_usage"),
        (Name::MaxTokens, "max_tokens"),
        (Name::N, "n"),
        (Name::BestOf, "best_of"),
        (Name::Prompt, "prompt"),
        (Name::NPredict, "n_predict"),
        (Name::MinTokens, "min_tokens"),
        (Name::BeamWidth, "beam_width"),
        (Name::User, "user"),
    ],
    reports: openai_chat::REPORTS,
    generates: true,
    ..Dialect::JSON
};
