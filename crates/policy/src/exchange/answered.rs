//! What a call comes to that was answered: as its upstream reported, else as estimated from the answer's size.
//!
//! Invariant: what cannot be true of a report is kept beside the estimate and never charged.
//! Not here: reading the report ([`wire::usage`]), calls without an answer (`unanswered`), the gate's own count
//! ([`crate::counting`]).

use wire::usage::{Reading, Usage};

use super::cost::FRAME_TOKENS_MAX;
use crate::front::Demand;
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
    /// Its completion was told where a stream began, and not since.
    pub is_begun_only: bool,
    /// Data events of a stream that were forwarded.
    pub events: Option<u64>,
    /// Tokens of text in them.
    pub text_tokens: u64,
    /// Bytes of the answer.
    pub bytes: u64,
    /// Bytes of it once it is decoded.
    pub text_bytes: u64,
    /// The answer came to its proper end: it neither broke off nor told of an error.
    pub is_whole: bool,
    /// What was asked for.
    pub operation: Option<Operation>,
    /// Prompt tokens estimated for it.
    pub prompt: u64,
    /// Completion tokens held for it.
    pub completion: u64,
    /// The call or its route caps its completion, which an engine that goes by it does not pass.
    pub is_bounded: bool,
    /// The most completion tokens that are believed, where its route says so.
    pub completion_most: Option<u64>,
    /// Bytes of the request's body.
    pub asked_bytes: u64,
    /// Its prompt is more than its body holds.
    pub is_prompt_unseen: bool,
    /// Tokens of the model's window, where it is known.
    pub window: Option<u64>,
}

/// Events of a stream that may begin, end or only describe it, beside those of its text.
const FRAME_EVENTS_MAX: u64 = 16;

/// Reasoning that a report has on top of the completion's own count, and so of its cap.
fn on_top(usage: &Usage) -> u64 {
    match usage.is_reasoning_on_top {
        true => usage.reasoning.unwrap_or(0),
        false => 0,
    }
}

/// More tokens no model takes or makes.
const WINDOW_MAX: u64 = 1 << 24;

