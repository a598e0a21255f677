//! A worker's end of the pool: what it hands over, and what it does when there is no room.
//!
//! Invariant: nothing here waits or locks. An exchange that began is ended at its counter whatever else finds no
//! room: its end takes none, since the place that it took when it began covers it.
//! Not here: counting (`counter`), rows (`desk`).

use std::sync::Arc;
use std::sync::mpsc::Sender;

use bytes::Bytes;
use policy::counting::{Counting, Tally, Uncounted, label, tokenizer};
use policy::record::{Outcome, Record};
use policy::snapshot::Snapshot;

use super::board::{Board, Direction};
use super::counter::{Begun, Ended, Word};
use super::room::Room;
use super::{Missed, dialect};

/// What an exchange takes besides its bytes: what its counter keeps of it.
const EXCHANGE_BYTES: usize = 4 << 10;

pub(super) struct Teller {
    counters: Vec<Sender<Word>>,
    room: Arc<Room>,
    board: Arc<Board>,
    longest: usize,
    next: u64,
}

impl Teller {
    pub(super) fn new(
        worker: usize,
        counters: Vec<Sender<Word>>,
        room: Arc<Room>,
        board: Arc<Board>,
        longest: usize,
    ) -> Self {
        Self {
            counters,
            room,
            board,
            longest,
            next: (worker as u64) << 48,
        }
    }

    /// All that is said of one exchange goes to one thread. An error when that thread is gone.
    fn say(&self, id: u64, word: Word) -> Result<(), Word> {
        let at = usize::try_from(id % self.counters.len() as u64).unwrap_or(0);
        self.counters[at].send(word).map_err(|unsaid| unsaid.0)
    }
}

impl Counting for Teller {
    fn begin(&mut self, of: &Snapshot, record: &Record, request: Vec<Bytes>) -> Option<Box<Tally>> {
        let dialect = dialect(record.operation?)?;
        let model = record.model_sent.as_deref().unwrap_or_default();
        let tokenizer = tokenizer(of, model)?;
        let length: usize = request.iter().map(Bytes::len).sum();
        let is_long = length > self.longest;
        let held = if is_long { 0 } else { length };
        let Some(place) = self.room.take(EXCHANGE_BYTES + held) else {
            self.board.missed(Direction::Prompt, Missed::Busy);
            self.board.missed(Direction::Output, Missed::Busy);
            return None;
        };
        self.next += 1;
        let id = self.next;
        let begun = Begun {
            id,
            key: tokenizer.key,
            dialect,
            clock_s: i64::try_from(record.started_unix_ms / 1000).unwrap_or(0),
            streamed: record.streamed,
            request: (!is_long).then_some(request),
            place,
        };
        let said = self.say(id, Word::Begin(Box::new(begun)));
        said.is_ok().then(|| Box::new(Tally::new(id)))
    }

    fn more(&mut self, tally: &mut Tally) {
        let batch = std::mem::take(&mut tally.batch);
        let place = self.room.take(batch.len());
        let said = place.map(|place| self.say(tally.id, Word::More(tally.id, batch, place)));
        tally.is_broken = !matches!(said, Some(Ok(())));
    }

    fn end(
        &mut self,
        mut tally: Box<Tally>,
        of: &Snapshot,
        record: &Record,
        rest: Option<Box<Uncounted>>,
    ) -> Option<Box<Uncounted>> {
        if !tally.batch.is_empty() && !tally.is_broken {
            self.more(&mut tally);
        }
        let model = record.model_sent.as_deref().unwrap_or_default();
        let Some(tokenizer) = tokenizer(of, model) else {
            return rest;
        };
        let ended = Ended {
            id: tally.id,
            model: label(of, tokenizer, model),
            tokens: record.tokens,
            is_whole: record.outcome == Outcome::Completed,
            is_broken: tally.is_broken,
            has_answer: !record.is_charged_unanswered(),
            rest,
        };
        match self.say(tally.id, Word::End(Box::new(ended))) {
            Err(Word::End(ended)) => ended.rest,
            Ok(()) | Err(Word::Begin(_) | Word::More(..)) => None,
        }
    }
}
