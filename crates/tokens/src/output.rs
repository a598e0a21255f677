//! Output tokens of one response, counted while it streams by.
//!
//! Text is kept by lane (a choice's content, its reasoning, a call's arguments) and counted at places where the
//! tokenizer cuts anyway, so a lane holds a few kilobytes however long the stream is.
//! Invariant: with a built-in vocabulary, any way to cut the text into pieces gives the count of the whole. All lanes
//! together hold at most [`HELD_BYTES`] and one piece from outside.
//! Not here: finding the text in a stream's events (`wire::sse` and who reads them), what the engine reports.

mod segment;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

pub use wire::answer::Lane;

use crate::count::{Count, Doubt};
use crate::counter::{Counter, Rendering};
use prompts::Uncountable;
use segment::Segment;

/// The most lanes that are told apart; text of any more shares the last one.
const LANES_LIMIT: usize = 1024;

/// How much text all lanes may hold: as much as four that do not tell their pieces.
const HELD_BYTES: usize = 1 << 20;

/// How a response ended, as far as the gate saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The model stopped: the token that ends its turn was sampled too.
    Stop,
    /// Cut off by a cap on tokens, by the client or by a fault: no such token.
    Cut,
}

/// Tokens of one response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutputCount {
    /// Of the answer.
    pub content: u64,
    /// Of the reasoning.
    pub reasoning: u64,
    /// Of tool calls: names and arguments.
    pub calls: u64,
    /// That the model sampled around the text: channel headers and ends of messages. The engine counts them too.
    pub framing: u64,
    /// Whether a piece had to be cut where the tokenizer would not have cut it.
    pub had_long_piece: bool,
}

/// Counts one response; `C` refers to the model's counter, as `&Counter` or `Arc<Counter>`.
pub struct OutputCounter<C> {
    counter: C,
    lanes: BTreeMap<(u32, Lane), Segment>,
    /// The bytes that all lanes hold.
    held: usize,
}

impl Counter {
    /// Starts to count one response. Feed it what the client is sent.
    #[must_use]
    pub const fn output(&self) -> OutputCounter<&Self> {
        OutputCounter::new(self)
    }

    /// The same for who keeps a response longer than a borrow.
    #[must_use]
    pub const fn output_of(self: Arc<Self>) -> OutputCounter<Arc<Self>> {
        OutputCounter::new(self)
    }
}

impl<C: Deref<Target = Counter>> OutputCounter<C> {
    const fn new(counter: C) -> Self {
        Self {
            counter,
            lanes: BTreeMap::new(),
            held: 0,
        }
    }

    /// Takes the next piece of a lane of the choice with this index.
    ///
    /// # Errors
    /// When the model's own tokenizer fails on the text.
    pub fn push(&mut self, choice: u32, lane: Lane, text: &str) -> Result<(), Uncountable> {
        if text.is_empty() {
            return Ok(());
        }
        let key = (choice, lane);
        let key = if self.lanes.len() < LANES_LIMIT || self.lanes.contains_key(&key) {
            key
        } else {
            (u32::MAX, folded(lane))
        };
        let segment = self.lanes.entry(key).or_default();
        let before = segment.held();
        segment.push(text, &self.counter.vocabulary)?;
        self.held += segment.held();
        self.held = self.held.saturating_sub(before);
        while self.held > HELD_BYTES {
            self.relieve()?;
        }
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.lanes.values().map(Segment::held).sum()
    }

    /// Holds less of the lane that holds most.
    fn relieve(&mut self) -> Result<(), Uncountable> {
        let Some(longest) = self.lanes.values_mut().max_by_key(|lane| lane.held()) else {
            return Ok(());
        };
        let before = longest.held();
        longest.relieve(&self.counter.vocabulary)?;
        self.held = self.held.saturating_sub(before - longest.held());
        Ok(())
    }

    /// Counts what is left and gives the whole.
    ///
    /// # Errors
    /// When the model's own tokenizer fails on the text.
    pub fn finish(mut self, ending: Ending) -> Result<OutputCount, Uncountable> {
        let mut count = OutputCount::default();
        let mut choices: BTreeMap<u32, u64> = BTreeMap::new();
        for ((choice, lane), segment) in std::mem::take(&mut self.lanes) {
            let (tokens, was_cut) = segment.finish(&self.counter.vocabulary)?;
            count.had_long_piece |= was_cut;
            let messages = choices.entry(choice).or_default();
            match lane {
                Lane::Content | Lane::Plain => count.content += tokens,
                Lane::Reasoning => count.reasoning += tokens,
                Lane::CallName(_) | Lane::CallArguments(_) => count.calls += tokens,
            }
            *messages += u64::from(!matches!(lane, Lane::CallName(_)));
            if self.is_harmony() {
                count.framing += header_tokens(lane);
            }
        }
        for messages in choices.values() {
            count.framing += self.turn_tokens(*messages, ending);
        }
        Ok(count)
    }

    /// What stands between a choice's messages and at its end.
    fn turn_tokens(&self, messages: u64, ending: Ending) -> u64 {
        let has_end = !matches!(self.counter.rendering, Rendering::Overhead);
        let end = u64::from(ending == Ending::Stop && has_end);
        if self.is_harmony() {
            // `<|end|><|start|>assistant` between two messages.
            return 3 * messages.saturating_sub(1) + end;
        }
        end
    }

    fn is_harmony(&self) -> bool {
        matches!(self.counter.rendering, Rendering::Harmony)
    }
}

/// The lane that text shares which is beyond the lanes that are told apart.
const fn folded(lane: Lane) -> Lane {
    match lane {
        Lane::CallName(_) => Lane::CallName(u32::MAX),
        Lane::CallArguments(_) => Lane::CallArguments(u32::MAX),
        Lane::Content | Lane::Plain | Lane::Reasoning => lane,
    }
}

impl OutputCount {
    /// All of it: what to hold against the engine's `completion_tokens`.
    #[must_use]
    pub const fn total(&self) -> Count {
        let doubt = if self.had_long_piece {
            Doubt::LongPiece
        } else {
            Doubt::EncodedAgain
        };
        let tokens = self.content + self.reasoning + self.calls + self.framing;
        Count::approximate(tokens, doubt)
    }
}

/// Harmony's header of a message: `<|channel|>analysis<|message|>`, and for a call
/// `<|channel|>commentary to=functions.` + name + ` <|constrain|>json<|message|>`.
const fn header_tokens(lane: Lane) -> u64 {
    match lane {
        Lane::Content | Lane::Plain | Lane::Reasoning => 3,
        Lane::CallName(_) => 0,
        Lane::CallArguments(_) => 10,
    }
}
