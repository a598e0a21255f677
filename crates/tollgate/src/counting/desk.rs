//! Where a row waits for its count, and where the two witnesses are compared.
//!
//! Invariant: every row that was held is settled once: with its count, or without it when that takes too long or never
//! comes. A count takes the place of an estimate, and of what the engine reported where its route says so; then the
//! exchange's metrics, log line, limits and budgets have what its row has.
//! Not here: counting (`counter`), writing rows (`ledger`), the alarm's arithmetic (`tokens::drift`).

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ledger::{Intake, Settlement, Witnesses};
use policy::counting::{BilledBy, Uncounted};
use policy::price::Price;
use policy::record::{Count as Billed, Sink, Tokens};
use telemetry::Facts;
use tokens::{Certainty, Count};

use super::board::{Board, Direction};
use super::{Found, LOOK_EVERY, Missed, Tolerances};

/// How long a row waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// What comes to the desk.
pub(crate) enum Note {
    /// A row that its tally's count belongs to. It comes before the count.
    Held(u64, Box<Waiting>),
    Counted(Box<Counted>),
}

/// A row, and the price it was charged by.
pub(crate) struct Waiting {
    pub(crate) row: Settlement,
    pub(crate) price: Option<Arc<Price>>,
}

/// What an exchange came to by our own count.
pub(crate) struct Counted {
    pub(super) id: u64,
    pub(super) model: Arc<str>,
    /// What was known without it.
    pub(super) tokens: Tokens,
    pub(super) is_whole: bool,
    pub(super) prompt: Found,
    pub(super) output: Found,
    /// Its record, where it is told now.
    pub(super) rest: Option<Box<Uncounted>>,
}

pub(super) struct Desk {
    intake: Option<Intake>,
    board: Arc<Board>,
    tolerances: Tolerances,
    facts: Arc<Mutex<Facts>>,
    held: HashMap<u64, Box<Waiting>>,
    /// In the order in which they came.
    due: VecDeque<(Instant, u64)>,
}

impl Desk {
    pub(super) fn new(
        intake: Option<Intake>,
        board: Arc<Board>,
        tolerances: Tolerances,
        facts: Arc<Mutex<Facts>>,
    ) -> Self {
        Self {
            intake,
            board,
            tolerances,
            facts,
            held: HashMap::new(),
            due: VecDeque::new(),
        }
    }

    /// Until nobody is left who could bring anything, or it is over.
    pub(super) fn run(mut self, notes: &Receiver<Note>, is_over: &AtomicBool) {
        loop {
            match notes.try_recv() {
                Ok(note) => {
                    let now = Instant::now();
                    self.take(note, now);
                    self.let_go(now);
                }
                Err(TryRecvError::Empty) if is_over.load(Relaxed) => break,
                Err(TryRecvError::Empty) => {
                    self.facts().tick();
                    self.let_go(Instant::now());
                    std::thread::sleep(LOOK_EVERY);
                }
                Err(TryRecvError::Disconnected) => break,
            }
        }
        self.let_go(Instant::now() + PATIENCE);
        self.facts().tick();
    }

    /// Nobody but a scrape shares them.
    fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&mut self, note: Note, now: Instant) {
        match note {
            Note::Held(id, held) => {
                self.held.insert(id, held);
                self.due.push_back((now + PATIENCE, id));
            }
            Note::Counted(counted) => self.counted(*counted),
        }
    }

    fn counted(&mut self, mut counted: Counted) {
        let held = self.held.remove(&counted.id);
        let rest = counted.rest.take();
        let billed = rest.map(|rest| self.charge(*rest, &counted, held.is_none()));
        if let Some(mut held) = held {
            complete(&mut held, &counted, billed.as_ref());
            self.settle(held.row);
        }
        let sides = [
            (Direction::Prompt, counted.prompt, counted.tokens.prompt),
            (Direction::Output, counted.output, counted.tokens.completion),
        ];
        for (direction, found, billed) in sides {
            match found {
                Some(Ok(count)) => {
                    self.board.counted(direction, count);
                    if let (Billed::Reported(reported), true) = (billed, counted.is_whole) {
                        let tolerance = self.tolerance(direction, count);
                        let sides = (reported, count.tokens);
                        self.board
                            .compare(&counted.model, direction, tolerance, sides);
                    }
                }
                Some(Err(missed)) => self.board.missed(direction, missed),
                None => {}
            }
        }
    }

    /// Charges an exchange by its count, and tells of it. One whose row was let go has what that has.
    fn charge(&self, mut rest: Uncounted, counted: &Counted, is_gone: bool) -> Tokens {
        let own = |found: Found| found.and_then(Result::ok).map(|count| count.tokens);
        let record = &rest.record;
        let tokens = if rest.has_row && is_gone {
            record.tokens
        } else {
            let by = BilledBy::of(&rest.of, record);
            by.charged(record, own(counted.prompt), own(counted.output))
        };
        rest.settle(tokens);
        self.facts().exchange(&rest.of, &rest.record);
        tokens
    }

    fn tolerance(&self, direction: Direction, count: Count) -> tokens::drift::Tolerance {
        match (direction, count.certainty) {
            (Direction::Output, _) => self.tolerances.output,
            (Direction::Prompt, Certainty::Exact) => self.tolerances.exact,
            (Direction::Prompt, Certainty::Approximate(_)) => self.tolerances.overhead,
        }
    }

    /// Settles those that have waited long enough.
    fn let_go(&mut self, now: Instant) {
        while let Some(&(due, id)) = self.due.front() {
            let has_waited = due <= now;
            if !has_waited && self.held.contains_key(&id) {
                return;
            }
            self.due.pop_front();
            if let Some(held) = self.held.remove(&id) {
                self.board.missed(Direction::Prompt, Missed::Late);
                self.board.missed(Direction::Output, Missed::Late);
                self.settle(held.row);
            }
        }
    }

    fn settle(&self, row: Settlement) {
        if let Some(intake) = &self.intake {
            intake.settle(row);
        }
    }
}

/// Puts the count beside what was reported, and charges anew where it changes what is billed.
fn complete(held: &mut Waiting, counted: &Counted, billed: Option<&Tokens>) {
    let Waiting { row, price } = held;
    witness(&mut row.prompt, counted.prompt);
    witness(&mut row.completion, counted.output);
    let Some(billed) = billed else {
        return;
    };
    let before = [row.prompt.billed, row.completion.billed];
    [row.prompt.billed, row.completion.billed] = [billed.prompt, billed.completion];
    if let (Some(by), Some(charged)) = (price, &mut row.price)
        && before != [billed.prompt, billed.completion]
    {
        charged.cost = by.cost(billed);
    }
}

fn witness(witnesses: &mut Witnesses, found: Found) {
    if let Some(Ok(count)) = found
        // Else nothing was used that costs tokens.
        && witnesses.billed != Billed::Unknown
    {
        witnesses.counted = Some(count.tokens);
    }
}

#[cfg(test)]
mod tests;
