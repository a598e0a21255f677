//! Log probabilities of a chat answer's tokens, in the shape that was asked for.
//!
//! Invariant: as many entries as tokens that say something.
//! Not here: the numbers (`logprobs`).

use std::ops::Range;

use serde_json::{Value, json};

use crate::error::Refusal;
use crate::logprobs::{alternative, of_rank};
use crate::sampling::check_logprobs;
use crate::turn::{Channel, Turn};

/// How many alternatives are to be shown, or `None` if no log probabilities are.
pub(super) fn asked(
    logprobs: Option<bool>,
    top: Option<i64>,
    vocabulary: usize,
) -> Result<Option<usize>, Refusal> {
    let fault = |why: &str| Err(Refusal::bad_request(why).about("top_logprobs"));
    match (logprobs.unwrap_or(false), top) {
        (_, Some(..=-2)) => fault("`top_logprobs` must be a positive value or -1."),
        (false, Some(-1 | 1..)) => {
            fault("when using `top_logprobs`, `logprobs` must be set to true.")
        }
        (false, _) => Ok(None),
        (true, top) => {
            let top = top.unwrap_or(0);
            check_logprobs("sample", top, vocabulary)
                .map_err(|why| Refusal::bad_request(why).about("logprobs"))?;
            Ok(usize::try_from(top).ok())
        }
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

fn entry(text: &str, rank: usize) -> Value {
    let token = alternative(text, rank);
    json!({"token": token, "logprob": of_rank(rank), "bytes": token.as_bytes()})
}
