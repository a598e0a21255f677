//! What is written: an admission, how far it came, and what it came to.
//!
//! Invariant: no field can hold a prompt or a credential; both witnesses of a count are kept beside
//! the one that is billed; an unknown price has no cost.
//! Not here: how a row becomes columns (`columns`), how a policy record becomes a row (`row_of`).

use std::sync::Arc;

use policy::price::Pico;
use policy::record::{Count, Outcome, Tokens};

use crate::id::RecordId;

/// An exchange that was let in and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// The record's name.
    pub id: RecordId,
    /// Milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// The request id, the client's or ours.
    pub request_id: Box<str>,
    /// W3C trace id, 32 hex digits.
    pub trace_id: Option<Box<str>>,
    /// Who asked.
    pub workload: Option<Box<str>>,
    /// The budget group that pays.
    pub budget_group: Option<Box<str>>,
    /// Which rule took it.
    pub route: Option<Box<str>>,
    /// Where it goes.
    pub backend: Option<Box<str>>,
    /// The model the client named.
    pub model_asked: Option<Box<str>>,
    /// The model sent upstream.
    pub model_sent: Option<Box<str>>,
    /// Tokens held for it, prompt and completion.
    pub reserved: u64,
    /// The most tokens it can come to; `None` when the call has no cap.
    pub at_most: Option<u64>,
}

/// How far an open exchange has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Of which record.
    pub id: RecordId,
    /// Tokens that are certain by now, prompt and completion.
    pub tokens: u64,
    /// Response bytes forwarded.
    pub bytes_out: u64,
}

/// Whether a row says what happened or what may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The exchange ended and this is its record.
    Settled,
    /// The gate ended first: the truth lies within the row's bounds.
    Indeterminate,
}

impl State {
    /// The word in the column.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Indeterminate => "indeterminate",
        }
    }
}

/// A count with both its witnesses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Witnesses {
    /// What is billed, and who said so.
    pub billed: Count,
    /// What the engine said, believed or not.
    pub reported: Option<u64>,
    /// What the gate counted.
    pub counted: Option<u64>,
}

/// What an exchange was charged by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Price {
    /// Content hash of the price.
    pub id: Box<str>,
    /// ISO 4217 code.
    pub currency: Box<str>,
    /// What it came to; `None` when a count it needs is not known.
    pub cost: Option<Pico>,
}

/// The whole record of an exchange that ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The record's name; its admission had the same.
    pub id: RecordId,
    /// Whether it ended or the gate did.
    pub state: State,
    /// The request id, the client's or ours.
    pub request_id: Box<str>,
    /// W3C trace id, 32 hex digits.
    pub trace_id: Option<Box<str>>,
    /// Milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// Milliseconds since the Unix epoch; the period that it is billed in.
    pub ended_unix_ms: u64,
    /// Who asked.
    pub workload: Option<Box<str>>,
    /// The budget group that pays.
    pub budget_group: Option<Box<str>>,
    /// Which rule took it.
    pub route: Option<Box<str>>,
    /// Where the last attempt went.
    pub backend: Option<Box<str>>,
    /// Its address's name.
    pub endpoint: Option<Box<str>>,
    /// What was asked, such as `chat`.
    pub operation: Option<Box<str>>,
    /// The model the client named.
    pub model_asked: Option<Box<str>>,
    /// The model sent upstream.
    pub model_sent: Option<Box<str>>,
    /// Whether the answer was an event stream.
    pub streamed: bool,
    /// Status sent to the client; 0 when none was.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// Stable code of a refusal or failure, else empty.
    pub code: Box<str>,
    /// Upstream tries made.
    pub attempts: u32,
    /// Input tokens.
    pub prompt: Witnesses,
    /// Output tokens.
    pub completion: Witnesses,
    /// Prompt tokens that the engine had cached, as reported.
    pub cached: Option<u64>,
    /// Completion tokens spent on reasoning, as reported.
    pub reasoning: Option<u64>,
    /// Prompt tokens written to a cache that keeps them five minutes, as reported.
    pub cache_write_5m: Option<u64>,
    /// Prompt tokens written to a cache that keeps them an hour, as reported.
    pub cache_write_1h: Option<u64>,
    /// Audio tokens of the prompt, as reported.
    pub audio_prompt: Option<u64>,
    /// Audio tokens of the completion, as reported.
    pub audio_completion: Option<u64>,
    /// The engine reported something impossible.
    pub usage_invalid: bool,
    /// The engine's counts do not add up, and are billed all the same.
    pub usage_doubtful: bool,
    /// Attempts, other than the one whose answer is billed, that an upstream may have run and charged.
    pub unconfirmed_attempts: u32,
    /// Tokens estimated for those attempts, part of what is billed.
    pub unconfirmed_tokens: u64,
    /// Why no usage was reported where an estimate is billed; empty where there is nothing to explain.
    pub estimate_reason: Box<str>,
    /// The id that the upstream gave the call.
    pub upstream_request_id: Option<Box<str>>,
    /// Tokens that were held for it.
    pub reserved: Option<u64>,
    /// When indeterminate, the fewest tokens it came to.
    pub at_least: Option<u64>,
    /// When indeterminate, the most; `None` when nobody knows.
    pub at_most: Option<u64>,
    /// The price, where it is known.
    pub price: Option<Price>,
    /// Request body bytes received.
    pub bytes_in: u64,
    /// Response body bytes forwarded.
    pub bytes_out: u64,
    /// First byte of the request to last byte of the response, microseconds.
    pub duration_us: u64,
    /// First byte of the request to first body byte of the response, microseconds.
    pub first_byte_us: Option<u64>,
    /// Waiting for the upstream's response head, microseconds.
    pub upstream_us: Option<u64>,
    /// The gate's own time, microseconds.
    pub own_us: Option<u64>,
}

