//! What is written: an admission, how far it came, and what it came to.
//!
//! Invariant: no field can hold a prompt or a credential; both witnesses of a count are kept beside
//! the one that is billed; an unknown price has no cost.
//! Not here: how a row becomes columns (`columns`), how a policy record becomes a row (`row_of`).

use std::borrow::Cow;
use std::sync::Arc;

use policy::attribution::Attribution;
use policy::price::{Charge, Pico};
use policy::record::{Count, Outcome, Record, Tokens};

use crate::id::RecordId;

/// What an exchange belongs to, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Named {
    /// W3C trace id, 32 hex digits.
    pub trace_id: Option<Box<str>>,
    /// Who asked.
    pub workload: Option<Box<str>>,
    /// The budget group that pays.
    pub budget_group: Option<Box<str>>,
    /// Which rule took it.
    pub route: Option<Box<str>>,
    /// Where it goes; of one that ended, where the last attempt went.
    pub backend: Option<Box<str>>,
    /// Whose key, which user, which tags.
    pub who: Attribution,
    /// Who issued the token that names the user: within that alone the name says who it is.
    pub issuer: Option<Box<str>>,
    /// What a message to servers of tools asks for, where it is a method that the gate knows.
    pub method: Option<Cow<'static, str>>,
    /// What it is about: the whole name of a tool or prompt, or a resource's URI.
    pub tool: Option<Box<str>>,
}

/// An exchange that was let in and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admission {
    /// The record's name.
    pub id: RecordId,
    /// Milliseconds since the Unix epoch.
    pub started_unix_ms: u64,
    /// The request id, the client's or ours.
    pub request_id: Box<str>,
    /// What it belongs to.
    pub named: Named,
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

/// The witnesses of a count, beside what is billed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Witnesses {
    /// What the engine said, believed or not.
    pub reported: Option<u64>,
    /// What the gate counted.
    pub counted: Option<u64>,
    /// Why the gate has no count of its own where it should have one, in a word.
    pub uncounted: Option<&'static str>,
    /// Why that count is not exact, in a word; none where it is, or is not told.
    pub doubt: Option<&'static str>,
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

/// An exchange that ended: policy's record of it, names in place of its ids, and what is known beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// The row's name; its admission had the same.
    pub id: RecordId,
    /// Whether it ended or the gate did.
    pub state: State,
    /// What policy knows of it; the counts in it are what is billed.
    pub record: Record,
    /// Milliseconds since the Unix epoch; the period that it is billed in.
    pub ended_unix_ms: u64,
    /// What it belongs to.
    pub named: Named,
    /// The name of the address that the last attempt went to.
    pub endpoint: Option<Box<str>>,
    /// What it is charged, by name, where the price is known.
    pub price: Option<Price>,
    /// Witnesses of the input tokens.
    pub prompt: Witnesses,
    /// Witnesses of the output tokens.
    pub completion: Witnesses,
    /// Tokens that were held for it.
    pub reserved: Option<u64>,
    /// When indeterminate, the fewest tokens it came to.
    pub at_least: Option<u64>,
    /// When indeterminate, the most; `None` when nobody knows.
    pub at_most: Option<u64>,
}

impl Settlement {
    /// What is left to say of an exchange whose end nobody saw: between what it had come to and
    /// what it could have. Its costs are not known.
    #[must_use]
    pub fn indeterminate(open: Admission, progress: Progress, ended_unix_ms: u64) -> Self {
        Self {
            id: open.id,
            state: State::Indeterminate,
            ended_unix_ms: ended_unix_ms.max(open.started_unix_ms),
            record: Record {
                id: open.request_id,
                started_unix_ms: open.started_unix_ms,
                model_asked: open.model_asked,
                model_sent: open.model_sent.map(Arc::from),
                outcome: Outcome::Failed,
                code: "gate_ended",
                bytes_out: progress.bytes_out,
                ..Record::default()
            },
            named: open.named,
            endpoint: None,
            price: None,
            prompt: Witnesses::default(),
            completion: Witnesses::default(),
            reserved: Some(open.reserved),
            at_least: Some(progress.tokens),
            at_most: open.at_most.map(|most| most.max(progress.tokens)),
        }
    }

    /// Says why the gate has no counts of its own, where it should have them.
    pub fn uncounted(&mut self, prompt: Option<&'static str>, completion: Option<&'static str>) {
        self.prompt.uncounted = prompt;
        self.completion.uncounted = completion.filter(|_| self.record.has_text_to_count());
    }

    /// Says why the gate's count of the prompt is not exact, where it has one.
    pub fn doubt(&mut self, prompt: Option<&'static str>) {
        self.prompt.doubt = prompt.filter(|_| self.prompt.counted.is_some());
    }

    /// Puts the gate's counts beside what was reported, and in place of what is billed what `billed` says.
    pub fn count(
        &mut self,
        prompt: Option<u64>,
        completion: Option<u64>,
        billed: Option<(Tokens, Option<Charge>)>,
    ) {
        let of = &self.record.tokens;
        self.prompt.witness(prompt, of.prompt);
        self.completion.witness(completion, of.completion);
        let Some((tokens, charge)) = billed else {
            return;
        };
        (self.record.tokens, self.record.charge) = (tokens, charge);
        if let (Some(charge), Some(price)) = (charge, &mut self.price) {
            price.cost = charge.cost;
        }
    }
}

impl Witnesses {
    fn witness(&mut self, counted: Option<u64>, billed: Count) {
        // Where nothing is billed, nothing was used that costs tokens.
        if counted.is_some() && billed != Count::Unknown {
            self.counted = counted;
        }
    }
}

#[cfg(test)]
mod tests;
