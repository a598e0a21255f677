//! Scores of pairs of texts (`/score`) and documents by their scores (`/rerank`), in the shapes of vLLM.
//!
//! A score is the share of the query's different tokens that the document has, with a small part that follows from the
//! two texts alone, so that scores differ: what is alike comes first.
//! Invariant: a score is between 0 and 1 and the same for the same texts; usage counts both texts of every pair.
//! Not here: a model that understood them.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::config::EngineConfig;
use crate::error::Refusal;
use crate::generation::Identity;
use crate::json::Json;
use crate::model::Model;
use crate::text::hash;
use crate::tokenizer::TokenId;
use crate::validate;

/// More texts in one call are refused.
const MAX_TEXTS: usize = 2048;
/// Most bytes of all texts of a member together.
const MAX_BYTES: usize = 1 << 22;
/// Share of a score that follows from the texts as a whole.
const OWN_SHARE: f64 = 0.01;

#[derive(Deserialize)]
pub(crate) struct ScoreRequest {
    #[serde(alias = "queries", alias = "data_1")]
    text_1: Json,
    #[serde(alias = "documents", alias = "items", alias = "data_2")]
    text_2: Json,
}

#[derive(Deserialize)]
pub(crate) struct RerankRequest {
    query: Json,
    documents: Json,
    #[serde(default)]
    top_n: Option<i64>,
}

/// A text and its tokens.
struct Text {
    text: String,
    tokens: usize,
    /// The tokens, each once.
    different: HashSet<TokenId>,
    /// Of the text, as the beginning of a pair.
    hash: u64,
}

/// Scores of pairs, and the tokens that they took.
pub(crate) fn score(
    config: &EngineConfig,
    model: &Model,
    request: &ScoreRequest,
    who: &Identity,
) -> Result<(Value, u64), Refusal> {
    let (left, right) = (
        texts(model, &request.text_1, "text_1")?,
        texts(model, &request.text_2, "text_2")?,
    );
    if left.len() != 1 && left.len() != right.len() {
        let why = "Input lengths must be either 1:1, 1:N or N:N";
        return Err(Refusal::bad_request(why).about("text_1"));
    }
    let (mut data, mut total) = (Vec::new(), 0);
    for (index, document) in right.iter().enumerate() {
        let query = &left[if left.len() == 1 { 0 } else { index }];
        total += tokens_of(config, query, document)?;
        data.push(json!({"index": index, "object": "score", "score": alike(query, document)}));
    }
    let answer = json!({
        "id": who.id, "object": "list", "created": who.created, "model": who.model, "data": data,
        "usage": {"prompt_tokens": total, "total_tokens": total, "completion_tokens": 0,
            "prompt_tokens_details": null},
    });
    Ok((answer, total))
}

/// The documents that are most like the query, the likest first, and the tokens that it took.
pub(crate) fn rerank(
    config: &EngineConfig,
    model: &Model,
    request: &RerankRequest,
    who: &Identity,
) -> Result<(Value, u64), Refusal> {
    let queries = texts(model, &request.query, "query")?;
    let [query] = queries.as_slice() else {
        return Err(Refusal::bad_request("query must be one text").about("query"));
    };
    let documents = texts(model, &request.documents, "documents")?;
    let (mut results, mut total) = (Vec::new(), 0);
    for (index, document) in documents.iter().enumerate() {
        total += tokens_of(config, query, document)?;
        results.push((alike(query, document), index));
    }
    results.sort_by(|a, b| b.0.total_cmp(&a.0));
    let top = match request.top_n.unwrap_or(0) {
        0 => results.len(),
        top => usize::try_from(top)
            .map_err(|_| Refusal::bad_request("top_n must not be negative").about("top_n"))?,
    };
    let results: Vec<Value> = results
        .iter()
        .take(top)
        .map(|(score, index)| {
            json!({"index": index, "document": {"text": documents[*index].text, "multi_modal": null},
                "relevance_score": score})
        })
        .collect();
    let usage = json!({"prompt_tokens": total, "total_tokens": total});
    let answer = json!({"id": who.id, "model": who.model, "usage": usage, "results": results});
    Ok((answer, total))
}

/// A text, texts, or the parts of a message's content, of which each is a text.
fn texts(model: &Model, input: &Json, member: &'static str) -> Result<Vec<Text>, Refusal> {
    let fault = |why: String| Refusal::bad_request(why).about(member);
    let several = match input.get("content").unwrap_or(input) {
        Json::Array(several) => several.as_slice(),
        one => std::slice::from_ref(one),
    };
    if several.is_empty() {
        return Err(fault(format!("{member}: at least one text is needed")));
    }
    if several.len() > MAX_TEXTS {
        return Err(fault(format!("{member}: more than {MAX_TEXTS} texts")));
    }
    let mut bytes = 0;
    let text = |(i, one): (usize, &Json)| {
        let mut media = 0;
        let parts = match one {
            part @ Json::Object(_) => Json::Array(vec![part.clone()]),
            other => other.clone(),
        };
        let text = validate::content(&parts, &mut media, "");
        let text = text.map_err(|why| fault(format!("{member}[{i}]: {why}")))?;
        if media > 0 {
            return Err(fault(format!(
                "{member}[{i}]: this model is not a multimodal model"
            )));
        }
        bytes += text.len();
        if bytes > MAX_BYTES {
            return Err(fault(format!(
                "{member}: the texts have more than {MAX_BYTES} bytes together"
            )));
        }
        let tokens = model.tokenizer().encode(&text);
        Ok(Text {
            hash: hash(0xcbf2_9ce4_8422_2325, text.as_bytes()),
            tokens: tokens.len(),
            different: tokens.into_iter().collect(),
            text,
        })
    };
    several.iter().enumerate().map(text).collect()
}

/// Tokens of a pair, if the context holds them.
fn tokens_of(config: &EngineConfig, query: &Text, document: &Text) -> Result<u64, Refusal> {
    let tokens = query.tokens + document.tokens;
    if tokens > config.max_model_len {
        return Err(Refusal::bad_request(format!(
            "This model's maximum context length is {} tokens. However, your request has {tokens} input tokens.",
            config.max_model_len
        )));
    }
    Ok(tokens as u64)
}

fn alike(query: &Text, document: &Text) -> f64 {
    let asked = &query.different;
    let both = asked.intersection(&document.different).count();
    let shared = both as f64 / asked.len().max(1) as f64;
    let bits = hash(query.hash, document.text.as_bytes());
    let own = (bits >> 11) as f64 / (1u64 << 53) as f64;
    shared * (1.0 - OWN_SHARE) + own * OWN_SHARE
}