impl Settlement {
    /// What is left to say of an exchange whose end nobody saw: between what it had come to and
    /// what it could have. Its costs are not known.
    #[must_use]
    pub fn indeterminate(open: Admission, progress: Progress, ended_unix_ms: u64) -> Self {
        Self {
            id: open.id,
            state: State::Indeterminate,
            request_id: open.request_id,
            trace_id: open.trace_id,
            started_unix_ms: open.started_unix_ms,
            ended_unix_ms: ended_unix_ms.max(open.started_unix_ms),
            workload: open.workload,
            budget_group: open.budget_group,
            route: open.route,
            backend: open.backend,
            endpoint: None,
            operation: None,
            model_asked: open.model_asked,
            model_sent: open.model_sent,
            streamed: false,
            status: 0,
            outcome: Outcome::Failed,
            code: "gate_ended".into(),
            attempts: 0,
            prompt: Witnesses::default(),
            completion: Witnesses::default(),
            cached: None,
            reasoning: None,
            cache_write_5m: None,
            cache_write_1h: None,
            audio_prompt: None,
            audio_completion: None,
            usage_invalid: false,
            usage_doubtful: false,
            unconfirmed_attempts: 0,
            unconfirmed_tokens: 0,
            estimate_reason: "".into(),
            upstream_request_id: None,
            reserved: Some(open.reserved),
            at_least: Some(progress.tokens),
            at_most: open.at_most.map(|most| most.max(progress.tokens)),
            price: None,
            bytes_in: 0,
            bytes_out: progress.bytes_out,
            duration_us: 0,
            first_byte_us: None,
            upstream_us: None,
            own_us: None,
        }
    }
}

/// A settlement that waits for the gate's own count, and the price it was charged by.
#[derive(Debug)]
pub struct PendingRow {
    /// What is settled, with what is known without the count.
    pub row: Settlement,
    /// The price, where there is one.
    pub price: Option<Arc<policy::price::Price>>,
}

impl PendingRow {
    /// Puts the gate's counts beside what was reported, and charges anew where `billed` is another amount.
    pub fn complete(
        &mut self,
        prompt: Option<u64>,
        completion: Option<u64>,
        billed: Option<&Tokens>,
    ) {
        let Self { row, price } = self;
        row.prompt.witness(prompt);
        row.completion.witness(completion);
        let Some(billed) = billed else {
            return;
        };
        let before = [row.prompt.billed, row.completion.billed];
        [row.prompt.billed, row.completion.billed] = [billed.prompt, billed.completion];
        if let (Some(by), Some(charged)) = (price, &mut row.price)
            && before != [billed.prompt, billed.completion]
        {
            charged.cost = by.cost(billed);
        }
    }
}

impl Witnesses {
    fn witness(&mut self, counted: Option<u64>) {
        // Where nothing is billed, nothing was used that costs tokens.
        if counted.is_some() && self.billed != Count::Unknown {
            self.counted = counted;
        }
    }
}

#[cfg(test)]
mod tests;
