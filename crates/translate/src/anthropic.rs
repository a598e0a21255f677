//! Anthropic's Messages API, as Anthropic documents it (<https://docs.anthropic.com/en/api/messages>).

pub(crate) mod read_answer;
pub(crate) mod read_call;
mod sealed;
pub(crate) mod vertex;
pub(crate) mod write_answer;
pub(crate) mod write_call;

use crate::answer::Error;
use crate::json::Json;
use crate::raw::Raw;

/// What follows the API's root.
pub(crate) const PATH: &str = "/messages";

/// The version of the API that is spoken: the only one since June 2023 (<https://docs.anthropic.com/en/api/versioning>).
pub(crate) const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// Reads an error's document, or an event that is one.
pub(crate) fn read_error(status: u16, json: &[u8]) -> Option<Error> {
    let mut document = Raw::read(json)?.object().ok()?;
    let mut error = document.take("error")?.object().ok()?;
    let mut text = |name: &str| {
        error
            .text(name)
            .ok()
            .flatten()
            .map(|text| text.into_owned())
    };
    let (kind, message) = (text("type"), text("message").unwrap_or_default());
    // In a stream that has begun, the type alone tells which status it would be.
    let status = match (status, kind.as_deref()) {
        (400.., _) => status,
        (_, Some("overloaded_error")) => 529,
        (_, Some("rate_limit_error")) => 429,
        (_, Some("timeout_error")) => 504,
        (_, Some("invalid_request_error")) => 400,
        _ => 500,
    };
    Some(Error {
        status,
        kind,
        ..Error::of(status, message)
    })
}

/// Writes an error's document.
pub(crate) fn write_error(error: &Error, json: &mut Json) {
    json.object(|json| {
        json.say("type", "error");
        json.key("error").object(|json| {
            json.say("type", kind(error.status));
            json.say("message", &error.message);
        });
    });
}

/// The type of an error (<https://docs.anthropic.com/en/api/errors>).
fn kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        503 | 529 => "overloaded_error",
        504 => "timeout_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}
