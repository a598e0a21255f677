//! What a call comes to that was answered: as its upstream reported, else as estimated from the answer's size.
//!
//! Invariant: what cannot be true of a report is kept beside the estimate and never charged.
//! Not here: reading the report ([`wire::usage`]), calls without an answer (`unanswered`), the gate's own count
//! ([`crate::counting`]).

use wire::usage::{Reading, Usage};

use crate::operation::Operation;
use crate::tokens::{Count, Said, Tokens};

/// Tokens for which so many bytes of an answer are taken: it has about four bytes to one.
#[must_use]
pub(super) fn tokens_of(bytes: u64) -> u64 {
    bytes / 4
}

/// A call with an answer, or with a part of one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answered<'a> {
    /// What the answer said of its usage.
    pub reading: &'a Reading,
    /// Data events of a stream.
    pub events: Option<u64>,
    /// Bytes of the answer.
    pub bytes: u64,
    /// The answer came to its proper end: it neither broke off nor told of an error.
    pub is_whole: bool,
    /// What was asked for.
    pub operation: Option<Operation>,
    /// A rule of its route lists it, and says what it is charged.
    pub is_listed: bool,
    /// Prompt tokens estimated for it.
    pub prompt: u64,
    /// Completion tokens held for it.
    pub completion: u64,
    /// It cannot have more completion tokens than what is reserved.
    pub is_bounded: bool,
}

impl Answered<'_> {
    /// What it is charged.
    #[must_use]
    pub(super) fn tokens(self) -> Tokens {
        let is_form = self.operation.is_some_and(Operation::is_form);
        match self.reading {
            Reading::Valid(usage) => self.reported(usage),
            Reading::Invalid(said) => Tokens {
                invalid: true,
                prompt_said: Said::refused(said.prompt_said),
                completion_said: Said::refused(said.completion_said),
                ..self.estimated()
            },
            // Nothing of it was read, and the answer says nothing.
            Reading::Absent if is_form && !self.is_listed => Tokens::default(),
            Reading::Absent => self.estimated(),
        }
    }

    fn reported(self, usage: &Usage) -> Tokens {
        let generates = self.generates();
        let Tokens {
            prompt, completion, ..
        } = self.estimated();
        // Engines that rank say a total alone.
        let ranked = usage
            .total
            .filter(|_| !generates && usage.completion.is_none());
        // Anthropic's count of the completion grows: of a message that broke off what was heard is from its
        // beginning.
        let grows = !self.is_whole && self.operation == Some(Operation::Messages);
        Tokens {
            prompt: usage.prompt.or(ranked).map_or(prompt, Count::Reported),
            completion: match usage.completion {
                Some(begun) if grows => Count::Estimated(begun.max(self.guess())),
                Some(reported) => Count::Reported(reported),
                None if generates => completion,
                None => Count::Reported(0),
            },
            cached: usage.cached,
            cache_write_5m: usage.cache_write_5m,
            cache_write_1h: usage.cache_write_1h,
            reasoning: usage.reasoning,
            audio_prompt: usage.audio_prompt,
            audio_completion: usage.audio_completion,
            prompt_said: Said::refused(usage.prompt_said),
            completion_said: Said::refused(usage.completion_said),
            doubtful: usage.doubtful
                || self.is_bounded && usage.completion.is_some_and(|said| said > self.completion),
            ..Tokens::default()
        }
    }

    fn estimated(self) -> Tokens {
        let completion = if self.generates() { self.guess() } else { 0 };
        Tokens {
            prompt: Count::Estimated(self.prompt),
            completion: Count::Estimated(completion),
            ..Tokens::default()
        }
    }

    /// Completion tokens, by the answer's size: an event of a stream holds about one. Whatever its bytes look
    /// like, an answer whose length is bounded has no more than that.
    fn guess(self) -> u64 {
        let guess = self.events.unwrap_or(tokens_of(self.bytes));
        if self.is_bounded {
            guess.min(self.completion)
        } else {
            guess
        }
    }

    fn generates(self) -> bool {
        self.operation.is_some_and(Operation::generates)
    }
}

#[cfg(test)]
mod tests {
    //! Each kind of report, and none.

    use super::*;

