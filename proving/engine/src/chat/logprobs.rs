//! Log probabilities of a chat answer's tokens, in the shape that was asked for.
//!
//! Invariant: as many entries as tokens that say something; the probabilities of a token and its alternatives never
//! add up to more than 1. They follow from the position and mean nothing.
//! Not here: plain completions, which have none.

use std::ops::Range;

use serde_json::{Value, json};

use crate::error::Refusal;
use crate::turn::{Channel, Turn};

const MAX_TOP: usize = 20;

/// How many alternatives are to be shown, or `None` if no log probabilities are.
pub(super) fn asked(logprobs: Option<bool>, top: Option<usize>) -> Result<Option<usize>, Refusal> {
    let fault = |why: String| Err(Refusal::bad_request(why).about("top_logprobs"));
    match (logprobs.unwrap_or(false), top) {
        (false, Some(1..)) => {
            fault("when using `top_logprobs`, `logprobs` must be set to true.".to_owned())
        }
        (false, _) => Ok(None),
        (true, Some(top)) if top > MAX_TOP => {
            fault(format!("top_logprobs must be at most {MAX_TOP}, got {top}"))
        }
        (true, top) => Ok(Some(top.unwrap_or(0))),
    }
}

/// Those of the tokens in `range` that say something.
pub(super) fn of(turn: &Turn, range: Range<usize>, top: usize) -> Value {
    let said = range.filter(|i| turn.token(*i).0 == Channel::Content);
    let entries: Vec<Value> = said
        .map(|i| {
            let text = turn.token(i).1;
            let mut one = entry(text, 0);
            one["top_logprobs"] = (0..top).map(|rank| entry(text, rank)).collect();
            one
        })
        .collect();
    json!({"content": entries})
}

/// The token itself at rank 0; below it the same token with spaces before it, half as likely each time.
fn entry(text: &str, rank: usize) -> Value {
    let token = format!("{}{text}", " ".repeat(rank));
    let probability = 0.5f64.powi(rank as i32 + 1);
    json!({"token": token, "logprob": probability.ln(), "bytes": token.as_bytes()})
}
