//! `/v1/embeddings`: a unit vector for each input, the same for the same text.
//!
//! Invariant: usage is the sum of the inputs' tokens; every vector has length 1.
//! Not here: any meaning in the vectors.

use experiment::random::Rng;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::completions;
use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::generation::Identity;
use crate::json::Json;
use crate::model::Model;
use crate::text::hash;

const DEFAULT_DIMENSIONS: usize = 384;
const MAX_DIMENSIONS: usize = 8192;
const MAX_INPUTS: usize = 2048;
/// Most numbers of all vectors of an answer together.
const MAX_NUMBERS: usize = 1 << 20;

#[derive(Deserialize)]
pub(crate) struct EmbeddingRequest {
    input: Json,
    #[serde(default)]
    dimensions: Option<usize>,
    #[serde(default)]
    encoding_format: Encoding,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Encoding {
    #[default]
    Float,
    Base64,
}

/// The answer, and the tokens that it took.
pub(crate) fn answer(
    config: &EngineConfig,
    model: &Model,
    request: &EmbeddingRequest,
    who: &Identity,
) -> Result<(Value, u64), Refusal> {
    let dimensions = request.dimensions.unwrap_or(DEFAULT_DIMENSIONS);
    if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
        return Err(
            Refusal::bad_request(format!("dimensions must be in 1..={MAX_DIMENSIONS}"))
                .about("dimensions"),
        );
    }
    let inputs = inputs(config, model, &request.input)?;
    if inputs.len() * dimensions > MAX_NUMBERS {
        let why = format!(
            "{} vectors of {dimensions} dimensions are more than {MAX_NUMBERS} numbers, the most of one answer",
            inputs.len()
        );
        return Err(Refusal::bad_request(why).about("dimensions"));
    }
    let total: u64 = inputs.iter().map(|input| input.tokens).sum();
    let data: Vec<Value> = inputs
        .iter()
        .enumerate()
        .map(|(i, input)| {
            let vector = vector(input.hash, dimensions);
            let embedding = match request.encoding_format {
                Encoding::Float => json!(vector),
                Encoding::Base64 => json!(base64(&vector)),
            };
            json!({"index": i, "object": "embedding", "embedding": embedding})
        })
        .collect();
    let answer = json!({
        "id": who.id, "object": "list", "created": who.created, "model": who.model, "data": data,
        "usage": {"prompt_tokens": total, "total_tokens": total, "completion_tokens": 0,
            "prompt_tokens_details": null},
    });
    Ok((answer, total))
}

/// An input as it counts: its tokens, and a hash from which its vector follows.
struct Input {
    tokens: u64,
    hash: u64,
}

fn inputs(config: &EngineConfig, model: &Model, input: &Json) -> Result<Vec<Input>, Refusal> {
    match input {
        Json::Array(several)
            if (1..=MAX_INPUTS).contains(&several.len())
                && several
                    .iter()
                    .all(|one| matches!(one, Json::String(_) | Json::Array(_))) =>
        {
            several
                .iter()
                .map(|one| self::one(config, model, one))
                .collect()
        }
        other => Ok(vec![one(config, model, other)?]),
    }
}

fn one(config: &EngineConfig, model: &Model, input: &Json) -> Result<Input, Refusal> {
    let Some(ids) = completions::prompt(input, model, true) else {
        return Err(
            Refusal::bad_request("input must be text, token ids, or a list of either")
                .about("input"),
        );
    };
    if ids.len() > config.max_model_len {
        return Err(Refusal::bad_request(format!(
            "This model's maximum context length is {} tokens. However, your request has {} input tokens.",
            config.max_model_len, ids.len()
        ))
        .about("input"));
    }
    let hash = ids
        .iter()
        .fold(config.seed, |h, id| hash(h, &id.to_le_bytes()));
    Ok(Input {
        tokens: ids.len() as u64,
        hash,
    })
}

fn vector(hash: u64, dimensions: usize) -> Vec<f32> {
    let mut rng = Rng::new(hash);
    let raw: Vec<f64> = (0..dimensions)
        .map(|_| (rng.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
        .collect();
    let norm = raw
        .iter()
        .map(|x| x * x)
        .sum::<f64>()
        .sqrt()
        .max(f64::MIN_POSITIVE);
    raw.iter().map(|x| (x / norm) as f32).collect()
}

/// Little-endian floats in standard base64 with padding.
fn base64(vector: &[f32]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = vector.iter().flat_map(|x| x.to_le_bytes()).collect();
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word =
            group.iter().fold(0u32, |w, b| w << 8 | u32::from(*b)) << (8 * (3 - group.len()));
        for i in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * i)) as usize & 63];
            out.push(if i <= group.len() {
                char::from(digit)
            } else {
                '='
            });
        }
    }
    out
}

#[cfg(test)]
mod tests;
