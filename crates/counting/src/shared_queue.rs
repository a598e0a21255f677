//! The queue that all counting threads take from.
//!
//! ```text
//! worker 0 ── channel ──┐
//! worker 1 ── channel ──┴─► queue ─► whichever thread is free ─► one turn of one exchange
//! ```
//!
//! A worker puts its events into a channel of its own and never comes near the lock: threads that count empty the
//! channels into the queue when they look, and hold the lock for that and to take a turn, never while they count.
//! Threads follow the load: one that finds exchanges waiting for longer than a look wakes one more, and one that finds
//! nothing rests. Of those that rest the first looks every 20 ms, each further one a quarter as often, so that one that is
//! at a long prompt holds up nobody for longer than the next one's look.
//! Invariant: events of one exchange are handled in order, by one thread at a time.
//! Not here: which exchange comes next (`queue`), what is done with it (`counter`).

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::bell::{Bell, LOOK_EVERY, QUIET_AFTER, SLEEP};
use crate::queue::{Length, Queue, Turn};

/// Events that are taken from each channel at one look: the lock is held for well below a millisecond.
const EVENTS_AT_A_LOOK: usize = 4096;
/// How often a thread that has enough to do looks for what goes before it.
const LOOK_WHILE_BUSY: Duration = Duration::from_millis(1);
/// How often a thread that has enough to do says how far it is.
const PAUSE_EVERY: Duration = Duration::from_millis(5);

/// Where a worker, or who else has events, sends them.
#[derive(Debug)]
pub(crate) struct Inlet<E> {
    sender: Sender<(u64, E)>,
    bell: Arc<Bell>,
}

impl<E> Inlet<E> {
    /// The next event of an exchange; all of them have to go through one inlet.
    ///
    /// # Errors
    /// The event, when nobody counts any more.
    pub(crate) fn send(&self, id: u64, event: E) -> Result<(), E> {
        let sent = self.sender.send((id, event));
        self.bell.ring();
        sent.map_err(|unsent| unsent.0.1)
    }
}

#[derive(Debug)]
pub(crate) struct SharedQueue<E, S> {
    state: Mutex<State<E, S>>,
    bell: Arc<Bell>,
}

#[derive(Debug)]
struct State<E, S> {
    inlets: Vec<Receiver<(u64, E)>>,
    queue: Queue<E, S>,
    /// Who rests, the one that looks most often first.
    resting: Box<[Option<usize>]>,
    heard_at: Instant,
    looked_at: Instant,
    /// Something came after a quiet time, in which those that rest sleep for long.
    was_quiet: bool,
    /// No more inlets will be made.
    is_closed: bool,
}

impl<E: Length, S> SharedQueue<E, S> {
    /// One that so many threads take from.
    pub(crate) fn new(threads: usize) -> Self {
        let now = Instant::now();
        Self {
            state: Mutex::new(State {
                inlets: Vec::new(),
                queue: Queue::default(),
                resting: vec![None; threads].into(),
                heard_at: now,
                looked_at: now,
                was_quiet: false,
                is_closed: false,
            }),
            bell: Arc::new(Bell::new(threads)),
        }
    }

    /// A way in.
    pub(crate) fn inlet(&self) -> Inlet<E> {
        let (sender, events) = channel();
        self.lock().inlets.push(events);
        let bell = Arc::clone(&self.bell);
        Inlet { sender, bell }
    }

    /// Lets threads end once all inlets are gone and nothing is left.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        while state.wake_one(&self.bell) {}
    }

    /// Takes turns until the queue is closed and empty. `work` gets one turn and gives back what is to be kept of its
    /// exchange until the next one. `pause` is called before the thread rests or ends, and every 5 ms while it works.
    pub(crate) fn run(
        &self,
        index: usize,
        mut work: impl FnMut(Turn<E, S>) -> Option<S>,
        mut pause: impl FnMut(),
    ) {
        self.bell.join(index);
        let mut state = self.lock();
        let mut now = Instant::now();
        let mut paused_at = now;
        loop {
            if state.queue.is_empty() || now.duration_since(state.looked_at) >= LOOK_WHILE_BUSY {
                state.look(now);
            }
            if let Some(turn) = state.queue.take() {
                let was_quiet = std::mem::take(&mut state.was_quiet);
                if was_quiet || state.queue.waited(now) >= LOOK_EVERY {
                    state.wake_one(&self.bell);
                }
                drop(state);
                let id = turn.id;
                let kept = work(turn);
                now = Instant::now();
                if now.duration_since(paused_at) >= PAUSE_EVERY {
                    paused_at = now;
                    pause();
                }
                state = self.lock();
                state.queue.put_back(id, kept, now);
            } else if state.is_closed && state.inlets.is_empty() {
                drop(state);
                pause();
                return;
            } else {
                pause();
                paused_at = now;
                state = self.rest(state, index, now);
                now = Instant::now();
            }
        }
    }

    /// Rests until it is time to look again, or somebody wakes it.
    fn rest<'s>(
        &'s self,
        mut state: MutexGuard<'s, State<E, S>>,
        index: usize,
        now: Instant,
    ) -> MutexGuard<'s, State<E, S>> {
        let is_quiet = now.saturating_duration_since(state.heard_at) >= QUIET_AFTER;
        if is_quiet && self.bell.listen(index) && state.look(Instant::now()) {
            self.bell.is_up(index);
            return state;
        }
        let level = state.resting.iter().position(Option::is_none).unwrap_or(0);
        let time = match state.is_closed {
            true => LOOK_EVERY,
            false if is_quiet => SLEEP,
            false => look_after(level),
        };
        state.resting[level] = Some(index);
        drop(state);
        thread::park_timeout(time);
        self.bell.is_up(index);
        let mut state = self.lock();
        // Whoever woke it has taken it out already.
        if state.resting[level] == Some(index) {
            state.resting[level] = None;
        }
        state
    }

    fn lock(&self) -> MutexGuard<'_, State<E, S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a thread rests while so many others look more often.
fn look_after(level: usize) -> Duration {
    let times = u32::try_from(2 * level).ok();
    let times = times.and_then(|by| 1_u32.checked_shl(by));
    let time = times.and_then(|times| LOOK_EVERY.checked_mul(times));
    time.map_or(SLEEP, |time| time.min(SLEEP))
}

impl<E: Length, S> State<E, S> {
    /// Empties the channels, and says whether there was anything.
    fn look(&mut self, now: Instant) -> bool {
        self.looked_at = now;
        let (queue, mut has_heard) = (&mut self.queue, false);
        self.inlets.retain(|inlet| {
            for _ in 0..EVENTS_AT_A_LOOK {
                match inlet.try_recv() {
                    Ok((id, event)) => {
                        has_heard = true;
                        queue.push(id, event, now);
                    }
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return false,
                }
            }
            true
        });
        if has_heard {
            self.was_quiet |= now.saturating_duration_since(self.heard_at) >= QUIET_AFTER;
            self.heard_at = now;
        }
        has_heard
    }

    /// Wakes one of those that rest, where there is one.
    fn wake_one(&mut self, bell: &Bell) -> bool {
        let resting = self.resting.iter_mut().find_map(Option::take);
        if let Some(index) = resting {
            bell.wake(index);
        }
        resting.is_some()
    }
}

#[cfg(test)]
mod tests;
