//! Embeddings at Google's `embedContent` and `batchEmbedContents` (<https://ai.google.dev/api/embeddings>,
//! <https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/text-embeddings-api>).
//!
//! Not here: the client's call and answer (`crate::embeddings`), errors (`super::read_error`).

use serde::Deserialize;
use serde_json::value::RawValue;
use wire::filter::{Request, Stop};

use super::Place;
use crate::embeddings::{Call, Made, unknown};
use crate::fault::Result;
use crate::json::Json;
use crate::raw::{Raw, read_json};
use crate::report::{Count, Told};

/// Writes the request that says this call.
pub(crate) fn write(call: &Call<'_>, place: Place, request: &mut Request) -> Result<()> {
    if call.input_type.is_some() {
        return Err(unknown().within("input_type"));
    }
    let (model, dimensions) = (&call.model, call.dimensions);
    let embed = |text: &str, json: &mut Json| {
        json.object(|json| {
            if place == Place::Studio {
                json.say("model", &format!("models/{}", super::bare(model)));
            }
            members(text, dimensions, place, json);
        });
    };
    let mut json = Json::with_capacity(1024);
    let verb = match (&call.texts[..], place) {
        // Vertex AI has the other call for few of its models.
        ([text], Place::Vertex) => {
            json.object(|json| members(text, dimensions, place, json));
            "embedContent"
        }
        (texts, _) => {
            json.object(|json| {
                json.key("requests")
                    .list(|json| texts.iter().for_each(|text| embed(text, json)));
            });
            "batchEmbedContents"
        }
    };
    request.path = Some(place.path(model, verb).into());
    request.body = vec![json.into_bytes().into()];
    Ok(())
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

/// Reads an answer.
pub(crate) fn read(json: &[u8]) -> std::result::Result<Made<'_>, Stop> {
    let document: Document<'_> = read_json(json)?;
    let all = document.embeddings.into_iter().flatten();
    let all = all.chain(document.embedding);
    let used = document.usage_metadata.0.unwrap_or_default();
    Ok(Made {
        vectors: all.map(|one| one.values.get()).collect(),
        tokens: used.prompt_token_count.0,
    })
}
