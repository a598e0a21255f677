//! The one thing that is decoded: a usage object, after its answer has ended.
//!
//! Invariant: at most [`USAGE_BYTES`] of it are kept; what does not decode, or says more than could be, is no usage, and no
//! failure.
//! Not here: where it stands (`event`).

use serde::Deserialize;

/// What is kept of a usage object.
pub(super) const USAGE_BYTES: usize = 4 << 10;
/// The most tokens that are a count: what every reader of JSON has exactly. One such answer would be all of a mean.
const TOKENS_MAX: u64 = 1 << 53;

/// Tokens as the answer reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct Usage {
    /// Of the prompt.
    #[serde(rename = "prompt_tokens", alias = "input_tokens", default)]
    pub prompt: Option<u64>,
    /// Of the completion.
    #[serde(rename = "completion_tokens", alias = "output_tokens", default)]
    pub completion: Option<u64>,
    #[serde(
        rename = "prompt_tokens_details",
        alias = "input_tokens_details",
        default
    )]
    details: Option<Details>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
struct Details {
    #[serde(rename = "cached_tokens", default)]
    cached: Option<u64>,
}

impl Usage {
    /// Reads the object at the start of `bytes`, whatever stands behind it.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let mut read = serde_json::Deserializer::from_slice(bytes).into_iter();
        let usage: Self = read.next()?.ok()?;
        let mut counts = [usage.prompt, usage.completion, usage.cached()].into_iter();
        let is_sound = counts.all(|count| count.is_none_or(|count| count <= TOKENS_MAX));
        is_sound.then_some(usage)
    }

    /// Tokens of the prompt that an engine had kept.
    #[must_use]
    pub fn cached(&self) -> Option<u64> {
        self.details?.cached
    }
}

#[cfg(test)]
mod tests {
    //! Objects whole, cut and strange.

    use super::Usage;

    #[test]
    fn a_usage_object_is_read_from_its_start_and_one_that_is_cut_is_none() {
        let object = br#"{"prompt_tokens":7,"total_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":5}}]}"#;
        let usage = Usage::read(object).expect("usage");
        assert_eq!(
            (usage.prompt, usage.completion, usage.cached()),
            (Some(7), Some(2), Some(5))
        );
        let anthropic = Usage::read(br#"{"input_tokens":1,"output_tokens":2}"#).expect("usage");
        assert_eq!(
            (anthropic.prompt, anthropic.completion, anthropic.cached()),
            (Some(1), Some(2), None)
        );
        assert_eq!(Usage::read(&object[..30]), None);
        assert_eq!(Usage::read(b"{\"prompt_tokens\":-1}"), None);
        let huge =
            br#"{"prompt_tokens":18446744073709551615,"completion_tokens":18446744073709551615}"#;
        assert_eq!(Usage::read(huge), None);
        let details =
            Usage::read(br#"{"prompt_tokens":1,"prompt_tokens_details":null}"#).expect("usage");
        assert_eq!(details.cached(), None);
    }
}
