//! What another provider signed, as clients of Google's API carry it: in a `thoughtSignature`, which is base64.
//!
//! Invariant: what is opened is what was sealed, byte for byte, whichever alphabet of base64 a client writes it in again; what another
//! hand made (Google's own) is not opened.

use std::borrow::Cow;

use crate::base64::{decode, encode};
use crate::call::{Said, Signature};

const MARK: &str = "tollgate:";
const THINKING: &str = "thinking";
const REDACTED: &str = "redacted";
const CALL: &str = "call";

/// What a signature of ours carries.
pub(super) enum Opened {
    /// What was thought.
    Said(Said<'static>),
    /// What its provider wants to see again beside the call that it stands at.
    OfCall(Signature<'static>),
}

pub(super) fn thinking(by: &str, text: &str, signature: &str) -> String {
    encode(format!("{MARK}{by}:{THINKING}:{signature}:{text}").as_bytes())
}

pub(super) fn redacted(by: &str, data: &str) -> String {
    encode(format!("{MARK}{by}:{REDACTED}:{data}").as_bytes())
}

pub(super) fn of_call(by: &str, signature: &str) -> String {
    encode(format!("{MARK}{by}:{CALL}:{signature}").as_bytes())
}

/// Opens what was sealed here.
pub(super) fn open(sealed: &str) -> Option<Opened> {
    let sealed = String::from_utf8(decode(sealed)?).ok()?;
    let (by, rest) = sealed.strip_prefix(MARK)?.split_once(':')?;
    let (kind, rest) = rest.split_once(':')?;
    let own = |text: &str| Cow::Owned(text.to_owned());
    let said = |said| Opened::Said(Said::Of(own(by), Box::new(said)));
    match kind {
        THINKING => {
            // Signatures are base64, which has no colon.
            let (signature, text) = rest.split_once(':')?;
            let signature = Some(signature).filter(|text| !text.is_empty());
            Some(said(Said::Thinking {
                text: own(text),
                signature: signature.map(own),
            }))
        }
        REDACTED => Some(said(Said::Redacted(own(rest)))),
        CALL => Some(Opened::OfCall(Signature {
            by: Some(own(by)),
            text: own(rest),
        })),
        _ => None,
    }
}

/// Base64 in its plain alphabet, which others take alone: some clients of Google's write the one of addresses.
pub(super) fn plain(data: Cow<'_, str>) -> Cow<'_, str> {
    match data.contains(['-', '_']) {
        false => data,
        true => Cow::Owned(data.replace('-', "+").replace('_', "/")),
    }
}

#[cfg(test)]
mod tests {
    //! Signatures that are sealed, and such as look like it.

    use super::*;

    #[test]
    fn a_signature_gives_back_what_was_sealed_in_it_in_either_alphabet() {
        for (signature, text) in [("EqQB+/a==", "Ask: why?>~ü"), ("A", ""), ("", "b")] {
            let sealed = thinking("anthropic", text, signature);
            let of_addresses = sealed.replace('+', "-").replace('/', "_");
            for sealed in [
                &sealed,
                &of_addresses,
                &of_addresses.trim_end_matches('=').to_owned(),
            ] {
                let Some(Opened::Said(Said::Of(by, said))) = open(sealed) else {
                    panic!("{sealed}");
                };
                let Said::Thinking {
                    text: t,
                    signature: s,
                } = *said
                else {
                    panic!("{sealed}");
                };
                assert_eq!(
                    (&*by, &*t, s.as_deref().unwrap_or("")),
                    ("anthropic", text, signature)
                );
            }
        }
        let sealed = of_call("openai", "Zm9v+/==");
        assert!(
            matches!(open(&sealed), Some(Opened::OfCall(own)) if own.of("openai") == Some("Zm9v+/==") && own.of("gemini").is_none())
        );
        let sealed = redacted("anthropic", "EmwK");
        assert!(matches!(open(&sealed), Some(Opened::Said(Said::Of(..)))));
    }

    #[test]
    fn what_google_signed_is_not_opened() {
        for signature in [
            "EjQK-_==",
            "",
            "A",
            "CvcBAdHtim9",
            "dG9sbGdhdGU6",
            "no base64!",
        ] {
            assert!(open(signature).is_none(), "{signature}");
        }
    }
}
