//! Amazon Bedrock's `Converse` and `ConverseStream`, which name their model in the path
//! (<https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html>): no path of the gate's is one, and what a
//! backend is asked for may be. Its `inputTokens` leaves out what the cache served and stored.

use super::description::{Dialect, Name};

/// The event of a stream that reports its usage.
pub(crate) const USAGE_EVENT: &str = "metadata";

pub(super) const DIALECT: Dialect = Dialect {
    name: "converse",
    provider: "aws.bedrock",
    members: &[],
    reports: &[
        (Name::Usage, "usage"),
        (Name::PromptTokens, "inputTokens"),
        (Name::CompletionTokens, "outputTokens"),
        (Name::TotalTokens, "totalTokens"),
        (Name::CacheRead, "cacheReadInputTokens"),
        (Name::CacheStored, "cacheWriteInputTokens"),
        (Name::CacheWriteList, "cacheDetails"),
    ],
    generates: true,
    ..Dialect::JSON
};
