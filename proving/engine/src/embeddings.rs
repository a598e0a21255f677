//! `/v1/embeddings`: a unit vector for each input, the same for the same text.
//!
//! Invariant: usage is the sum of the inputs' tokens; every vector has length 1.
//! Not here: any meaning in the vectors.

use experiment::random::Rng;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::chat;
use crate::completions;
use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::generation::Identity;
use crate::json::Json;
use crate::model::Model;
use crate::text::hash;
use crate::tokenizer::TokenId;

const DEFAULT_DIMENSIONS: usize = 384;
const MAX_DIMENSIONS: usize = 8192;
const MAX_INPUTS: usize = 2048;
/// Most numbers of all vectors of an answer together.
const MAX_NUMBERS: usize = 1 << 20;

#[derive(Deserialize)]
pub(crate) struct EmbeddingRequest {
    #[serde(default)]
    input: Option<Json>,
    /// A conversation in place of `input`, or conversations.
    #[serde(default)]
    messages: Option<Json>,
    #[serde(flatten)]
    template: chat::TemplateMembers,
    #[serde(default)]
    add_special_tokens: Option<bool>,
    #[serde(default)]
    truncate_prompt_tokens: Option<i64>,
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
    let inputs = request.asked(config, model)?;
    let inputs = inputs
        .iter()
        .map(|ids| Input::of(config, ids))
        .collect::<Result<Vec<_>, _>>()?;
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

impl EmbeddingRequest {
    /// Its prompts, cut where it says so.
    pub(crate) fn asked(
        &self,
        config: &EngineConfig,
        model: &Model,
    ) -> Result<Vec<Vec<TokenId>>, Refusal> {
        let prompts = self.prompts(model)?;
        let kept = |prompt| self.kept(prompt, config.max_model_len);
        prompts.into_iter().map(kept).collect()
    }

    fn prompts(&self, model: &Model) -> Result<Vec<Vec<TokenId>>, Refusal> {
        let refused = |why: &str| Err(Refusal::bad_request(why).about("input"));
        let is_message = |one: &Json| matches!(one, Json::Object(_));
        let is_messages = |one: &Json| one.as_array().is_some_and(|all| all.iter().any(is_message));
        let given = match (&self.input, &self.messages) {
            (Some(_), Some(_)) => return refused("give either input or messages"),
            (Some(input), None) => input,
            (None, Some(messages)) => messages,
            (None, None) => return refused("validation error: missing field `input`"),
        };
        let several = given
            .as_array()
            .filter(|all| (1..=MAX_INPUTS).contains(&all.len()));
        if is_messages(given) {
            return Ok(vec![self.conversation(given, model)?]);
        }
        if self.messages.is_some() || several.is_some_and(|all| all.iter().any(is_messages)) {
            let Some(several) = several else {
                return refused("messages must be a list of messages, or of such lists");
            };
            return several
                .iter()
                .map(|one| self.conversation(one, model))
                .collect();
        }
        let adds_special = self.add_special_tokens.unwrap_or(true);
        let text = |one: &Json| {
            completions::prompt(one, model, adds_special).ok_or_else(|| {
                let why = "input must be text, token ids, or a list of either";
                Refusal::bad_request(why).about("input")
            })
        };
        match several {
            Some(several)
                if several
                    .iter()
                    .all(|one| matches!(one, Json::String(_) | Json::Array(_))) =>
            {
                several.iter().map(text).collect()
            }
            _ => Ok(vec![text(given)?]),
        }
    }

    /// A conversation, which opens no answer unless it is told to.
    fn conversation(&self, messages: &Json, model: &Model) -> Result<Vec<TokenId>, Refusal> {
        let mut arguments = self.template.clone().arguments()?;
        arguments.opens.get_or_insert(false);
        let messages = messages.as_array().unwrap_or_default().to_vec();
        let prompt = model.templated(&chat::conversation(messages, None, arguments)?)?;
        Ok(match self.add_special_tokens {
            Some(true) => model.tokenizer().with_special(prompt),
            _ => prompt,
        })
    }

    /// The end of a prompt, where the call says how much.
    fn kept(&self, mut prompt: Vec<TokenId>, most: usize) -> Result<Vec<TokenId>, Refusal> {
        let Some(kept) = self.truncate_prompt_tokens else {
            return Ok(prompt);
        };
        let kept = if kept == -1 {
            most
        } else {
            usize::try_from(kept).unwrap_or(0)
        };
        if kept == 0 || kept > most {
            let why = format!("truncate_prompt_tokens must be -1 or between 1 and {most}");
            return Err(Refusal::bad_request(why).about("truncate_prompt_tokens"));
        }
        prompt.drain(..prompt.len().saturating_sub(kept));
        Ok(prompt)
    }
}

impl Input {
    fn of(config: &EngineConfig, ids: &[TokenId]) -> Result<Self, Refusal> {
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
        Ok(Self {
            tokens: ids.len() as u64,
            hash,
        })
    }
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
