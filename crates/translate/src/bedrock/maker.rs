//! Who made a model, as its id says: what it takes beyond what all models do
//! (<https://docs.aws.amazon.com/bedrock/latest/userguide/conversation-inference-call.html>).

use crate::json::Json;
use crate::raw::Raw;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Maker {
    Anthropic,
    /// Amazon, of its Nova models.
    Nova,
    Other,
}

/// What stands in the ARNs that name no model, but something of the account's that stands for one.
const UNNAMED: [&str; 3] = [
    ":application-inference-profile/",
    ":provisioned-model/",
    ":prompt-router/",
];

impl Maker {
    /// Of the model of this id, with or without a region before it, or of this ARN. What stands for a model without naming it is taken
    /// for one of Anthropic's: its clients alone say what others do not know.
    pub(super) fn of(model: &str) -> Self {
        let is_unnamed = || UNNAMED.iter().any(|place| model.contains(place));
        if model.contains("amazon.nova") {
            Self::Nova
        } else if model.contains("anthropic.") || model.contains("claude") || is_unnamed() {
            Self::Anthropic
        } else {
            Self::Other
        }
    }

    /// Whether prompts may be marked to be kept, and the tools among them
    /// (<https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html>).
    pub(super) fn keeps_prompts(self) -> bool {
        self != Self::Other
    }

    pub(super) fn keeps_tools(self) -> bool {
        self == Self::Anthropic
    }

    /// Whether it is told that a tool failed.
    pub(super) fn knows_failures(self) -> bool {
        self != Self::Other
    }

    /// Writes from how many tokens the next is drawn, among what is said to models of this maker alone. False where there is no word
    /// for it.
    pub(super) fn write_top_k(self, top_k: Raw<'_>, json: &mut Json) -> bool {
        match self {
            Self::Anthropic => json.key("top_k").raw(top_k),
            Self::Nova => json
                .key("inferenceConfig")
                .object(|json| json.key("topK").raw(top_k)),
            Self::Other => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    //! Ids and ARNs.

    use super::*;

    #[test]
    fn the_maker_is_read_out_of_ids_and_arns() {
        for (model, maker) in [
            (
                "anthropic.claude-sonnet-4-5-20250929-v1:0",
                Maker::Anthropic,
            ),
            ("us.anthropic.claude-opus-4-6-v1", Maker::Anthropic),
            ("global.amazon.nova-2-lite-v1:0", Maker::Nova),
            ("openai.gpt-oss-120b-1:0", Maker::Other),
            ("meta.llama3-1-70b-instruct-v1:0", Maker::Other),
            (
                "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.amazon.nova-pro-v1:0",
                Maker::Nova,
            ),
            (
                "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3d4e5f6",
                Maker::Anthropic,
            ),
            (
                "arn:aws:bedrock:us-east-1:123456789012:imported-model/a1b2c3d4e5f6",
                Maker::Other,
            ),
        ] {
            assert_eq!(Maker::of(model), maker, "{model}");
        }
    }
}
