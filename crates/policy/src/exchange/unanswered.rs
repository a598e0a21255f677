//! What a call comes to whose request went upstream whole and to which no answer was heard.
//!
//! Nobody said what ran, so it is an estimate, and never below what an engine can have done with it.
//! A stream that its client left before it began was stopped before it generated: it comes to its
//! prompt. Anything else comes to what was held for it: an engine may have made the whole answer
//! before it sent a byte, and a provider may bill one that nobody got.
//! Invariant: a call that reached no upstream whole comes to nothing.
//! Not here: answers ([`wire::usage`]), who decides that none came (`proxy`).

use crate::attempt::Sent;
use crate::record::{Count, Tokens};

/// A call without an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unanswered {
    /// How far its last request came.
    pub sent: Sent,
    /// Prompt tokens estimated for it.
    pub prompt: u64,
    /// Completion tokens held for it.
    pub completion: u64,
    /// Its client left while it was waited for.
    pub has_left: bool,
    /// It asked for a stream.
    pub stream: bool,
    /// Nothing is counted of such calls.
    pub is_free: bool,
}

impl Unanswered {
    /// What it is charged; nothing where none of its tokens are read.
    #[must_use]
    pub(super) fn tokens(self) -> Tokens {
        if self.sent != Sent::Whole || self.is_free {
            return Tokens::default();
        }
        let is_stopped = self.has_left && self.stream;
        let completion = if is_stopped { 0 } else { self.completion };
        Tokens {
            prompt: Count::Estimated(self.prompt),
            completion: Count::Estimated(completion),
            ..Tokens::default()
        }
    }
}

#[cfg(test)]
mod tests {
    //! Each way to end without an answer.

    use super::*;

    const CALL: Unanswered = Unanswered {
        sent: Sent::Whole,
        prompt: 30,
        completion: 100,
        has_left: false,
        stream: false,
        is_free: false,
    };

    fn of(call: Unanswered) -> [Option<u64>; 2] {
        let tokens = call.tokens();
        [tokens.prompt.tokens(), tokens.completion.tokens()]
    }

    #[test]
    fn what_went_up_whole_comes_to_what_was_held_and_a_stream_that_was_left_to_its_prompt() {
        let (stream, has_left) = (true, true);
        assert_eq!(of(CALL), [Some(30), Some(100)]);
        assert_eq!(of(Unanswered { stream, ..CALL }), [Some(30), Some(100)]);
        assert_eq!(of(Unanswered { has_left, ..CALL }), [Some(30), Some(100)]);
        let left = Unanswered {
            stream,
            has_left,
            ..CALL
        };
        assert_eq!(of(left), [Some(30), Some(0)]);
    }

    #[test]
    fn what_did_not_go_up_whole_or_was_answered_comes_to_nothing() {
        for sent in [Sent::Nothing, Sent::Part, Sent::Answered] {
            assert_eq!(of(Unanswered { sent, ..CALL }), [None, None], "{sent:?}");
        }
        let is_free = true;
        assert_eq!(of(Unanswered { is_free, ..CALL }), [None, None]);
    }
}
