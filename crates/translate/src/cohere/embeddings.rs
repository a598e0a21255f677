//! Embeddings at Cohere's `embed` (<https://docs.cohere.com/reference/embed>).
//!
//! Not here: the client's call and answer (`crate::embeddings`), errors (`super::read_error`).

use serde::Deserialize;
use serde_json::value::RawValue;
use wire::filter::{Request, Stop};

use crate::embeddings::{Call, Made};
use crate::json::Json;
use crate::raw::read_json;
use crate::report::{Count, Told};

/// What texts are for where nobody says it: the API wants to know.
const INPUT_TYPE: &str = "search_document";

/// Writes the request that says this call.
pub(crate) fn write(call: &Call<'_>, request: &mut Request) {
    let mut json = Json::with_capacity(1024);
    json.object(|json| {
        json.say("model", &call.model);
        json.say(
            "input_type",
            call.input_type.as_deref().unwrap_or(INPUT_TYPE),
        );
        json.key("texts")
            .list(|json| call.texts.iter().for_each(|text| json.text(text)));
        json.key("embedding_types").list(|json| json.word("float"));
        if let Some(dimensions) = call.dimensions {
            json.key("output_dimension").raw(dimensions);
        }
    });
    request.path = Some("/embed".into());
    request.body = vec![json.into_bytes().into()];
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    embeddings: Option<Embeddings<'a>>,
    #[serde(default)]
    meta: Told<Meta>,
}

#[derive(Deserialize)]
struct Embeddings<'a> {
    #[serde(borrow)]
    float: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Clone, Copy, Default, Debug)]
#[serde(default)]
struct Meta {
    billed_units: Told<Units>,
    tokens: Told<Units>,
}

#[derive(Deserialize, Clone, Copy, Default, Debug)]
#[serde(default)]
struct Units {
    input_tokens: Count,
}

/// Reads an answer.
pub(crate) fn read(json: &[u8]) -> Result<Made<'_>, Stop> {
    let document: Document<'_> = read_json(json)?;
    let vectors = document.embeddings.and_then(|made| made.float);
    let meta = document.meta.0.unwrap_or_default();
    let [read, billed] =
        [meta.tokens, meta.billed_units].map(|units| units.0.unwrap_or_default().input_tokens.0);
    Ok(Made {
        vectors: vectors.into_iter().flatten().map(RawValue::get).collect(),
        tokens: read.or(billed),
    })
}