impl Answered<'_> {
    /// What it is charged.
    #[must_use]
    pub(super) fn tokens(&self) -> Tokens {
        match self.reading {
            Reading::Valid(usage) => self.reported(usage),
            Reading::Invalid(said) => Tokens {
                invalid: true,
                prompt_said: Said::refused(said.prompt_said),
                completion_said: Said::refused(said.completion_said),
                ..self.estimated()
            },
            Reading::Absent => self.estimated(),
            Reading::NoAnswer => Tokens::default(),
        }
    }

    fn reported(&self, usage: &Usage) -> Tokens {
        let generates = self.generates();
        let [prompt, completion] = self.estimates();
        // Engines that rank say a total alone.
        let ranked = usage
            .total
            .filter(|_| !generates && usage.completion.is_none());
        // Anthropic's count of the completion grows: of a message that broke off, or ended without another count, what
        // was heard is from its beginning.
        let grows =
            (!self.is_whole || self.is_begun_only) && self.operation == Some(Operation::Messages);
        // Of a stream that did not end the same is so of any report that has fewer tokens than half of what came.
        let is_outgrown = |said: u64| {
            !self.is_whole
                && self.events.is_some()
                && generates
                && said.saturating_mul(2) < self.guess()
        };
        let [prompt_most, completion_most] = self.most();
        let held = |said: Option<u64>, most: u64| match said {
            Some(said) if said > most => (None, Said::Refused(said)),
            said => (said, Said::Nothing),
        };
        let (prompt_held, prompt_beyond) = held(usage.prompt.or(ranked), prompt_most);
        let beside_cap = self.completion_most.map_or(0, |_| on_top(usage));
        let completion_most = completion_most.saturating_add(beside_cap);
        let (completion_held, completion_beyond) = held(usage.completion, completion_most);
        let is_beyond_cap = self.is_bounded
            && usage
                .completion
                .is_some_and(|said| said.saturating_sub(on_top(usage)) > self.completion);
        let is_beyond_body =
            self.is_all_in_body() && prompt_held.is_some_and(|said| said > self.body_holds());
        // Within a cap this may be reasoning that nobody shows or tells of.
        let is_beyond_answer = (!self.is_bounded || is_beyond_cap)
            && generates
            && completion_held.is_some_and(|said| {
                said.saturating_sub(usage.reasoning.unwrap_or(0)) > self.text_bytes
            });
        let is_beyond = prompt_beyond != Said::Nothing || completion_beyond != Said::Nothing;
        let or_refused = |beyond: Said, said: Option<u64>| match beyond {
            Said::Nothing => Said::refused(said),
            beyond => beyond,
        };
        let is_outgrown = completion_held.is_some_and(is_outgrown);
        // Nor is nothing its prompt.
        let prompt_held = prompt_held.filter(|said| *said > 0 || !is_outgrown);
        Tokens {
            prompt: prompt_held.map_or(prompt, Count::Reported),
            completion: match (completion_held, completion_beyond) {
                (Some(begun), _) if grows || usage.is_unread || is_outgrown => {
                    Count::Estimated(begun.max(self.guess()))
                }
                (Some(reported), _) => Count::Reported(reported),
                (None, Said::Nothing) if !generates => Count::Reported(0),
                (None, _) => completion,
            },
            cached: usage.cached,
            cache_write_5m: usage.cache_write_5m,
            cache_write_1h: usage.cache_write_1h,
            reasoning: usage.reasoning,
            audio_prompt: usage.audio_prompt,
            audio_completion: usage.audio_completion,
            units: usage.searches,
            prompt_said: or_refused(prompt_beyond, usage.prompt_said),
            completion_said: or_refused(completion_beyond, usage.completion_said),
            is_beyond_body,
            is_beyond_answer,
            doubtful: usage.doubtful
                || is_beyond
                || is_beyond_body
                || is_beyond_answer
                || is_beyond_cap,
            ..Tokens::default()
        }
    }

    /// The most tokens that prompt and completion can have, whatever is reported: the model's window, and of a completion of a route
    /// that says how much it can be that, or what its answer has room for. A cap of the call's own may be unknown to its engine.
    fn most(&self) -> [u64; 2] {
        let prompt = self.window.unwrap_or(WINDOW_MAX.max(self.body_holds()));
        let window = self.window.unwrap_or(WINDOW_MAX.max(self.completion));
        let completion = match self.completion_most {
            Some(most) => most.max(self.bytes).min(window),
            None => window,
        };
        [prompt, completion]
    }

    /// The most tokens that a text in the body can have: each is a byte at least.
    fn body_holds(&self) -> u64 {
        self.asked_bytes.saturating_add(FRAME_TOKENS_MAX)
    }

    /// Whether its prompt is what stands in its body, but for what that refers to.
    fn is_all_in_body(&self) -> bool {
        !self.is_prompt_unseen
            && matches!(
                self.operation,
                Some(
                    Operation::Chat
                        | Operation::Completions
                        | Operation::Responses
                        | Operation::Messages
                        | Operation::Embeddings
                )
            )
    }

    fn estimated(&self) -> Tokens {
        let [prompt, completion] = self.estimates();
        Tokens {
            prompt,
            completion,
            ..Tokens::default()
        }
    }

    /// Prompt and completion, as far as they are not told.
    fn estimates(&self) -> [Count; 2] {
        let completion = if self.generates() { self.guess() } else { 0 };
        [Count::Estimated(self.prompt), Count::Estimated(completion)]
    }

    /// Completion tokens, by the answer's size: an event of a stream holds about one, or what its text comes to. Whatever its bytes look
    /// like, an answer whose length is bounded has no more than that, unless more than that of it came in events.
    fn guess(&self) -> u64 {
        let guess = match self.events {
            Some(events) => events.max(self.text_tokens),
            None => tokens_of(self.bytes),
        };
        // Of what could not be read, the dearest part may be hidden: its answer is held at what was held for it.
        if self.reading.is_unread() {
            return guess.max(self.completion);
        }
        let may_be_frame =
            self.events.is_none() || guess <= self.completion.saturating_add(FRAME_EVENTS_MAX);
        if self.is_bounded && may_be_frame {
            guess.min(self.completion)
        } else {
            guess
        }
    }

    fn generates(&self) -> bool {
        self.operation.is_some_and(Operation::generates)
    }
}

/// What an answer on a WebSocket is charged, of a call that held so much; `bytes` are those of its text, and four for each token of
/// its sound.
pub(super) fn answered_on_socket(reading: &Reading, held: Demand, bytes: u64) -> Tokens {
    let answered = Answered {
        reading,
        is_begun_only: false,
        events: None,
        text_tokens: 0,
        bytes,
        text_bytes: bytes,
        is_whole: true,
        operation: Some(Operation::Realtime),
        prompt: held.prompt_charged,
        completion: held.completion,
        is_bounded: held.is_bounded,
        completion_most: held.most.tokens(),
        asked_bytes: 0,
        is_prompt_unseen: false,
        window: None,
    };
    answered.tokens()
}

#[cfg(test)]
mod tests {
    //! Each kind of report, and none.

    use super::*;

