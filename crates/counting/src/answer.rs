//! The output tokens of an answer, counted while it is forwarded.
//!
//! Invariant: any way to cut an answer into batches gives the same count; what cannot be read is never counted as
//! nothing.
//! Not here: finding the text (`wire::answer`), usage as it was reported (`wire::usage`).

use std::sync::Arc;

use tokens::{Count, Counter, Ending, Lane, OutputCount, OutputCounter};
use wire::answer::{Fault, Piece, Reader};

use crate::metrics::Missed;

/// An answer on its way.
pub(crate) struct Answer {
    reader: Reader,
    text: Text,
}

/// What of it is counted.
struct Text {
    counter: OutputCounter<Arc<Counter>>,
    /// Choices that the model itself ended.
    stops: u64,
    was_cut: bool,
    /// Plain text, without the framing of a conversation.
    is_plain: bool,
    /// The model's own tokenizer failed on it.
    is_uncountable: bool,
}

/// What an answer came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Output {
    /// All of it: what is held against the engine's report.
    pub(crate) count: Count,
    /// Tokens of reasoning that was shown.
    pub(crate) reasoning: u64,
}

impl Answer {
    pub(crate) fn new(counter: Arc<Counter>, streamed: bool, longest: usize) -> Self {
        Self {
            reader: Reader::new(streamed, longest),
            text: Text {
                counter: counter.output_of(),
                stops: 0,
                was_cut: false,
                is_plain: false,
                is_uncountable: false,
            },
        }
    }

    /// Whether it keeps what it is given to its end.
    pub(crate) const fn holds_all(&self) -> bool {
        self.reader.holds_all()
    }

    /// Takes what was forwarded next.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if !self.text.is_uncountable {
            self.reader.push(bytes, |piece| self.text.take(piece));
        }
    }

    /// Ends it: `whole` says whether the engine's last byte was forwarded.
    pub(crate) fn finish(mut self, whole: bool) -> Result<Output, Missed> {
        let read = self.reader.finish(whole, |piece| self.text.take(piece));
        read.map_err(|fault| match fault {
            Fault::TooLong => Missed::Long,
            Fault::Unreadable => Missed::Unreadable,
        })?;
        self.text.finish()
    }
}

impl Text {
    fn take(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Text(choice, lane, text) => {
                let is_plain = lane == Lane::Plain;
                self.is_plain |= is_plain;
                // Both are one text, should an answer have both.
                let lane = if is_plain { Lane::Content } else { lane };
                self.is_uncountable |= self.counter.push(choice, lane, text).is_err();
            }
            Piece::Stopped => self.stops += 1,
            Piece::Cut => self.was_cut = true,
        }
    }

    fn finish(self) -> Result<Output, Missed> {
        if self.is_uncountable {
            return Err(Missed::Failed);
        }
        let ending = if self.stops > 0 && !self.was_cut {
            Ending::Stop
        } else {
            Ending::Cut
        };
        let counted = self.counter.finish(ending);
        let counted = counted.map_err(|_| Missed::Failed)?;
        let framing = if self.is_plain {
            self.stops
        } else {
            counted.framing
        };
        let counted = OutputCount { framing, ..counted };
        Ok(Output {
            count: counted.total(),
            reasoning: counted.reasoning,
        })
    }
}

#[cfg(test)]
mod tests;
