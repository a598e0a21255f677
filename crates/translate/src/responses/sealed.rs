//! What a provider signed, as `encrypted_content` carries it.
//!
//! Invariant: what is opened is what was sealed, byte for byte, whatever a client makes of the texts beside it; what another hand
//! sealed (OpenAI's own) is not opened.

use std::borrow::Cow;

use crate::call::{Said, Signature};

const MARK: &str = "tollgate:";
const THINKING: &str = "thinking";
const REDACTED: &str = "redacted";
const CALL: &str = "call";

/// What an item of ours carries.
pub(super) enum Opened<'a> {
    Said(Said<'a>),
    /// What the provider wants to see again beside the call of this id.
    OfCall {
        id: Cow<'a, str>,
        signature: Signature<'a>,
    },
}

pub(super) fn thinking(by: &str, text: &str, signature: &str) -> String {
    format!("{MARK}{by}:{THINKING}:{signature}:{text}")
}

pub(super) fn redacted(by: &str, data: &str) -> String {
    format!("{MARK}{by}:{REDACTED}:{data}")
}

pub(super) fn of_call(by: &str, id: &str, signature: &str) -> String {
    format!("{MARK}{by}:{CALL}:{signature}:{id}")
}

/// Opens what was sealed here.
pub(super) fn open(sealed: &str) -> Option<Opened<'static>> {
    let (by, rest) = sealed.strip_prefix(MARK)?.split_once(':')?;
    let (kind, rest) = rest.split_once(':')?;
    // Signatures are base64, which has no colon.
    let own = |text: &str| Cow::Owned(text.to_owned());
    match kind {
        THINKING => {
            let (signature, text) = rest.split_once(':')?;
            let thinking = Said::Thinking {
                text: own(text),
                signature: Some(own(signature)),
            };
            Some(Opened::Said(Said::Of(own(by), Box::new(thinking))))
        }
        REDACTED => {
            let data = Said::Redacted(own(rest));
            Some(Opened::Said(Said::Of(own(by), Box::new(data))))
        }
        CALL => {
            let (signature, id) = rest.split_once(':')?;
            Some(Opened::OfCall {
                id: own(id),
                signature: Signature {
                    by: Some(own(by)),
                    text: own(signature),
                },
            })
        }
        _ => None,
    }
}
