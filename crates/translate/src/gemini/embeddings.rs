//! OpenAI's embeddings, at Google's `embedContent` and `batchEmbedContents` (<https://ai.google.dev/api/embeddings>,
//! <https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api>).
//!
//! Invariant: each text has one vector, in its order, or there is no answer. Numbers stay as they are written, but where the client asks
//! for them in binary, which is what OpenAI's SDKs do.
//! Not here: errors (`super::read_error`).

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::filter::{Request, ResponseFilter, Shape, Stop};

use super::{Place, sealed};
use crate::fault::{Fault, Result};
use crate::json::Json;
use crate::raw::{Raw, read_json};
use crate::report::{Count, Told};

/// No answer is longer.
const DOCUMENT_BYTES: usize = 64 * 1024 * 1024;

/// What its answer has to know of a call.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    model: String,
    texts: usize,
    is_binary: bool,
}

/// Writes the request that says this call of OpenAI's.
pub(crate) fn write(body: Raw<'_>, place: Place, request: &mut Request) -> Result<Asked> {
    let mut body = body.object()?;
    let model = body.need("model", Raw::text)?;
    let texts = body.need("input", texts)?;
    let dimensions = body.read("dimensions", Raw::number)?;
    let format = body.text("encoding_format")?;
    let is_binary = match format.as_deref() {
        None | Some("float") => false,
        Some("base64") => true,
        Some(other) => {
            let says = format!("{other:?} is no format of numbers");
            return Err(Fault::new(says).within("encoding_format"));
        }
    };
    if body.take("user").is_some() {
        request.dropped.push("user");
    }
    if let Some((name, _)) = body.rest().next() {
        let says = "is a member that this gate cannot tell a backend of another dialect";
        return Err(Fault::new(says).within(&name));
    }
    let embed = |text: &str, json: &mut Json| {
        json.object(|json| {
            if place == Place::Studio {
                json.say("model", &format!("models/{}", super::bare(&model)));
            }
            members(text, dimensions, place, json);
        });
    };
    let mut json = Json::with_capacity(1024);
    let verb = match (&texts[..], place) {
        // Vertex AI has the other call for few of its models.
        ([text], Place::Vertex) => {
            json.object(|json| members(text, dimensions, place, json));
            "embedContent"
        }
        _ => {
            json.object(|json| {
                json.key("requests")
                    .list(|json| texts.iter().for_each(|text| embed(text, json)));
            });
            "batchEmbedContents"
        }
    };
    request.path = Some(place.path(&model, verb));
    request.body = vec![json.into_bytes().into()];
    Ok(Asked {
        model: model.into_owned(),
        texts: texts.len(),
        is_binary,
    })
}

fn members(text: &str, dimensions: Option<Raw<'_>>, place: Place, json: &mut Json) {
    json.key("content").object(|json| {
        json.key("parts")
            .list(|json| json.object(|json| json.say("text", text)));
    });
    let Some(dimensions) = dimensions else { return };
    match place {
        Place::Studio => json.key("outputDimensionality").raw(dimensions),
        Place::Vertex => json
            .key("embedContentConfig")
            .object(|json| json.key("outputDimensionality").raw(dimensions)),
    }
}

fn texts(input: Raw<'_>) -> Result<Vec<Cow<'_, str>>> {
    if input.is_text() {
        return Ok(vec![input.text()?]);
    }
    input.each(|_, text| match text.is_text() {
        true => text.text(),
        false => Err(Fault::new(
            "is no text: tokens of one provider are none of another's",
        )),
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    #[serde(borrow)]
    embeddings: Option<Vec<Embedding<'a>>>,
    #[serde(borrow)]
    embedding: Option<Embedding<'a>>,
    #[serde(default)]
    usage_metadata: Told<Counts>,
}

#[derive(Deserialize)]
struct Embedding<'a> {
    #[serde(borrow)]
    values: &'a RawValue,
}

#[derive(Deserialize, Clone, Copy, Default, Debug)]
#[serde(rename_all = "camelCase", default)]
struct Counts {
    prompt_token_count: Count,
}

/// An answer on its way.
#[derive(Debug)]
pub(crate) struct Embedded {
    asked: Asked,
    held: Vec<u8>,
}

impl Embedded {
    pub(crate) const fn new(asked: Asked) -> Self {
        Self {
            asked,
            held: Vec::new(),
        }
    }

    fn made(&self) -> std::result::Result<Vec<u8>, Stop> {
        let document: Document<'_> = read_json(&self.held)?;
        let all = document.embeddings.into_iter().flatten();
        let all: Vec<_> = all.chain(document.embedding).collect();
        if all.len() != self.asked.texts {
            return Err(Stop::Malformed);
        }
        let tokens = document.usage_metadata.0.unwrap_or_default();
        let tokens = tokens.prompt_token_count.0.unwrap_or(0);
        let mut json = Json::with_capacity(self.held.len());
        json.try_object(|json| {
            json.say("object", "list");
            json.key("data").try_list(|json| {
                (0..).zip(&all).try_for_each(|(nth, one)| {
                    json.try_object(|json| {
                        json.say("object", "embedding");
                        json.key("index").whole(nth);
                        json.key("embedding");
                        self.vector(one.values.get(), json)
                    })
                })
            })?;
            json.say("model", &self.asked.model);
            json.key("usage").object(|json| {
                json.key("prompt_tokens").whole(tokens);
                json.key("total_tokens").whole(tokens);
            });
            Ok(())
        })?;
        Ok(json.into_bytes())
    }

    fn vector(&self, values: &str, json: &mut Json) -> std::result::Result<(), Stop> {
        let numbers: Vec<f32> = serde_json::from_str(values).map_err(|_| Stop::Malformed)?;
        match self.asked.is_binary {
            false => json.raw(Raw::literal(values)),
            true => {
                let bytes: Vec<u8> = numbers.into_iter().flat_map(f32::to_le_bytes).collect();
                json.text(&sealed::encode(&bytes));
            }
        }
        Ok(())
    }
}

impl ResponseFilter for Embedded {
    fn shape(&self) -> Option<Shape> {
        Some(super::pass::json_shape())
    }

    fn pass(
        &mut self,
        piece: &[u8],
        is_over: bool,
        out: &mut Vec<Bytes>,
    ) -> std::result::Result<(), Stop> {
        self.held.extend_from_slice(piece);
        if self.held.len() > DOCUMENT_BYTES {
            return Err(Stop::Malformed);
        }
        if is_over {
            out.push(self.made()?.into());
        }
        Ok(())
    }
}
