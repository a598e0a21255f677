//! Google's `generateContent`, as Google documents it for AI Studio (<https://ai.google.dev/api/generate-content>) and for Vertex AI
//! (<https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference>), whose bodies are the same but for the ids of calls.

mod compact;
pub(crate) mod embeddings;
mod members;
pub(crate) mod pass;
pub(crate) mod read_answer;
pub(crate) mod read_call;
mod read_contents;
pub(crate) mod schema;
mod sealed;
mod thinking;
pub(crate) mod write_answer;
pub(crate) mod write_call;
mod write_contents;

use std::borrow::Cow;

use wire::dialect::gemini::error_status;

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
    fn path(self, model: &str, verb: &str) -> String {
        match self {
            Self::Studio => wire::dialect::gemini::path(model, verb),
            Self::Vertex => wire::dialect::gemini::published_path(model, verb),
        }
    }
}

/// What asks for a stream of events.
const EVENTS: &str = "alt=sse";

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
    json.object(|json| write_error_members(error, json));
}

fn write_error_members(error: &Error, json: &mut Json) {
    json.key("error").object(|json| {
        json.key("code").whole(error.status.into());
        json.say("message", &error.message);
        json.say("status", error_status(error.status));
    });
}
