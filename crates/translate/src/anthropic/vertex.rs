//! Anthropic's API as Vertex AI has it: the same documents, at a path that names the model and says whether the answer is a stream, and
//! with the version in the body (<https://docs.anthropic.com/en/api/claude-on-vertex-ai>).
//!
//! Not here: where a project is (`config`), Google's own models at Vertex AI (`gemini`).

use bytes::Bytes;
use wire::dialect::Operation;
use wire::dialect::gemini::published_path;
use wire::filter::Request;

use super::write_call;
use crate::call::Call;
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::Raw;

pub(crate) const SPEAKS: &str = "anthropic-on-vertex";
/// The version of the API that is spoken, as a member of the body.
const VERSION: &str = "vertex-2023-10-16";
/// The model that counts the tokens of a prompt for another one, which its body names.
const COUNTER: &str = "count-tokens";

/// Whether it has this call.
pub(crate) const fn has(asked: Operation) -> bool {
    matches!(asked, Operation::Messages | Operation::CountTokens)
}

/// Moves a call to its model; the rest of its body passes as it came.
pub(crate) fn pass(asked: Operation, request: &mut Request) -> Result<()> {
    if !has(asked) {
        return Ok(());
    }
    let counts = asked == Operation::CountTokens;
    let model = request.model.as_deref().unwrap_or_default().to_owned();
    moved(&model, counts, request)
}

/// Writes the request that says this call.
pub(crate) fn write(call: Call<'_>, request: &mut Request) -> Result<()> {
    let model = call.model.clone().into_owned();
    write_call::write(call, request)?;
    let (header, _) = super::VERSION;
    request.headers.retain(|(name, _)| **name != *header);
    moved(&model, false, request)
}

fn moved(model: &str, counts: bool, request: &mut Request) -> Result<()> {
    let body = match request.body.as_slice() {
        [one] => one.clone(),
        pieces => Bytes::from(pieces.concat()),
    };
    let document = Raw::unread(&body).ok_or_else(|| Fault::new("the body is no JSON object"))?;
    let mut members = document.object()?;
    let is_streamed = match members.look("stream") {
        Some(said) => said.flag().map_err(|fault| fault.within("stream"))?,
        None => false,
    };
    members.take("anthropic_version");
    if !counts {
        members.take("model");
    }
    let mut json = Json::with_capacity(body.len() + VERSION.len() + 32);
    json.object(|json| {
        json.say("anthropic_version", VERSION);
        for (name, value) in members.all() {
            json.name(&name);
            json.raw(value);
        }
    });
    let (model, verb) = match (counts, is_streamed) {
        (true, _) => (COUNTER, "rawPredict"),
        (false, true) => (model, "streamRawPredict"),
        (false, false) => (model, "rawPredict"),
    };
    let model = match model.contains('/') {
        true => model.to_owned(),
        false => format!("anthropic/{model}"),
    };
    request.path = Some(published_path(&model, verb).into());
    request.body = vec![Bytes::from(json.into_bytes())];
    Ok(())
}
