//! Cohere's calls of its version 2 (<https://docs.cohere.com/reference/chat>, <https://docs.cohere.com/reference/embed>,
//! <https://docs.cohere.com/reference/rerank>), which a backend may be asked for in place of what the client says. What they used stands
//! in objects of its own: `tokens`, which were read and made, and `billed_units`, which leave out what Cohere itself puts before a prompt.

use super::description::{Dialect, Name};

/// In both of those objects.
pub(crate) const INPUT_TOKENS: &str = "input_tokens";
/// The same.
pub(crate) const OUTPUT_TOKENS: &str = "output_tokens";

pub(super) const CHAT: Dialect = Dialect {
    name: "cohere_chat",
    reports: &[
        (Name::Usage, "usage"),
        (Name::Units, "tokens"),
        (Name::Units, "billed_units"),
        (Name::PromptTokens, INPUT_TOKENS),
        (Name::CompletionTokens, OUTPUT_TOKENS),
        (Name::CachedBeside, "cached_tokens"),
        (Name::EventUsage, "delta.usage"),
        (Name::EventError, "delta.error"),
    ],
    generates: true,
    ..ASKED
};

pub(super) const EMBED: Dialect = Dialect {
    name: "cohere_embed",
    reports: IN_META,
    ..ASKED
};

/// What calls report that generate nothing.
pub(super) const IN_META: &[(Name, &str)] = &[
    (Name::Usage, "usage"),
    (Name::Usage, "meta"),
    (Name::SearchUnits, "search_units"),
];

const ASKED: Dialect = Dialect {
    provider: "cohere",
    members: &[],
    ..Dialect::JSON
};
