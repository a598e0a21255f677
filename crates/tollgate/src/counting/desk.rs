//! Where a row waits for its count, and where the two witnesses are compared.
//!
//! Invariant: every row that was held is settled once: with its count, or without it when that takes too long or never
//! comes. What the engine reported stays what is billed; a count takes the place of an estimate only.
//! Not here: counting (`counter`), writing rows (`ledger`), the alarm's arithmetic (`tokens::drift`).

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use ledger::{Intake, Settlement, Witnesses};
use policy::price::Price;
use policy::record::{Count as Billed, Tokens};
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
}

pub(super) struct Desk {
    intake: Option<Intake>,
    board: Arc<Board>,
    tolerances: Tolerances,
    held: HashMap<u64, Box<Waiting>>,
    /// In the order in which they came.
    due: VecDeque<(Instant, u64)>,
}

impl Desk {
    pub(super) fn new(intake: Option<Intake>, board: Arc<Board>, tolerances: Tolerances) -> Self {
        Self {
            intake,
            board,
            tolerances,
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
                    self.let_go(Instant::now());
                    std::thread::sleep(LOOK_EVERY);
                }
                Err(TryRecvError::Disconnected) => break,
            }
        }
        self.let_go(Instant::now() + PATIENCE);
    }

    fn take(&mut self, note: Note, now: Instant) {
        match note {
            Note::Held(id, held) => {
                self.held.insert(id, held);
                self.due.push_back((now + PATIENCE, id));
            }
            Note::Counted(counted) => self.counted(&counted),
        }
    }

    fn counted(&mut self, counted: &Counted) {
        if let Some(mut held) = self.held.remove(&counted.id) {
            complete(&mut held, counted);
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

/// Puts the count beside what was reported, and charges anew where it is what is billed.
fn complete(held: &mut Waiting, counted: &Counted) {
    let Waiting { row, price } = held;
    let guessed = [row.prompt.billed, row.completion.billed];
    witness(&mut row.prompt, counted.prompt);
    witness(&mut row.completion, counted.output);
    let [prompt, completion] = [row.prompt.billed, row.completion.billed];
    if let (Some(by), Some(charged)) = (price, &mut row.price)
        && guessed != [prompt, completion]
    {
        charged.cost = by.cost(&Tokens {
            prompt,
            completion,
            cached: row.cached,
            cache_write_5m: row.cache_write_5m,
            cache_write_1h: row.cache_write_1h,
            reasoning: row.reasoning,
            audio_prompt: row.audio_prompt,
            audio_completion: row.audio_completion,
            invalid: row.usage_invalid,
            ..Tokens::default()
        });
    }
}

fn witness(witnesses: &mut Witnesses, found: Found) {
    let Some(Ok(count)) = found else {
        return;
    };
    match witnesses.billed {
        // Nothing was used that costs tokens.
        Billed::Unknown => return,
        Billed::Estimated(_) => witnesses.billed = Billed::Counted(count.tokens),
        Billed::Reported(_) | Billed::Counted(_) => {}
    }
    witnesses.counted = Some(count.tokens);
}

#[cfg(test)]
mod tests;
