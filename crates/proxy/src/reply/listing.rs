//! The list of the models that the gate knows, and one of them, as clients of each API read it.
//!
//! Invariant: it says names, and nothing that the gate does not know of a model.
//! Not here: which names (`policy::route`).

use std::sync::Arc;

use policy::refusal::{ErrorFormat, escape};
use wire::dialect::gemini::Listed;
use wire::head::RequestHead;

/// Whose list it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Listing {
    OpenAi,
    Anthropic,
    /// Google's, at AI Studio.
    Studio,
    /// The same at Vertex AI.
    Vertex,
}

impl Listing {
    /// That of the path; where several APIs have the same one, Google's and Anthropic's for their SDKs, which say so.
    pub(super) fn of(head: &RequestHead) -> Self {
        match Listed::of(head.path()) {
            Some(listed) if listed.is_published => Self::Vertex,
            Some(_) => Self::Studio,
            None if is_of_google(head) => Self::Studio,
            None if is_of_anthropic(head) => Self::Anthropic,
            None => Self::OpenAi,
        }
    }

    /// The body that tells of `one`, or lists them all.
    pub(super) fn answer(self, names: &[Arc<str>], one: Option<&str>) -> Vec<u8> {
        let mut body = Vec::new();
        if let Some(one) = one {
            self.card(one, &mut body);
            return body;
        }
        body.extend_from_slice(match self {
            Self::OpenAi => b"{\"object\":\"list\",\"data\":[",
            Self::Anthropic => b"{\"data\":[",
            Self::Studio => b"{\"models\":[",
            Self::Vertex => b"{\"publisherModels\":[",
        });
        for (i, name) in names.iter().enumerate() {
            if i > 0 {
                body.push(b',');
            }
            self.card(name, &mut body);
        }
        match (self, names) {
            (Self::Anthropic, [first, .., last]) => ends(first, last, &mut body),
            (Self::Anthropic, [only]) => ends(only, only, &mut body),
            (Self::Anthropic, []) => {
                body.extend_from_slice(b"],\"has_more\":false,\"first_id\":null,\"last_id\":null}")
            }
            _ => body.extend_from_slice(b"]}"),
        }
        body
    }

    fn card(self, name: &str, body: &mut Vec<u8>) {
        match self {
            Self::OpenAi => {
                body.extend_from_slice(b"{\"id\":\"");
                escape(name, body);
                let rest = b"\",\"object\":\"model\",\"created\":0,\"owned_by\":\"tollgate\"}";
                body.extend_from_slice(rest);
            }
            Self::Anthropic => {
                body.extend_from_slice(b"{\"type\":\"model\",\"id\":\"");
                escape(name, body);
                body.extend_from_slice(b"\",\"display_name\":\"");
                escape(name, body);
                // It stands for a time that is not known.
                body.extend_from_slice(b"\",\"created_at\":\"1970-01-01T00:00:00Z\"}");
            }
            Self::Studio => {
                body.extend_from_slice(b"{\"name\":\"models/");
                escape(name, body);
                body.extend_from_slice(b"\",\"displayName\":\"");
                escape(name, body);
                body.extend_from_slice(b"\",\"supportedGenerationMethods\":[\"generateContent\"]}");
            }
            Self::Vertex => {
                let (publisher, name) = match name.split_once('/') {
                    Some((publisher, name)) if !name.contains('/') => (publisher, name),
                    _ => ("google", name),
                };
                body.extend_from_slice(b"{\"name\":\"publishers/");
                escape(publisher, body);
                body.extend_from_slice(b"/models/");
                escape(name, body);
                body.extend_from_slice(b"\"}");
            }
        }
    }
}

/// The end of Anthropic's list, which has one page.
fn ends(first: &str, last: &str, body: &mut Vec<u8>) {
    body.extend_from_slice(b"],\"has_more\":false,\"first_id\":\"");
    escape(first, body);
    body.extend_from_slice(b"\",\"last_id\":\"");
    escape(last, body);
    body.extend_from_slice(b"\"}");
}

/// Whether the client speaks Anthropic's API, at a path that OpenAI's have too: each of its calls says which version.
fn is_of_anthropic(head: &RequestHead) -> bool {
    head.fields.by_name(b"anthropic-version").next().is_some()
}

/// Whether one of Google's SDKs asks, at a path that OpenAI's have too: it names itself.
fn is_of_google(head: &RequestHead) -> bool {
    head.fields.by_name(b"x-goog-api-client").next().is_some()
}

/// In which form this client reads an error.
pub(super) fn error_format(head: &RequestHead) -> ErrorFormat {
    let is_shared = head.path().starts_with("/v1/models");
    match () {
        () if is_shared && is_of_google(head) => ErrorFormat::Google,
        () if (is_shared || head.path().starts_with("/v1/files")) && is_of_anthropic(head) => {
            ErrorFormat::Anthropic
        }
        () => ErrorFormat::of(head.path()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_api_reads_the_names_in_its_own_form() {
        let names: [Arc<str>; 2] = ["m".into(), "org/\"n".into()];
        let table = [
            (
                Listing::OpenAi,
                r#"{"object":"list","data":[{"id":"m","object":"model","created":0,"owned_by":"tollgate"},{"id":"org/\"n","object":"model","created":0,"owned_by":"tollgate"}]}"#,
            ),
            (
                Listing::Anthropic,
                r#"{"data":[{"type":"model","id":"m","display_name":"m","created_at":"1970-01-01T00:00:00Z"},{"type":"model","id":"org/\"n","display_name":"org/\"n","created_at":"1970-01-01T00:00:00Z"}],"has_more":false,"first_id":"m","last_id":"org/\"n"}"#,
            ),
            (
                Listing::Studio,
                r#"{"models":[{"name":"models/m","displayName":"m","supportedGenerationMethods":["generateContent"]},{"name":"models/org/\"n","displayName":"org/\"n","supportedGenerationMethods":["generateContent"]}]}"#,
            ),
            (
                Listing::Vertex,
                r#"{"publisherModels":[{"name":"publishers/google/models/m"},{"name":"publishers/org/models/\"n"}]}"#,
            ),
        ];
        for (listing, expected) in table {
            let told = listing.answer(&names, None);
            assert_eq!(String::from_utf8_lossy(&told), expected);
        }
        let (one, none) = (
            Listing::Anthropic.answer(&names[..1], None),
            Listing::Anthropic.answer(&[], None),
        );
        for (told, end) in [
            (one, r#"],"has_more":false,"first_id":"m","last_id":"m"}"#),
            (
                none,
                r#"],"has_more":false,"first_id":null,"last_id":null}"#,
            ),
        ] {
            let told = String::from_utf8_lossy(&told);
            assert!(told.ends_with(end), "{told}");
        }
        let one = Listing::Vertex.answer(&names, Some("m"));
        assert_eq!(one, br#"{"name":"publishers/google/models/m"}"#);
    }
}
