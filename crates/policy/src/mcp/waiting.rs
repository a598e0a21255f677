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

/// Most questions that wait at one time, and most bytes that are kept for them: what their servers want to hear again
/// (`requestState`), what they ask, and what was answered.
const ALL_MAX: Amount = Amount::new(4096, 128 << 20);
/// Most of one caller's sessions together: who lets questions wait leaves room for others.
const OF_CALLER_MAX: Amount = Amount::new(ALL_MAX.questions / 8, ALL_MAX.bytes / 8);
/// Most of one session.
const OF_SESSION_MAX: Amount = Amount::new(16, 8 << 20);

/// Questions that wait, and bytes that are kept for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    questions: usize,
    bytes: usize,
}

impl Amount {
    const fn new(questions: usize, bytes: usize) -> Self {
        Self { questions, bytes }
    }

    const fn add(&mut self, more: Self) {
        self.questions += more.questions;
        self.bytes += more.bytes;
    }

    const fn subtract(&mut self, fewer: Self) {
        self.questions -= fewer.questions;
        self.bytes -= fewer.bytes;
    }

    /// Why no more may wait of these, where that is so.
    fn check(self, more: Self, most: Self, whose: Whose) -> Result<(), NoRoom> {
        if self.questions + more.questions > most.questions {
            let most = most.questions;
            return Err(NoRoom::Questions { whose, most });
        }
        if self.bytes + more.bytes > most.bytes {
            let most = most.bytes;
            return Err(NoRoom::Bytes { whose, most });
        }
        Ok(())
    }
}

/// Whose questions are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Those to one client.
    Session,
    /// Those to all clients of one caller.
    Caller,
    /// All that this process has.
    Gate,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "this session",
            Self::Caller => "this caller's sessions",
            Self::Gate => "all sessions of this gateway",
        })
    }
}

/// Why a question cannot wait, or an answer not be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoRoom {
    /// Too many wait.
    #[error("{most} questions of servers to {whose} wait to be answered, and no more may")]
    Questions {
        /// Whose.
        whose: Whose,
        /// The bound.
        most: usize,
    },
    /// Too much is kept for those that wait.
    #[error(
        "questions of servers to {whose}, their `requestState` and their answers would take more than {most} bytes while they wait"
    )]
    Bytes {
        /// Whose.
        whose: Whose,
        /// The bound.
        most: usize,
    },
}

/// The questions that are not answered yet.
#[derive(Default)]
pub struct Waiting(Mutex<Questions>, RandomState);

#[derive(Default)]
struct Questions {
    asked: u64,
    open: HashMap<u64, Question>,
    /// What waits: all, by session and by caller.
    all: Amount,
    of_sessions: HashMap<Mark, Amount>,
    of_callers: HashMap<u64, Amount>,
}

impl Questions {
    /// Counts what comes to wait, where there is room for it.
    fn take(&mut self, of: Mark, caller: u64, more: Amount) -> Result<(), NoRoom> {
        let of_session = self.of_sessions.get(&of).copied().unwrap_or_default();
        let of_caller = self.of_callers.get(&caller).copied().unwrap_or_default();
        of_session.check(more, OF_SESSION_MAX, Whose::Session)?;
        of_caller.check(more, OF_CALLER_MAX, Whose::Caller)?;
        self.all.check(more, ALL_MAX, Whose::Gate)?;
        self.all.add(more);
        self.of_sessions.entry(of).or_default().add(more);
        self.of_callers.entry(caller).or_default().add(more);
        Ok(())
    }

    fn close(&mut self, number: u64) {
        let Some(question) = self.open.remove(&number) else {
            return;
        };
        let fewer = Amount::new(1, question.bytes);
        self.all.subtract(fewer);
        subtract(&mut self.of_sessions, question.of, fewer);
        subtract(&mut self.of_callers, question.caller, fewer);
    }
}

/// So much less waits there.
fn subtract<K: Hash + Eq>(of: &mut HashMap<K, Amount>, key: K, fewer: Amount) {
    use std::collections::hash_map::Entry;
    if let Entry::Occupied(mut count) = of.entry(key) {
        count.get_mut().subtract(fewer);
        if count.get().questions == 0 {
            count.remove();
        }
    }
}

