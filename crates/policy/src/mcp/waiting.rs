//! Calls that wait until their client has answered what a server wants to know: the answer comes in a message of its own, to any worker.
//!
//! Invariant: an answer reaches the call that asked for it, once, and only out of the session that was asked; what waits is bounded, and of
//! one session and one caller more narrowly than of all.
//! Not here: what is asked (`mcp`, the crate), how long is waited (the host).

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::Mark;

/// Most questions that wait at one time.
const WAITING_MAX: usize = 4096;
/// Most of one caller's sessions together: who lets questions wait leaves room for others.
const OF_CALLER_MAX: usize = WAITING_MAX / 8;
/// Most of one session.
const OF_SESSION_MAX: usize = 16;

/// The questions that are not answered yet.
#[derive(Default)]
pub struct Waiting(Mutex<Questions>, RandomState);

#[derive(Default)]
struct Questions {
    asked: u64,
    open: HashMap<u64, Question>,
    /// How many wait, by session and by caller.
    of_sessions: HashMap<Mark, usize>,
    of_callers: HashMap<u64, usize>,
}

impl Questions {
    fn has_room(&self, of: &Mark, caller: u64) -> bool {
        let of_session = self.of_sessions.get(of).copied().unwrap_or_default();
        let of_caller = self.of_callers.get(&caller).copied().unwrap_or_default();
        self.open.len() < WAITING_MAX && of_session < OF_SESSION_MAX && of_caller < OF_CALLER_MAX
    }

    fn close(&mut self, number: u64) {
        let Some(Question { of, caller, .. }) = self.open.remove(&number) else {
            return;
        };
        fewer(&mut self.of_sessions, of);
        fewer(&mut self.of_callers, caller);
    }
}

/// One fewer there.
fn fewer<K: Hash + Eq>(of: &mut HashMap<K, usize>, key: K) {
    use std::collections::hash_map::Entry;
    if let Entry::Occupied(mut count) = of.entry(key) {
        *count.get_mut() -= 1;
        if *count.get() == 0 {
            count.remove();
        }
    }
}

struct Question {
    /// The session that was asked.
    of: Mark,
    /// Whose session it is.
    caller: u64,
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
    /// A question to the client of a session of this caller; none where too many wait.
    #[must_use]
    pub fn ask(&self, of: Mark, caller: impl Hash) -> Option<Asked<'_>> {
        let caller = self.1.hash_one(caller);
        let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !questions.has_room(&of, caller) {
            return None;
        }
        *questions.of_sessions.entry(of).or_default() += 1;
        *questions.of_callers.entry(caller).or_default() += 1;
        questions.asked += 1;
        let number = questions.asked;
        let question = Question {
            of,
            caller,
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
        questions.close(self.number);
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

    use super::{OF_CALLER_MAX, OF_SESSION_MAX, WAITING_MAX, Waiting};

    #[test]
    fn an_answer_is_heard_once_by_whoever_asked_and_given_by_whoever_was_asked() {
        let (waiting, ada, eve) = (Waiting::default(), [1; 12], [2; 12]);
        let mut cx = Context::from_waker(Waker::noop());
        let (one, other) = (
            waiting.ask(ada, 1).expect("room"),
            waiting.ask(ada, 1).expect("room"),
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
    fn no_more_wait_than_may_of_a_session_of_a_caller_and_of_all() {
        let waiting = Waiting::default();
        let mut sessions = 0_u16;
        let mut session = || {
            sessions += 1;
            let mut mark = [0; 12];
            mark[..2].copy_from_slice(&sessions.to_be_bytes());
            mark
        };
        let mut asked = Vec::new();
        let mut ask = |of, caller| {
            let question = waiting.ask(of, caller);
            let has_room = question.is_some();
            asked.extend(question);
            has_room
        };
        for caller in 0..WAITING_MAX / OF_CALLER_MAX {
            for _ in 0..OF_CALLER_MAX / OF_SESSION_MAX {
                let of = session();
                assert!((0..OF_SESSION_MAX).all(|_| ask(of, caller)));
                assert!(!ask(of, caller), "a session's share is taken");
            }
            assert!(!ask([255; 12], caller), "a caller's share is taken");
        }
        assert!(!ask([254; 12], 1000), "all are taken");
        let last = asked.pop().expect("some");
        drop(last);
        assert!(waiting.ask([254; 12], 1000).is_some());
        drop(asked);
        let questions = waiting.0.lock().expect("nobody panicked");
        assert!(questions.of_sessions.is_empty() && questions.of_callers.is_empty());
    }
}
