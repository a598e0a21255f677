//! Cohere's chat of its version 2, as Cohere documents it (<https://docs.cohere.com/reference/chat>) and as the types of its SDK say.
//!
//! The model of an answer is not told; what led to a call of a tool is a `tool_plan`, and models that reason have parts of it.

pub(crate) mod embeddings;
pub(crate) mod read_answer;
pub(crate) mod write_call;

use std::borrow::Cow;

use crate::answer::Error;
use crate::json::Json;
use crate::raw::Raw;

/// What a backend of it speaks.
pub(crate) const SPEAKS: &str = "cohere";
/// What follows the API's root.
const PATH: &str = "/chat";

/// Reads an error's document.
pub(crate) fn read_error(status: u16, json: &[u8]) -> Option<Error> {
    let mut document = Raw::read(json)?.object().ok()?;
    let message = document.text("message").ok()??;
    let status = if status >= 400 { status } else { 500 };
    Some(Error::of(status, Cow::into_owned(message)))
}

/// Writes an error's document.
pub(crate) fn write_error(error: &Error, json: &mut Json) {
    json.object(|json| json.say("message", &error.message));
}