    const CALL: Answered<'static> = Answered {
        reading: &Reading::Absent,
        is_begun_only: false,
        events: None,
        text_tokens: 0,
        bytes: 400,
        text_bytes: 400,
        is_whole: true,
        operation: Some(Operation::Chat),
        prompt: 30,
        completion: 70,
        is_bounded: false,
        completion_most: None,
        asked_bytes: 120,
        is_prompt_unseen: false,
        window: None,
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
        // Of what could not be read the dearest part may be hidden.
        let unread = |usage: Usage| Usage {
            doubtful: true,
            is_unread: true,
            ..usage
        };
        for (reading, completion) in [
            (Reading::Invalid(unread(Usage::default())), 60_000),
            (Reading::Valid(unread(said(Some(5), Some(1), None))), 60_000),
            (
                Reading::Valid(unread(said(Some(5), Some(70_000), None))),
                70_000,
            ),
        ] {
            let answer = Answered {
                reading: &reading,
                completion: 60_000,
                text_bytes: 100_000,
                is_bounded: true,
                ..CALL
            };
            assert_eq!(of(answer)[1], Estimated(completion), "{reading:?}");
            assert!(answer.tokens().doubtful || answer.tokens().invalid);
        }
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
    fn a_report_that_no_call_could_hold_is_kept_beside_the_estimate() {
        let reported =
            |prompt, completion| Reading::Valid(said(Some(prompt), Some(completion), None));
        let of = |reading: &Reading, is_bounded: bool, window| {
            let call = Answered {
                reading,
                is_bounded,
                // Its route says how much it can be.
                completion_most: is_bounded.then_some(70),
                window,
                ..CALL
            };
            call.tokens()
        };
        let huge = of(&reported(999_999_999, 3), false, None);
        assert_eq!(
            [huge.prompt, huge.completion],
            [Count::Estimated(30), Count::Reported(3)]
        );
        assert_eq!(huge.prompt_said, Said::Refused(999_999_999));
        assert!(huge.doubtful && huge.is_disbelieved() && !huge.invalid);
        let huge = of(&reported(8, 999_999_999), false, None);
        assert_eq!(huge.completion, Count::Estimated(100));
        assert_eq!(huge.completion_said, Said::Refused(999_999_999));
        // Beyond what its route says and beyond the bytes of its answer, or beyond a window that is known.
        let beyond_cap = of(&reported(8, 401), true, None);
        assert_eq!(beyond_cap.completion, Count::Estimated(70));
        let within = of(&reported(8, 400), true, None);
        assert_eq!(within.completion, Count::Reported(400));
        let hidden = of(&reported(8, 20_000), false, None);
        assert_eq!(
            (hidden.completion, hidden.doubtful),
            (Count::Reported(20_000), true)
        );
        let beyond_window = of(&reported(4097, 4097), false, Some(4096));
        assert_eq!(
            [beyond_window.prompt, beyond_window.completion],
            [Count::Estimated(30), Count::Estimated(100)]
        );
    }

    #[test]
    fn a_completion_beyond_the_bytes_of_its_answer_is_charged_and_doubted() {
        let reported = |completion, reasoning| {
            Reading::Valid(Usage {
                reasoning,
                ..said(Some(9), Some(completion), None)
            })
        };
        let of = |reading: &Reading, is_bounded, text_bytes| {
            let call = Answered {
                reading,
                is_bounded,
                completion: 60_000,
                text_bytes,
                ..CALL
            };
            call.tokens()
        };
        let huge = of(&reported(50_000, None), false, 400);
        assert_eq!(huge.completion, Count::Reported(50_000));
        assert!(huge.doubtful && huge.is_beyond_answer && huge.is_charged_beyond_text());
        for (reading, is_bounded, text_bytes) in [
            (reported(400, None), false, 400),
            (reported(50_000, Some(49_600)), false, 400),
            // It came compressed.
            (reported(50_000, None), false, 50_000),
            // Within its cap.
            (reported(50_000, None), true, 400),
        ] {
            let tokens = of(&reading, is_bounded, text_bytes);
            assert!(!tokens.doubtful && !tokens.is_charged_beyond_text());
        }
        assert!(of(&reported(50_000, Some(49_599)), false, 400).doubtful);
    }

    #[test]
    fn a_cap_of_the_calls_own_makes_no_report_worth_less() {
        let reading = &Reading::Valid(said(Some(70), Some(20_000), Some(20_070)));
        let call = |is_bounded, completion, completion_most| {
            let call = Answered {
                reading,
                is_bounded,
                completion,
                completion_most,
                ..CALL
            };
            call.tokens()
        };
        // The engine knows nothing of the member, or the client asked for more by another one.
        for completion in [1, 160, 19_999] {
            let tokens = call(true, completion, None);
            assert_eq!(tokens.completion, Count::Reported(20_000), "{completion}");
            assert!(tokens.doubtful && tokens.is_beyond_answer && !tokens.is_disbelieved());
        }
        assert!(!call(true, 20_000, None).doubtful);
        // What its route says holds for calls with and without a cap.
        for completion in [1, 4_000] {
            let tokens = call(true, completion, Some(4_000));
            assert_eq!(tokens.completion_said, Said::Refused(20_000));
        }
    }