struct Question {
    /// The session that was asked.
    of: Mark,
    /// Whose session it is.
    caller: u64,
    /// What is kept for it.
    bytes: usize,
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
    /// A question to the client of a session of this caller, for which so many bytes are kept until it is withdrawn.
    ///
    /// # Errors
    /// [`NoRoom`] where too many wait, or too much is kept for them.
    pub fn ask(&self, of: Mark, caller: impl Hash, bytes: usize) -> Result<Asked<'_>, NoRoom> {
        let caller = self.1.hash_one(caller);
        let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        questions.take(of, caller, Amount::new(1, bytes))?;
        questions.asked += 1;
        let number = questions.asked;
        let question = Question {
            of,
            caller,
            bytes,
            is_answered: false,
            answer: None,
            waker: None,
        };
        questions.open.insert(number, question);
        Ok(Asked { of: self, number })
    }

    /// Whether somebody waits for this answer; the first one counts.
    ///
    /// # Errors
    /// [`NoRoom`] where it is too long to be kept: it is still waited for.
    pub fn answer(&self, number: u64, of: Mark, answer: Vec<u8>) -> Result<bool, NoRoom> {
        let waker = {
            let mut questions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let question = questions.open.get(&number);
            let question = question.filter(|question| question.of == of && !question.is_answered);
            let Some(caller) = question.map(|question| question.caller) else {
                return Ok(false);
            };
            let bytes = answer.len();
            questions.take(of, caller, Amount::new(0, bytes))?;
            let Some(question) = questions.open.get_mut(&number) else {
                return Ok(false);
            };
            question.bytes += bytes;
            question.is_answered = true;
            question.answer = Some(answer);
            question.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
        Ok(true)
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

    use super::{ALL_MAX, NoRoom, OF_CALLER_MAX, OF_SESSION_MAX, Waiting, Whose};

    #[test]
    fn an_answer_is_heard_once_by_whoever_asked_and_given_by_whoever_was_asked() {
        let (waiting, ada, eve) = (Waiting::default(), [1; 12], [2; 12]);
        let mut cx = Context::from_waker(Waker::noop());
        let (one, other) = (
            waiting.ask(ada, 1, 0).expect("room"),
            waiting.ask(ada, 1, 0).expect("room"),
        );
        assert!(one.poll(&mut cx).is_pending());
        let answer = |number, of, answer: &[u8]| {
            let kept = waiting.answer(number, of, answer.to_vec());
            kept.expect("room")
        };
        assert!(!answer(one.number, eve, b"mine"));
        assert!(!answer(one.number + 7, ada, b"lost"));
        assert!(answer(one.number, ada, b"yes"));
        assert!(!answer(one.number, ada, b"no"));
        assert!(other.poll(&mut cx).is_pending());
        assert_eq!(one.poll(&mut cx), Poll::Ready(b"yes".to_vec()));
        assert!(!answer(one.number, ada, b"again"));
        let number = other.number;
        drop(other);
        assert!(!answer(number, ada, b"late"));
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
            let question = waiting.ask(of, caller, 1);
            let is_full = question.as_ref().err().copied();
            asked.extend(question);
            is_full
        };
        let full = |whose, most| Some(NoRoom::Questions { whose, most });
        for caller in 0..ALL_MAX.questions / OF_CALLER_MAX.questions {
            for _ in 0..OF_CALLER_MAX.questions / OF_SESSION_MAX.questions {
                let of = session();
                assert!((0..OF_SESSION_MAX.questions).all(|_| ask(of, caller).is_none()));
                assert_eq!(ask(of, caller), full(Whose::Session, 16));
            }
            assert_eq!(ask([255; 12], caller), full(Whose::Caller, 512));
        }
        assert_eq!(ask([254; 12], 1000), full(Whose::Gate, 4096));
        let last = asked.pop().expect("some");
        drop(last);
        assert!(waiting.ask([254; 12], 1000, 0).is_ok());
        drop(asked);
        assert_empty(&waiting);
    }

    fn assert_empty(waiting: &Waiting) {
        let questions = waiting.0.lock().expect("nobody panicked");
        assert!(questions.of_sessions.is_empty() && questions.of_callers.is_empty());
        assert_eq!(questions.all, super::Amount::default());
    }

    #[test]
    fn what_is_kept_for_questions_and_their_answers_has_a_bound_for_each_too() {
        let waiting = Waiting::default();
        let full = |whose, most| NoRoom::Bytes { whose, most };
        let (of_session, of_caller) = (OF_SESSION_MAX.bytes, OF_CALLER_MAX.bytes);
        let one = waiting.ask([1; 12], 1, of_session - 10).expect("room");
        let more = waiting.ask([1; 12], 1, 11).err();
        assert_eq!(more, Some(full(Whose::Session, 8 << 20)));
        // An answer that is too long is waited for all the same, and a shorter one is taken.
        let long = waiting.answer(one.number, [1; 12], vec![b'x'; 11]);
        assert_eq!(long, Err(full(Whose::Session, 8 << 20)));
        let taken = waiting.answer(one.number, [1; 12], vec![b'x'; 10]);
        assert_eq!(taken, Ok(true));
        let second = waiting.ask([2; 12], 1, of_caller - of_session);
        let third = waiting.ask([3; 12], 1, 1).err();
        assert_eq!(third, Some(full(Whose::Caller, 16 << 20)));
        let others: Vec<_> = (2..16_u8)
            .map(|n| waiting.ask([10 + n; 12], n / 2, of_session).expect("room"))
            .collect();
        let last = waiting.ask([9; 12], 100, 1).err();
        assert_eq!(last, Some(full(Whose::Gate, 128 << 20)));
        drop((one, second, others));
        assert_empty(&waiting);
    }
}
