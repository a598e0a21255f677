//! Log probabilities: what stands in for those that a model would give.
//!
//! Invariant: the probabilities of a token and its alternatives never add up to more than 1, and the token itself is
//! always the likeliest. They follow from the rank alone and mean nothing.
//! Not here: the shapes of chat (`chat::logprobs`) and of plain completions (`completions::logprobs`).

use serde_json::{Map, Value, json};

use crate::error::Refusal;
use crate::tokenizer::{TokenId, Tokenizer};

/// Most log probabilities of one answer, those of prompts and alternatives included.
const MAX_ENTRIES: u64 = 1 << 18;

/// Refuses an answer of too many log probabilities: while they are written, all other calls wait.
pub(crate) fn check_entries(entries: u64, about: &'static str) -> Result<(), Refusal> {
    if entries <= MAX_ENTRIES {
        return Ok(());
    }
    let why = format!(
        "The answer would hold {entries} log probabilities, and {MAX_ENTRIES} is the most of this server. Ask for fewer \
         of each token, for fewer choices or prompts, or for shorter ones."
    );
    Err(Refusal::bad_request(why).about(about))
}

/// How many entries so many tokens have with `top` of each.
pub(crate) fn entries(tokens: u64, top: Option<usize>) -> u64 {
    top.map_or(0, |top| tokens.saturating_mul(top.max(1) as u64))
}

/// Of the token itself at rank 0, and half as likely each rank further.
pub(crate) fn of_rank(rank: usize) -> f64 {
    0.5f64
        .powi(i32::try_from(rank).unwrap_or(i32::MAX).saturating_add(1))
        .ln()
}

/// The text itself at rank 0; below it the same with spaces before it.
pub(crate) fn alternative(text: &str, rank: usize) -> String {
    format!("{}{text}", " ".repeat(rank))
}

/// `prompt_logprobs` as vLLM gives them: nothing of the first token, and of each other one a map from ids to it and
/// `top - 1` alternatives, which are the ids after it.
pub(crate) fn of_prompt(tokenizer: &Tokenizer, prompt: &[TokenId], top: usize) -> Value {
    let size = tokenizer.vocabulary_size().max(1);
    let entry = |id: TokenId| -> Value {
        let ranked = (0..top.max(1)).map(|rank| {
            let id = (id as usize + rank) % size;
            let text = TokenId::try_from(id)
                .ok()
                .and_then(|id| tokenizer.decode(&[id]).ok());
            let entry = json!({"logprob": of_rank(rank), "rank": rank + 1, "decoded_token": text});
            (id.to_string(), entry)
        });
        Value::Object(ranked.collect::<Map<_, _>>())
    };
    let rest = prompt.iter().skip(1).map(|id| entry(*id));
    prompt
        .first()
        .map(|_| Value::Null)
        .into_iter()
        .chain(rest)
        .collect()
}
