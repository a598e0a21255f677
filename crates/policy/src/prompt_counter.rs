//! What a prompt comes to, for callers that ask nothing else.
//!
//! Not here: counts of calls that run (`counting`), tokenizers (`tokens`).

use std::sync::Arc;

use bytes::Bytes;

use crate::caller::Later;
use crate::operation::Operation;

/// A prompt of which somebody asks what it comes to.
#[derive(Debug)]
pub struct AskedPrompt {
    /// Its tokenizer's.
    pub key: u64,
    /// Its model, as it may be a label.
    pub model: Arc<str>,
    /// Who would be sent it.
    pub backend: Arc<str>,
    /// The number of the workload that asks.
    pub workload: usize,
    /// The call that it is of.
    pub operation: Operation,
    /// The body of that.
    pub body: Vec<Bytes>,
    /// The engine's clock, seconds since 1970.
    pub clock_s: i64,
}

/// Counts prompts for who asks.
pub trait PromptCounter: std::fmt::Debug + Send + Sync {
    /// Its tokens, where they are known exactly.
    fn count(&self, prompt: AskedPrompt) -> Later<Option<u64>>;
}
