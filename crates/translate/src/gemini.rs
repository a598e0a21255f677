//! Google's `generateContent`, as Google documents it for AI Studio (<https://ai.google.dev/api/generate-content>) and for Vertex AI
//! (<https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference>), whose bodies are the same but for the ids of calls.

mod compact;
pub(crate) mod read_answer;
mod thinking;
pub(crate) mod write_call;
mod write_contents;

use std::borrow::Cow;

use crate::answer::Error;
use crate::json::Json;
use crate::raw::Raw;

/// Where the API is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Studio,
    /// Vertex AI, which knows no ids of calls.
    Vertex,
}

impl Place {
    /// What a backend there speaks.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Studio => "gemini",
            Self::Vertex => "vertex",
        }
    }

    /// What follows the API's root.
    fn path(self, model: &str, is_streamed: bool) -> String {
        let verb = match is_streamed {
            true => "streamGenerateContent",
            false => "generateContent",
        };
        let collection = match self {
            Self::Studio if model.starts_with(TUNED) => TUNED,
            Self::Studio => "models/",
            Self::Vertex => "publishers/google/models/",
        };
        let name = model.strip_prefix(collection).unwrap_or(bare(model));
        let mut path = format!("/{collection}");
        for byte in name.bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'@' => {
                    path.push(byte.into());
                }
                // A name goes nowhere else.
                other => path.push_str(&format!("%{other:02X}")),
            }
        }
        path.push(':');
        path.push_str(verb);
        path
    }
}

/// Models that somebody tuned are a collection of their own.
const TUNED: &str = "tunedModels/";

/// The name of a model without its collection.
fn bare(model: &str) -> &str {
    model.strip_prefix("models/").unwrap_or(model)
}

/// Reads an error's document, or an event that is one (<https://google.aip.dev/193>).
pub(crate) fn read_error(status: u16, json: &[u8]) -> Option<Error> {
    let document = Raw::read(json)?;
    // Before a stream of its own form begins, the document stands in a list.
    let first = || document.list().ok()?.into_iter().next();
    let mut document = document.object().ok().or_else(|| first()?.object().ok())?;
    let mut error = document.take("error")?.object().ok()?;
    let said = error.take("code").and_then(|code| code.whole().ok());
    let said = said.and_then(|code| u16::try_from(code).ok());
    let mut text = |name: &str| error.text(name).ok().flatten().map(Cow::into_owned);
    let (kind, message) = (text("status"), text("message").unwrap_or_default());
    let status = match status {
        400.. => status,
        _ => said.filter(|code| (400..600).contains(code)).unwrap_or(500),
    };
    Some(Error {
        code: kind.clone(),
        kind,
        ..Error::of(status, message)
    })
}

/// Writes an error's document.
pub(crate) fn write_error(error: &Error, json: &mut Json) {
    let status = match error.status {
        400 => "INVALID_ARGUMENT",
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "FAILED_PRECONDITION",
    };
    json.object(|json| {
        json.key("error").object(|json| {
            json.key("code").whole(error.status.into());
            json.say("message", &error.message);
            json.say("status", status);
        });
    });
}
