//! OpenAI's chat completions, as OpenAI documents them (<https://platform.openai.com/docs/api-reference/chat>) and as vLLM and
//! DeepSeek extend them: `reasoning_content` and `reasoning` of an answer, `reasoning_content` of a message that is sent again.

pub(crate) mod read_answer;
pub(crate) mod read_call;
pub(crate) mod write_answer;
pub(crate) mod write_call;

use std::borrow::Cow;

use crate::answer::Error;
use crate::json::Json;
use crate::raw::Raw;

/// What follows the API's root.
pub(crate) const PATH: &str = "/chat/completions";

/// Reads an error's document, or an event that is one.
pub(crate) fn read_error(status: u16, json: &[u8]) -> Option<Error> {
    let mut document = Raw::read(json)?.object().ok()?;
    let plain = |message: Raw<'_>| {
        let status = if status >= 400 { status } else { 500 };
        Some(Error::of(status, message.text().ok()?))
    };
    let mut error = match document.take("error") {
        Some(error) => match error.object() {
            Ok(error) => error,
            // Some engines say a text there.
            Err(_) => return plain(error),
        },
        // vLLM said no object around it before its 0.10, and FastAPI, in which engines are written, says `detail`.
        None if document.look("message").is_some() => document,
        None => return plain(document.take("detail")?),
    };
    let code = error.take("code");
    // Some engines say the status there. In a stream that has begun, nothing else tells it.
    let said = code.and_then(|code| code.whole().ok());
    let said = said.and_then(|code| u16::try_from(code).ok());
    let status = match status {
        400.. => status,
        _ => said.filter(|code| (400..600).contains(code)).unwrap_or(500),
    };
    let mut text = |name: &str| error.text(name).ok().flatten().map(Cow::into_owned);
    Some(Error {
        status,
        kind: text("type"),
        code: code.and_then(|code| code.text().ok()).map(Cow::into_owned),
        param: text("param"),
        message: text("message").unwrap_or_default(),
    })
}

/// Writes an error's document.
pub(crate) fn write_error(error: &Error, json: &mut Json) {
    json.object(|json| {
        json.key("error").object(|json| {
            json.say("message", &error.message);
            json.say("type", kind(error));
            match &error.param {
                Some(param) => json.say("param", param),
                None => json.key("param").null(),
            }
            match &error.code {
                Some(code) => json.say("code", code),
                None => json.key("code").null(),
            }
        });
    });
}

/// The type of an error of another dialect (<https://platform.openai.com/docs/guides/error-codes>).
fn kind(error: &Error) -> &'static str {
    match error.status {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        500.. => "server_error",
        _ => "invalid_request_error",
    }
}
