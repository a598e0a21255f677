//! The gate's own count: a pool beside the workers that reads what they forwarded.
//!
//! ```text
//! worker ── request, batches, end ──► counter thread ── count ──► desk ──► ledger, metrics, access log
//!    └──────────── the row, held until its count is there ─────────▲
//! ```
//!
//! Invariant: a worker sends and never waits; all that waits to be counted is within the room. A row waits for its
//! count at the desk, for a bounded time: no count can lose one.
//! Not here: tokenizers (`tokens`), the rows (`ledger`), what a worker copies (`proxy`).

mod answer;
mod board;
mod counter;
mod desk;
mod room;
mod shelf;
mod teller;

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ledger::Intake;
use policy::counting::Counting as Hand;
use policy::operation::Operation;
use policy::record::Sink;
use telemetry::{Copied, Facts};
use tokens::drift::Tolerance;
use tokens::{Count, Dialect};

pub(crate) use board::{Board, Direction, RESULTS};
use desk::Desk;
pub(crate) use desk::{Note, Waiting};
use room::Room;
pub(crate) use shelf::{Counters, Shelf};
use teller::Teller;

/// How often a thread looks for something to do. Waking it would cost the worker a system call.
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long the last counts may take when the gate ends.
const CLOSE_WITHIN: Duration = Duration::from_secs(30);

/// Who counts.
pub(crate) struct Counting {
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) room: Arc<Room>,
    pub(crate) board: Arc<Board>,
    /// Of the exchanges that are told of once they are counted.
    facts: Arc<Mutex<Facts>>,
    counters: Vec<Sender<counter::Word>>,
    desk: Sender<Note>,
    threads: Vec<JoinHandle<()>>,
    /// Told to let every row go.
    is_over: Arc<AtomicBool>,
    longest: usize,
}

/// Why something has no count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Missed {
    /// There was no room for it.
    Busy,
    /// It was longer than the bound.
    Long,
    /// It has no text to count, or none that could be read.
    Unreadable,
    /// The engine reports reasoning that it did not show.
    Hidden,
    /// The count was not there in time.
    Late,
}

/// How far reports may lie from counts.
#[derive(Debug, Clone, Copy)]
struct Tolerances {
    exact: Tolerance,
    overhead: Tolerance,
    output: Tolerance,
}

impl Counting {
    /// Starts the threads; rows go to this ledger, where there is one.
    pub(crate) fn start(
        settings: &config::Counting,
        shelf: Arc<Shelf>,
        intake: Option<Intake>,
        facts: Facts,
    ) -> Result<Self, String> {
        let (desk, notes) = channel();
        let mut counting = Self {
            shelf,
            room: Room::new(settings.queue_bytes),
            board: Arc::default(),
            facts: Arc::new(Mutex::new(facts)),
            counters: Vec::new(),
            desk,
            threads: Vec::new(),
            is_over: Arc::default(),
            longest: settings.longest_bytes,
        };
        for index in 0..settings.threads.max(1) {
            let (sender, words) = channel();
            let counter = counter::Counter::new(
                Arc::clone(&counting.shelf),
                counting.desk.clone(),
                settings.longest_bytes,
            );
            let board = Arc::clone(&counting.board);
            counting.counters.push(sender);
            counting.spawn(format!("counter-{index}"), move || {
                counter.run(&words, &board);
            })?;
        }
        let board = Arc::clone(&counting.board);
        let facts = Arc::clone(&counting.facts);
        let desk = Desk::new(intake, board, tolerances(settings), facts);
        let is_over = Arc::clone(&counting.is_over);
        counting.spawn("counting-desk".to_owned(), move || {
            desk.run(&notes, &is_over);
        })?;
        Ok(counting)
    }

    fn spawn(&mut self, name: String, run: impl FnOnce() + Send + 'static) -> Result<(), String> {
        let thread = thread::Builder::new().name(name).spawn(run);
        let thread = thread.map_err(|error| format!("cannot start to count: {error}"))?;
        self.threads.push(thread);
        Ok(())
    }

    /// A worker's way in.
    pub(crate) fn teller(&self, worker: usize) -> Box<dyn Hand + Send> {
        Box::new(Teller::new(
            worker,
            self.counters.clone(),
            Arc::clone(&self.room),
            Arc::clone(&self.board),
            self.longest,
        ))
    }

    /// Where rows wait for their counts.
    pub(crate) fn desk(&self) -> Sender<Note> {
        self.desk.clone()
    }

    /// What was counted of the exchanges that waited for their counts.
    pub(crate) fn copy(&self) -> Option<Copied> {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        Copied::of(facts.copy())
    }

    /// Counts what is left and lets every row go. Every worker has to have ended. Gives the last facts.
    pub(crate) fn close(self) -> Option<Copied> {
        let Self {
            facts,
            counters,
            desk,
            threads,
            is_over,
            ..
        } = self;
        drop((counters, desk));
        let until = Instant::now() + CLOSE_WITHIN;
        let ended = |threads: &[JoinHandle<()>]| threads.iter().all(JoinHandle::is_finished);
        while !ended(&threads) && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        is_over.store(true, Relaxed);
        // A counter that is stuck is left behind; the desk is the last and never is.
        if let Some(desk) = threads.into_iter().next_back()
            && desk.join().is_err()
        {
            tracing::error!("bug: the desk of the counting pool panicked; rows may be lost");
        }
        let facts = facts.lock().unwrap_or_else(PoisonError::into_inner);
        Copied::of(facts.copy())
    }
}

fn tolerances(settings: &config::Counting) -> Tolerances {
    let set = |tolerance: Tolerance, per_mille: Option<u64>| Tolerance {
        per_mille: per_mille.unwrap_or(tolerance.per_mille),
        ..tolerance
    };
    Tolerances {
        exact: set(Tolerance::EXACT, settings.prompt_per_mille),
        overhead: set(Tolerance::OVERHEAD, settings.prompt_per_mille),
        output: set(Tolerance::OUTPUT, settings.output_per_mille),
    }
}

/// The dialect of an operation's body, where it has text to count.
const fn dialect(operation: Operation) -> Option<Dialect> {
    match operation {
        Operation::Chat => Some(Dialect::Chat),
        Operation::Completions => Some(Dialect::Completions),
        Operation::Responses => Some(Dialect::Responses),
        Operation::Messages => Some(Dialect::Messages),
        Operation::Embeddings => Some(Dialect::Embeddings),
        Operation::Models
        | Operation::CountTokens
        | Operation::Moderations
        | Operation::Rerank
        | Operation::Speech
        | Operation::Transcriptions
        | Operation::Images
        | Operation::ImageEdits
        | Operation::Unread => None,
    }
}

/// A count, or why there is none; `None` where nothing was to be counted.
type Found = Option<Result<Count, Missed>>;
