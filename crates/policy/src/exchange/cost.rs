//! What a call of inference may cost in tokens.
//!
//! Invariant: a completion is capped by a member only that every engine of this operation goes by, and by the
//! greatest of several: engines differ in which one they take. What only some obey makes a call hold more, and never less.
//! Not here: the estimate ([`crate::estimate`]), taking ([`crate::front`]), money ([`crate::price`]).

use wire::call::CallHead;

use crate::estimate::Estimator;
use crate::front::{Demand, Most};
use crate::operation::Operation;

/// Tokens that an engine may put around a prompt that says little: a template's system text.
pub(super) const FRAME_TOKENS_MAX: u64 = 1024;
/// A budget holds at least one token for so many bytes of a body. A text has one for about four, so padded calls that teach
/// a route a smaller estimate have it hold two fifths of a text's tokens, and no less.
const BYTES_PER_TOKEN_OF_BUDGETS: u64 = 10;

/// Sound and images have a token for so many bytes, where nothing is reported: a second of sound has about ten, in 4 to 32 KiB.
const BYTES_PER_TOKEN_OF_FORMS: u64 = 1 << 10;

/// What a request of `bytes` may cost, of whose body `call` is what was read; `output_max` is the most
/// that one answer of its route can have.
pub(super) fn demand(
    operation: Operation,
    call: Option<&CallHead>,
    bytes: u64,
    estimator: &Estimator,
    output_max: Option<u64>,
) -> Demand {
    let cap = call.and_then(|call| cap(operation, call));
    let each = cap.map(u64::from).or(output_max);
    let (completion, most) = match call {
        Some(call) if operation.generates() => {
            let answers = answers(operation, call);
            let least = u64::from(least(operation, call)).saturating_mul(answers);
            let held = estimator.completion(each, answers).max(least);
            let most = output_max.and_then(|most| {
                is_capped_at_all(operation).then(|| most.saturating_mul(answers).max(held))
            });
            (held, most.into())
        }
        Some(call) => (0, pieces(operation, call)),
        None => (0, Most::Unsaid),
    };
    let ids = call.and_then(|call| match operation {
        Operation::Completions => call.prompts.token_ids,
        _ => None,
    });
    let (prompt, prompt_least, prompt_charged) = match ids {
        Some(ids) => (ids, ids, ids),
        None if operation.is_form() => {
            let tokens = bytes.div_ceil(BYTES_PER_TOKEN_OF_FORMS);
            (tokens, tokens, tokens)
        }
        None if operation.is_metered() => {
            let prompt = estimator.prompt(bytes);
            let least = prompt.min(Estimator::default().prompt(bytes));
            let of_budgets = prompt.max(bytes / BYTES_PER_TOKEN_OF_BUDGETS);
            (prompt, least, of_budgets)
        }
        None => (0, 0, 0),
    };
    Demand {
        prompt,
        prompt_least,
        prompt_charged,
        completion,
        is_capped: cap.is_some(),
        is_bounded: each.is_some(),
        most,
    }
}

/// What such a call asks for that is billed by the piece.
fn pieces(operation: Operation, call: &CallHead) -> Most {
    match operation {
        Operation::Images | Operation::ImageEdits => Most::Pieces(call.n.unwrap_or(1).max(1)),
        _ => Most::Unsaid,
    }
}

/// Whether a cap is of all that such a call generates: of a response, none is.
fn is_capped_at_all(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::Chat | Operation::Completions | Operation::Messages | Operation::GenerateContent
    )
}

/// The most that a call of `bytes` can come to. Each token of a text is at least one byte of
/// the body; what the body only refers to (an image's address, an earlier response) is not in it.
pub(super) fn at_most(demand: Demand, bytes: u64, operation: Operation) -> Option<u64> {
    let prompt = bytes.saturating_add(FRAME_TOKENS_MAX);
    match operation {
        Operation::Chat
        | Operation::Completions
        | Operation::Messages
        | Operation::GenerateContent => demand
            .is_bounded
            .then(|| prompt.saturating_add(demand.completion)),
        Operation::Embeddings | Operation::EmbedContent | Operation::Moderations => Some(prompt),
        Operation::CountTokens | Operation::InputTokens | Operation::CountContent => Some(0),
        Operation::Responses
        | Operation::Models
        | Operation::GeminiModels
        | Operation::Rerank
        | Operation::Speech
        | Operation::Transcriptions
        | Operation::Images
        | Operation::ImageEdits
        | Operation::Converse
        | Operation::CohereChat
        | Operation::CohereEmbed
        | Operation::Unread
        | Operation::Http
        | Operation::KeptResponse
        | Operation::Files
        | Operation::Batches
        | Operation::BatchUsage
        | Operation::ResponsesSocket
        | Operation::RealtimeSocket
        | Operation::Realtime
        | Operation::Mcp => None,
    }
}

/// The most output tokens that one answer may have, where the call says so in a member that its operation
/// has. Of the two that a chat call can have, vLLM prefers the newer and SGLang the older one, and both take 0
/// for none; llama.cpp has `n_predict` besides, in both APIs of OpenAI: alone it is no cap, because other engines know nothing of it,
/// and beside one the greater counts.
fn cap(operation: Operation, call: &CallHead) -> Option<u32> {
    match operation {
        Operation::Chat => {
            let greatest = call.max_completion_tokens.max(call.max_tokens);
            let said = greatest.filter(|cap| *cap > 0);
            said.map(|cap| cap.max(call.n_predict.unwrap_or(0)))
        }
        Operation::Completions => call
            .max_tokens
            .map(|cap| cap.max(call.n_predict.unwrap_or(0))),
        Operation::Messages => call.max_tokens,
        Operation::Responses | Operation::GenerateContent => call.max_output_tokens,
        Operation::Embeddings
        | Operation::EmbedContent
        | Operation::CountContent
        | Operation::Models
        | Operation::GeminiModels
        | Operation::CountTokens
        | Operation::InputTokens
        | Operation::Moderations
        | Operation::Rerank
        | Operation::Speech
        | Operation::Transcriptions
        | Operation::Images
        | Operation::ImageEdits
        | Operation::Converse
        | Operation::CohereChat
        | Operation::CohereEmbed
        | Operation::Unread
        | Operation::Http
        | Operation::KeptResponse
        | Operation::Files
        | Operation::Batches
        | Operation::BatchUsage
        | Operation::ResponsesSocket
        | Operation::RealtimeSocket
        | Operation::Realtime
        | Operation::Mcp => None,
    }
}

/// What one answer may have all the same, by members that some engines obey: its least, and llama.cpp's cap where it is one.
fn least(operation: Operation, call: &CallHead) -> u32 {
    if call.min_tokens.is_none() && call.n_predict.is_none() || !operation.usage_on_request() {
        return 0;
    }
    let another = call.n_predict.filter(|cap| *cap < u32::MAX);
    call.min_tokens.max(another).unwrap_or(0)
}

/// How many answers are generated: so many of the best ones for each prompt.
fn answers(operation: Operation, call: &CallHead) -> u64 {
    let says_many = call.n.is_some() || call.best_of.is_some() || call.beam_width.is_some();
    let each = match says_many {
        true => u64::from(call.n.max(call.best_of).max(call.beam_width).unwrap_or(1)),
        // Most say nothing.
        false => 1,
    };
    match operation {
        Operation::Chat | Operation::GenerateContent => each,
        Operation::Completions => each.saturating_mul(call.prompts.count),
        _ => 1,
    }
}
