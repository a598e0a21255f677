//! Addresses in a call that a backend would read with the rights of an account that others use too.
//!
//! Invariant: an address is judged by what it becomes: of one text, Google's API makes a file of the account's and another fetches it
//! as anybody can.
//! Not here: the same in calls that pass as they came (`wire::call`), whether an account is shared (`policy`).

use wire::call::address;
use wire::filter::Unfit;

use crate::call::{Call, Media, Part, Said};
use crate::dialect::Dialect;

/// Refuses the first address of the account.
pub(crate) fn check(call: &Call<'_>, target: Dialect) -> Result<(), Unfit> {
    let is_of_account = match target {
        Dialect::Gemini | Dialect::Vertex | Dialect::AnthropicOnVertex => {
            address::is_of_googles_account
        }
        Dialect::OpenAi
        | Dialect::Azure
        | Dialect::Anthropic
        | Dialect::Responses
        | Dialect::Bedrock
        | Dialect::Cohere => address::is_of_account,
    };
    for message in &call.messages {
        let mut parts = message.parts.iter();
        if let Some(part) = parts.find(|part| names(part, is_of_account)) {
            return Err(Unfit {
                what: call.unsaid(message, part, "").path().into(),
                is_of_account: true,
            });
        }
    }
    Ok(())
}

fn names(part: &Part<'_>, is_of_account: fn(&str) -> bool) -> bool {
    match &part.said {
        Said::Image(Media::Url(url)) | Said::File(Media::Url(url), _) => is_of_account(url),
        Said::Result(result) => result.parts.iter().any(|part| names(part, is_of_account)),
        _ => false,
    }
}
