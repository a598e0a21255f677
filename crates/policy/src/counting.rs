//! What the gate counts for itself: how a worker hands over what there is to count.
//!
//! Invariant: a worker copies the bytes that it forwards once, in batches, and never waits for who
//! counts them. One answer may be held back for a bounded time until there is room for its call; what finds none then is
//! not counted, and nothing else about the exchange changes.
//! Not here: tokenizers, threads and what becomes of a count (`tokens`, `tollgate`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::exchange::Settled;
use crate::model::ModelPattern;
use crate::record::Record;
use crate::revision::Revision;
use crate::snapshot::{Snapshot, Tokenizer};
use crate::tokens::Tokens;

/// Response bytes that are gathered before they are handed over.
pub const BATCH_BYTES: usize = 16 << 10;

/// Finds the tokenizer of a model; of several that take it the most specific, which `config` puts first.
#[must_use]
pub fn tokenizer<'s>(of: &'s Snapshot, model: &str) -> Option<&'s Tokenizer> {
    of.tokenizers.iter().find(|t| t.models.takes(model))
}

/// The name under which a model may become a label: its own where the configuration has it, or
/// else the pattern that its tokenizer is found by. A client cannot make new ones.
#[must_use]
pub fn label(of: &Snapshot, tokenizer: &Tokenizer, model: &str) -> Arc<str> {
    let start = match &tokenizer.models {
        ModelPattern::Exact(name) => return Arc::clone(name),
        ModelPattern::Prefix(start) => start,
    };
    let known = of.models().find(|known| ***known == *model);
    known.map_or_else(|| Arc::from(format!("{start}*")), Arc::clone)
}

/// How many threads may count at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// So many, whatever the machine.
    Most(usize),
    /// So many in a thousand of the CPUs.
    Share(u64),
}

/// More threads than that never count.
pub const THREADS_MAX: usize = 64;

impl Threads {
    /// How many that is where there are `cpus`, the CPUs' worth of time that the process has: rounded, 1 to 64.
    #[must_use]
    pub fn on(self, cpus: f64) -> usize {
        let most = match self {
            Self::Most(most) => most,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                clippy::cast_precision_loss,
                reason = "small; a cast of what is no number is 0"
            )]
            Self::Share(per_mille) => (cpus * per_mille as f64 / 1000.0).round() as usize,
        };
        most.clamp(1, THREADS_MAX)
    }
}

/// Who counts, and within which bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Threads beside the workers.
    pub threads: Threads,
    /// Bytes of requests and answers that may wait to be counted.
    pub queue_bytes: usize,
    /// A request or an answer that is longer is not counted, bytes.
    pub longest_bytes: usize,
    /// How long a row waits for its count.
    pub wait: Duration,
    /// How long an answer is held back at most while there is no room for its call.
    pub backpressure: Duration,
    /// How far a reported prompt may lie from the count, in a thousand; the defaults where it is not said.
    pub prompt_per_mille: Option<u64>,
    /// The same for the output.
    pub output_per_mille: Option<u64>,
}

/// One exchange that is being counted, as its worker holds it.
#[derive(Debug)]
pub struct CountCapture {
    /// Its name, unlike any other's in this process.
    pub id: u64,
    /// Response bytes forwarded and not yet handed over.
    pub batch: Vec<u8>,
    /// A batch found no room: from there on nothing is kept.
    pub is_broken: bool,
}

impl CountCapture {
    /// One of which nothing was forwarded yet.
    #[must_use]
    pub fn new(id: u64) -> Self {
        Self {
            id,
            batch: Vec::new(),
            is_broken: false,
        }
    }

    /// Keeps what was forwarded; `true` when there is a batch to hand over.
    pub fn keep(&mut self, forwarded: &[u8]) -> bool {
        if self.is_broken {
            return false;
        }
        self.batch.extend_from_slice(forwarded);
        self.batch.len() >= BATCH_BYTES
    }
}

/// An exchange that ended and is charged for good once it is counted; until then nobody is told of it.
#[derive(Debug)]
pub struct Uncounted {
    /// What it began with.
    pub of: Arc<Revision>,
    /// Its record, with what is known without a count.
    pub record: Record,
    /// What limits and budgets were charged by that.
    pub settled: Option<Box<Settled>>,
    /// The usage ledger waits for it, too.
    pub has_row: bool,
}

impl Uncounted {
    /// Puts what it comes to, and what that costs, in its record, and corrects limits and budgets to that.
    pub fn settle(&mut self, tokens: Tokens) {
        self.record.tokens = tokens;
        self.record.charge =
            crate::record::charge(&self.of.snapshot, &self.of.levels, &self.record);
        if let Some(settled) = self.settled.take() {
            settled.correct(&tokens, self.record.charge, &self.of);
        }
    }
}

/// What becomes of a call whose answer begins.
#[derive(Debug)]
pub enum Begun {
    /// Its model is not counted.
    NotCounted,
    /// There is no room for it.
    NoRoom,
    /// It is counted.
    Counted(Box<CountCapture>),
}

/// A worker's way to who counts. Nothing in it waits.
pub trait Counting {
    /// How long the answer to this request may be held back now, because there is no room for what there is to count. It
    /// is asked again every few milliseconds until it says `None`, or the time is over.
    fn backpressure(
        &mut self,
        of: &Snapshot,
        record: &Record,
        request: &[Bytes],
    ) -> Option<Duration>;
    /// An answer is held back now.
    fn held_back(&mut self);
    /// A good answer to this request begins.
    fn begin(&mut self, of: &Snapshot, record: &Record, request: Vec<Bytes>) -> Begun;
    /// Takes the batch.
    fn more(&mut self, tally: &mut CountCapture);
    /// The exchange ended; the usage ledger, which was told of the capture, settles it when it is counted. With `rest`
    /// the record is told by who counts; `rest` comes back where nobody does any more.
    fn end(
        &mut self,
        tally: Box<CountCapture>,
        of: &Snapshot,
        record: &Record,
        rest: Option<Box<Uncounted>>,
    ) -> Option<Box<Uncounted>>;
}

#[cfg(test)]
mod tests;