    const CALL: Answered<'static> = Answered {
        reading: &Reading::Absent,
        events: None,
        bytes: 400,
        is_whole: true,
        operation: Some(Operation::Chat),
        is_listed: false,
        prompt: 30,
        completion: 70,
        is_bounded: false,
    };

    fn of(call: Answered) -> [Count; 2] {
        let tokens = call.tokens();
        [tokens.prompt, tokens.completion]
    }

    fn said(prompt: Option<u64>, completion: Option<u64>, total: Option<u64>) -> Usage {
        Usage {
            prompt,
            completion,
            total,
            ..Usage::default()
        }
    }

    #[test]
    fn an_answer_without_a_report_is_estimated_by_its_size_within_its_bound() {
        use Count::Estimated;
        assert_eq!(of(CALL), [Estimated(30), Estimated(100)]);
        let streamed = Answered {
            events: Some(12),
            ..CALL
        };
        assert_eq!(of(streamed), [Estimated(30), Estimated(12)]);
        let is_bounded = true;
        let bounded = Answered { is_bounded, ..CALL };
        assert_eq!(of(bounded), [Estimated(30), Estimated(70)]);
        let embedding = Answered {
            operation: Some(Operation::Embeddings),
            ..CALL
        };
        assert_eq!(of(embedding), [Estimated(30), Estimated(0)]);
    }

    #[test]
    fn a_report_is_charged_and_one_that_cannot_be_true_is_kept_beside_the_estimate() {
        use Count::{Estimated, Reported};
        let valid = Answered {
            reading: &Reading::Valid(said(Some(5), Some(6), Some(11))),
            ..CALL
        };
        assert_eq!(of(valid), [Reported(5), Reported(6)]);
        let ranked = Answered {
            reading: &Reading::Valid(said(None, None, Some(11))),
            operation: Some(Operation::Rerank),
            ..CALL
        };
        assert_eq!(of(ranked), [Reported(11), Reported(0)]);
        let invalid = Answered {
            reading: &Reading::Invalid(Usage {
                prompt_said: Some(1 << 60),
                ..Usage::default()
            }),
            ..CALL
        };
        assert_eq!(of(invalid), [Estimated(30), Estimated(100)]);
        let tokens = invalid.tokens();
        assert!(tokens.invalid);
        assert_eq!(
            (tokens.prompt_said, tokens.completion_said),
            (Said::Refused(1 << 60), Said::Nothing)
        );
    }

    #[test]
    fn what_can_be_true_of_a_report_is_charged_beside_an_estimate_of_the_rest() {
        let partly = Answered {
            reading: &Reading::Valid(Usage {
                prompt_said: Some(1 << 60),
                completion: Some(6),
                doubtful: true,
                ..Usage::default()
            }),
            ..CALL
        };
        assert_eq!(of(partly), [Count::Estimated(30), Count::Reported(6)]);
        let tokens = partly.tokens();
        assert!(tokens.doubtful && !tokens.invalid);
        assert_eq!(tokens.prompt_said, Said::Refused(1 << 60));
    }

    #[test]
    fn a_report_beyond_the_calls_own_bound_is_doubtful() {
        let reading = &Reading::Valid(said(Some(5), Some(71), None));
        let beyond = |is_bounded| Answered {
            reading,
            is_bounded,
            ..CALL
        };
        assert_eq!(of(beyond(true)), [Count::Reported(5), Count::Reported(71)]);
        assert!(beyond(true).tokens().doubtful && !beyond(false).tokens().doubtful);
    }

    #[test]
    fn a_message_that_broke_off_is_charged_what_came_of_it() {
        let begun = Answered {
            reading: &Reading::Valid(said(Some(5), Some(1), None)),
            events: Some(40),
            is_whole: false,
            operation: Some(Operation::Messages),
            ..CALL
        };
        assert_eq!(of(begun), [Count::Reported(5), Count::Estimated(40)]);
        let is_whole = true;
        let whole = Answered { is_whole, ..begun };
        assert_eq!(of(whole), [Count::Reported(5), Count::Reported(1)]);
    }

    #[test]
    fn a_form_that_nothing_was_read_of_is_charged_where_its_route_says_what() {
        let form = Answered {
            operation: Some(Operation::Transcriptions),
            ..CALL
        };
        assert_eq!(of(form), [Count::Unknown; 2]);
        let is_listed = true;
        let listed = Answered { is_listed, ..form };
        assert_eq!(of(listed)[0], Count::Estimated(30));
    }
}
