//! Calls that wait until their client has answered what a server wants to know: the answer comes in a message of its own, to any worker.
//!
//! Invariant: an answer reaches the call that asked for it, once, and only out of the session that was asked.
//! Not here: what is asked (`mcp`, the crate), how long is waited (the host).

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::Mark;

/// Most questions that wait at one time.
const WAITING_MAX: usize = 4096;

/// The questions that are not answered yet.
#[derive(Default)]
pub struct Waiting(Mutex<Questions>);

#[derive(Default)]
struct Questions {
    asked: u64,
    open: HashMap<u64, Question>,
}

struct Question {
    /// The session that was asked.
    of: Mark,
    /// It was answered; the answer may have been heard already.
    is_answered: bool,
    answer: Option<Vec<u8>>,
    waker: Option<Waker>,
}

/// A question; it is withdrawn when this is dropped.
pub struct Asked<'w> {
    of: &'w Waiting,
    /// Its number.
    pub number: u64,
}

impl Waiting {
    /// A question to the client of a session; none where too many wait.
    #[must_use]
    pub fn ask(&self, of: Mark) -> Option<Asked<'_>> {
        let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if questions.open.len() >= WAITING_MAX {
            return None;
        }
        questions.asked += 1;
        let number = questions.asked;
        let question = Question {
            of,
            is_answered: false,
            answer: None,
            waker: None,
        };
        questions.open.insert(number, question);
        Some(Asked { of: self, number })
    }

    /// Whether somebody waits for this answer; the first one counts.
    pub fn answer(&self, number: u64, of: Mark, answer: Vec<u8>) -> bool {
        let waker = {
            let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let question = questions.open.get_mut(&number);
            let Some(question) =
                question.filter(|question| question.of == of && !question.is_answered)
            else {
                return false;
            };
            question.is_answered = true;
            question.answer = Some(answer);
            question.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }
}

impl Asked<'_> {
    /// Ready with the answer.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<Vec<u8>> {
        let mut questions = self.of.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(question) = questions.open.get_mut(&self.number) else {
            return Poll::Pending;
        };
        match question.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                question.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let mut questions = self.of.0.lock().unwrap_or_else(PoisonError::into_inner);
        questions.open.remove(&self.number);
    }
}

/// Answers are not shown.
impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    //! Who hears an answer.

    use std::task::{Context, Poll, Waker};

    use super::{WAITING_MAX, Waiting};

    #[test]
    fn an_answer_is_heard_once_by_whoever_asked_and_given_by_whoever_was_asked() {
        let (waiting, ada, eve) = (Waiting::default(), [1; 12], [2; 12]);
        let mut cx = Context::from_waker(Waker::noop());
        let (one, other) = (
            waiting.ask(ada).expect("room"),
            waiting.ask(ada).expect("room"),
        );
        assert!(one.poll(&mut cx).is_pending());
        assert!(!waiting.answer(one.number, eve, b"mine".to_vec()));
        assert!(!waiting.answer(one.number + 7, ada, b"lost".to_vec()));
        assert!(waiting.answer(one.number, ada, b"yes".to_vec()));
        assert!(!waiting.answer(one.number, ada, b"no".to_vec()));
        assert!(other.poll(&mut cx).is_pending());
        assert_eq!(one.poll(&mut cx), Poll::Ready(b"yes".to_vec()));
        assert!(!waiting.answer(one.number, ada, b"again".to_vec()));
        let number = other.number;
        drop(other);
        assert!(!waiting.answer(number, ada, b"late".to_vec()));
    }

    #[test]
    fn no_more_wait_than_may() {
        let waiting = Waiting::default();
        let mut asked: Vec<_> = (0..WAITING_MAX)
            .filter_map(|_| waiting.ask([0; 12]))
            .collect();
        assert_eq!(asked.len(), WAITING_MAX);
        assert!(waiting.ask([0; 12]).is_none());
        asked.pop();
        assert!(waiting.ask([0; 12]).is_some());
    }
}