    #[test]
    fn reasoning_on_top_of_a_completion_is_not_held_to_its_cap() {
        let on_top = |is_reasoning_on_top| {
            Reading::Valid(Usage {
                reasoning: Some(5000),
                is_reasoning_on_top,
                ..said(Some(32), Some(5009), Some(5041))
            })
        };
        for (reading, doubtful) in [(on_top(true), false), (on_top(false), true)] {
            let call = Answered {
                reading: &reading,
                is_bounded: true,
                completion: 100,
                ..CALL
            };
            let tokens = call.tokens();
            assert_eq!(tokens.completion, Count::Reported(5009));
            assert_eq!(tokens.doubtful, doubtful);
        }
    }

    #[test]
    fn a_stream_without_a_report_is_estimated_by_its_text_and_by_no_less_than_what_came() {
        let of = |events, text_tokens, is_bounded, completion| {
            let call = Answered {
                events: Some(events),
                text_tokens,
                is_bounded,
                completion,
                ..CALL
            };
            call.tokens().completion
        };
        for (events, text_tokens, is_bounded, held, estimated) in [
            (12, 12, false, 70, 12),
            (1, 4500, false, 70, 4500),
            // Events that begin and end it are not of its cap.
            (73, 73, true, 70, 70),
            // More came than the cap that its engine does not know.
            (500, 500, true, 1, 500),
            (2, 4500, true, 1, 4500),
        ] {
            assert_eq!(
                of(events, text_tokens, is_bounded, held),
                Count::Estimated(estimated)
            );
        }
    }

    #[test]
    fn a_prompt_beyond_its_body_may_be_of_what_that_refers_to() {
        let reported = |prompt| Reading::Valid(said(Some(prompt), Some(3), None));
        let of = |reading: &Reading| Answered { reading, ..CALL }.tokens();
        let most = 120 + FRAME_TOKENS_MAX;
        let within = of(&reported(most));
        assert!(!within.doubtful && !within.is_beyond_body);
        let beyond = of(&reported(most + 1));
        assert_eq!(beyond.prompt, Count::Reported(most + 1));
        assert!(beyond.doubtful && beyond.is_beyond_body && beyond.is_charged_beyond_text());
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
    fn of_a_stream_that_did_not_end_a_report_of_less_than_came_is_no_report_of_it() {
        let of = |completion, text_tokens, is_whole| {
            let call = Answered {
                reading: &Reading::Valid(said(Some(5), Some(completion), None)),
                events: Some(12),
                text_tokens,
                is_whole,
                ..CALL
            };
            of(call)
        };
        let [reported, estimated] = [Count::Reported, Count::Estimated];
        for (completion, text_tokens, is_whole, charged) in [
            (0, 12, false, estimated(12)),
            (0, 877, false, estimated(877)),
            (10, 877, false, estimated(877)),
            // An engine that tells in each event knows better than their number and their bytes do.
            (10, 12, false, reported(10)),
            (600, 877, false, reported(600)),
            (0, 877, true, reported(0)),
        ] {
            assert_eq!(
                of(completion, text_tokens, is_whole),
                [reported(5), charged]
            );
        }
        let zeros = Answered {
            reading: &Reading::Valid(said(Some(0), Some(0), Some(0))),
            events: Some(12),
            is_whole: false,
            ..CALL
        };
        let charged = zeros.tokens();
        assert_eq!(
            [charged.prompt, charged.completion],
            [estimated(30), estimated(12)]
        );
        let unary = Answered {
            reading: &Reading::Valid(said(Some(5), Some(0), None)),
            is_whole: false,
            ..CALL
        };
        assert_eq!(unary.tokens().completion, Count::Reported(0));
    }

    #[test]
    fn a_message_that_tells_of_no_tokens_at_its_end_is_charged_what_came_of_it() {
        let ended = |begun, events| {
            let call = Answered {
                reading: &Reading::Valid(begun),
                is_begun_only: true,
                events: Some(events),
                operation: Some(Operation::Messages),
                ..CALL
            };
            call.tokens()
        };
        let one = said(Some(5), Some(1), None);
        let tokens = ended(one, 13);
        assert_eq!(
            [tokens.prompt, tokens.completion],
            [Count::Reported(5), Count::Estimated(13)]
        );
        assert!(!tokens.doubtful);
        let more = said(Some(5), Some(20), None);
        assert_eq!(ended(more, 13).completion, Count::Estimated(20));
    }

    #[test]
    fn a_form_whose_answer_reports_nothing_is_charged_its_estimate() {
        let form = Answered {
            operation: Some(Operation::Transcriptions),
            ..CALL
        };
        assert_eq!(of(form), [Count::Estimated(30), Count::Estimated(0)]);
    }
}
