//! Amazon Bedrock's `Converse` and `ConverseStream`, as AWS documents them
//! (<https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html>) and as the model of its service says.
//!
//! One API for models of many makers: what it has no place for goes into `additionalModelRequestFields`, in the words of the maker, and
//! there only as AWS documents it.

mod documents;
mod maker;
pub(crate) mod read_answer;
mod write_blocks;
pub(crate) mod write_call;

use std::borrow::Cow;

use wire::head::ResponseHead;

use crate::answer::Error;
use crate::json::Json;
use crate::raw::Raw;

/// What a backend of it speaks.
pub(crate) const SPEAKS: &str = "bedrock";

/// What names an answer, which does not itself.
const REQUEST_ID: &[u8] = b"x-amzn-requestid";
/// What says which error a document is.
const ERROR_TYPE: &[u8] = b"x-amzn-errortype";

/// What follows the API's root.
fn path(model: &str, is_streamed: bool) -> String {
    let mut path = "/model/".to_owned();
    for byte in model.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                path.push(byte.into());
            }
            // An ARN has slashes and colons, and is one segment.
            other => path.push_str(&format!("%{other:02X}")),
        }
    }
    path.push_str(match is_streamed {
        true => "/converse-stream",
        false => "/converse",
    });
    path
}

/// The id of the answer that begins with this head.
pub(crate) fn id_of(head: &ResponseHead) -> String {
    text_of(head, REQUEST_ID).unwrap_or_default().to_owned()
}

/// Which error the answer is that begins with this head: `ThrottlingException`.
pub(crate) fn error_of(head: &ResponseHead) -> Option<&str> {
    text_of(head, ERROR_TYPE).map(bare)
}

fn text_of<'h>(head: &'h ResponseHead, name: &[u8]) -> Option<&'h str> {
    let mut fields = head.fields.iter();
    let field = fields.find(|field| field.name == name)?;
    str::from_utf8(field.value).ok()
}

/// The name of an error without the service's, and without an address behind it.
fn bare(kind: &str) -> &str {
    let (_, name) = kind.rsplit_once('#').unwrap_or(("", kind));
    name.split(':').next().unwrap_or(name).trim()
}

/// Reads an error's document, which says what its head does not: the message.
pub(crate) fn read_error(status: u16, json: &[u8]) -> Option<Error> {
    let mut document = Raw::read(json)?.object().ok()?;
    let mut text = |name: &str| document.text(name).ok().flatten().map(Cow::into_owned);
    let message = text("message").or_else(|| text("Message"))?;
    let error = Error::of(status, message);
    Some(match text("__type") {
        Some(kind) => named(error, bare(&kind)),
        None => error,
    })
}

/// An error with its name, which tells better than its status whose fault it is.
pub(crate) fn named(error: Error, kind: &str) -> Error {
    let mut kind = kind.to_owned();
    if let Some(first) = kind.get_mut(..1) {
        // In a stream it is said as a member is.
        first.make_ascii_uppercase();
    }
    let status = match (&*kind, error.status) {
        ("ModelErrorException" | "ModelStreamErrorException", _) => 502,
        ("ModelTimeoutException", _) => 504,
        (_, status @ 400..) => status,
        ("ValidationException", _) => 400,
        ("AccessDeniedException", _) => 403,
        ("ResourceNotFoundException", _) => 404,
        ("ThrottlingException" | "ModelNotReadyException", _) => 429,
        ("ServiceUnavailableException", _) => 503,
        _ => 500,
    };
    Error {
        status,
        code: Some(kind.clone()),
        kind: Some(kind),
        ..error
    }
}

/// Writes an error's document.
pub(crate) fn write_error(error: &Error, json: &mut Json) {
    json.object(|json| json.say("message", &error.message));
}
