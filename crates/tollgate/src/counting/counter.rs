//! A thread that counts.
//!
//! Invariant: each exchange that began and ended is told to the desk once, be it that counting panicked.
//! Not here: which exchange comes to which thread (`teller`), what becomes of a count (`desk`).

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError};
use std::time::Instant;

use bytes::Bytes;
use policy::counting::Uncounted;
use policy::record::Tokens;
use tokens::{Count, Dialect};

use super::answer::{Answer, Output};
use super::board::Board;
use super::desk::{Counted, Note};
use super::room::Place;
use super::{LOOK_EVERY, Missed, Shelf};

/// What a worker says.
pub(super) enum Word {
    Begin(Box<Begun>),
    /// What was forwarded next of this exchange.
    More(u64, Vec<u8>, Place),
    End(Box<Ended>),
}

/// A good answer begins.
pub(super) struct Begun {
    pub(super) id: u64,
    pub(super) key: u64,
    pub(super) dialect: Dialect,
    /// The engine's clock, seconds since 1970: some templates name the date.
    pub(super) clock_s: i64,
    pub(super) streamed: bool,
    /// `None` when it is too long.
    pub(super) request: Option<Vec<Bytes>>,
    pub(super) place: Place,
}

/// It ended.
pub(super) struct Ended {
    pub(super) id: u64,
    /// As it may be a label.
    pub(super) model: Arc<str>,
    pub(super) tokens: Tokens,
    /// The answer was forwarded to its end.
    pub(super) is_whole: bool,
    /// Some of it found no room.
    pub(super) is_broken: bool,
    /// There was an answer whose text can be counted.
    pub(super) has_answer: bool,
    /// Its record, where it is told once it is counted.
    pub(super) rest: Option<Box<Uncounted>>,
}

pub(super) struct Counter {
    shelf: Arc<Shelf>,
    desk: Sender<Note>,
    longest: usize,
    open: HashMap<u64, Open>,
}

/// An exchange that has not ended.
struct Open {
    prompt: Result<Count, Missed>,
    /// `None` where the answer has no text.
    answer: Option<Result<Answer, Missed>>,
    /// Of the exchange, and of a document that is read when it is whole.
    places: Vec<Place>,
}

impl Counter {
    pub(super) fn new(shelf: Arc<Shelf>, desk: Sender<Note>, longest: usize) -> Self {
        Self {
            shelf,
            desk,
            longest,
            open: HashMap::new(),
        }
    }

    /// Until no worker is left who could say anything.
    pub(super) fn run(mut self, words: &Receiver<Word>, board: &Board) {
        loop {
            match words.try_recv() {
                Ok(word) => {
                    let began = Instant::now();
                    self.hear(word);
                    board.worked(began.elapsed());
                }
                Err(TryRecvError::Empty) => std::thread::sleep(LOOK_EVERY),
                Err(TryRecvError::Disconnected) => return,
            }
        }
    }

    fn hear(&mut self, word: Word) {
        match word {
            Word::Begin(begun) => self.begin(*begun),
            Word::More(id, bytes, place) => self.more(id, &bytes, place),
            Word::End(ended) => self.end(*ended),
        }
    }

    fn begin(&mut self, begun: Begun) {
        let Begun {
            id,
            key,
            dialect,
            clock_s,
            streamed,
            request,
            place,
        } = begun;
        let Some(counter) = self.shelf.get(key) else {
            return;
        };
        let prompt = match request {
            Some(request) => guarded(|| {
                let count = counter.prompt(dialect, &request.concat(), clock_s);
                count.map_err(|_| Missed::Unreadable)
            }),
            None => Err(Missed::Long),
        };
        let has_text = dialect != Dialect::Embeddings;
        let answer = has_text.then(|| Ok(Answer::new(counter, streamed, self.longest)));
        let open = Open {
            prompt,
            answer,
            places: vec![place],
        };
        self.open.insert(id, open);
    }

    fn more(&mut self, id: u64, bytes: &[u8], place: Place) {
        let Some(open) = self.open.get_mut(&id) else {
            return;
        };
        let mut answer = match open.answer.take() {
            Some(Ok(answer)) => answer,
            none => {
                open.answer = none;
                return;
            }
        };
        if answer.holds_all() {
            open.places.push(place);
        }
        let pushed = guarded(move || {
            answer.push(bytes);
            Ok(answer)
        });
        open.answer = Some(pushed);
    }

    fn end(&mut self, ended: Ended) {
        let (prompt, output) = match self.open.remove(&ended.id) {
            Some(Open { prompt, answer, .. }) => {
                let answer = answer.filter(|_| ended.has_answer);
                let output = answer.map(|answer| found(answer?, &ended));
                (Some(prompt), output)
            }
            None => (Some(Err(Missed::Unreadable)), None),
        };
        let counted = Counted {
            id: ended.id,
            model: ended.model,
            tokens: ended.tokens,
            is_whole: ended.is_whole,
            prompt,
            output,
            rest: ended.rest,
        };
        // Without a desk there is nobody to tell.
        let _gone = self.desk.send(Note::Counted(Box::new(counted)));
    }
}

fn found(answer: Answer, ended: &Ended) -> Result<Count, Missed> {
    if ended.is_broken {
        return Err(Missed::Busy);
    }
    let Output { count, reasoning } = guarded(|| answer.finish(ended.is_whole))?;
    if reasoning == 0 && ended.tokens.reasoning.is_some_and(|hidden| hidden > 0) {
        return Err(Missed::Hidden);
    }
    Ok(count)
}

/// A tokenizer that panics costs its count and nothing else.
fn guarded<T>(count: impl FnOnce() -> Result<T, Missed>) -> Result<T, Missed> {
    catch_unwind(AssertUnwindSafe(count)).unwrap_or(Err(Missed::Unreadable))
}
