//! Which exchange is counted next.
//!
//! Invariant: the events of one exchange are taken in the order in which they came, by one thread at a time; nothing
//! that was pushed is passed over. Exchanges of routes that are billed by count go first, but every eighth turn is of
//! the others, so that these are late and not lost.
//! Not here: threads (`shared_queue`), how much may wait (`memory`), what a turn does (`counter`).

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use policy::billing::BilledBy;

use crate::exchange_id::billed_by;

/// One turn of so many is of an exchange that is not billed by count, where both kinds wait.
const TURN_OF_OTHERS: u32 = 8;

/// Exchanges with events of type `E`; `S` is what is kept of one between its turns.
#[derive(Debug)]
pub(crate) struct Queue<E, S> {
    exchanges: HashMap<u64, Exchange<E, S>>,
    /// Those that wait for a turn, and since when: billed by count, and others.
    first: VecDeque<(u64, Instant)>,
    others: VecDeque<(u64, Instant)>,
    /// Turns since one was of the others.
    turns: u32,
}

#[derive(Debug)]
struct Exchange<E, S> {
    events: Vec<E>,
    kept: Option<S>,
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It has had all its events so far.
    Idle,
    Waits,
    /// A thread is at it.
    Taken,
}

/// What one thread is to do now.
#[derive(Debug)]
pub(crate) struct Turn<E, S> {
    pub(crate) id: u64,
    /// At least one, in order.
    pub(crate) events: Vec<E>,
    /// What was kept of the turn before.
    pub(crate) kept: Option<S>,
}

impl<E, S> Default for Queue<E, S> {
    fn default() -> Self {
        Self {
            exchanges: HashMap::new(),
            first: VecDeque::new(),
            others: VecDeque::new(),
            turns: 0,
        }
    }
}

impl<E, S> Queue<E, S> {
    /// The next event of an exchange.
    pub(crate) fn push(&mut self, id: u64, event: E, now: Instant) {
        let exchange = self.exchanges.entry(id).or_insert_with(|| Exchange {
            events: Vec::new(),
            kept: None,
            place: Place::Idle,
        });
        exchange.events.push(event);
        if exchange.place == Place::Idle {
            exchange.place = Place::Waits;
            self.line_up(id, now);
        }
    }

    /// The exchange whose turn it is, with all its events so far.
    pub(crate) fn take(&mut self) -> Option<Turn<E, S>> {
        let is_others = self.first.is_empty() || self.turns + 1 >= TURN_OF_OTHERS;
        let next = if is_others {
            self.others.pop_front()
        } else {
            None
        };
        self.turns = match next {
            Some(_) => 0,
            None => self.turns.saturating_add(1),
        };
        let (id, _) = next.or_else(|| self.first.pop_front())?;
        let exchange = self.exchanges.get_mut(&id)?;
        exchange.place = Place::Taken;
        Some(Turn {
            id,
            events: std::mem::take(&mut exchange.events),
            kept: exchange.kept.take(),
        })
    }

    /// A turn is over. With nothing to keep the exchange is forgotten, unless there is more of it.
    pub(crate) fn put_back(&mut self, id: u64, kept: Option<S>, now: Instant) {
        let Some(exchange) = self.exchanges.get_mut(&id) else {
            return;
        };
        let is_over = kept.is_none();
        exchange.kept = kept;
        if !exchange.events.is_empty() {
            exchange.place = Place::Waits;
            self.line_up(id, now);
        } else if is_over {
            self.exchanges.remove(&id);
        } else {
            exchange.place = Place::Idle;
        }
    }

    /// How long the one that waits longest has waited.
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        let fronts = [self.first.front(), self.others.front()];
        let since = fronts.into_iter().flatten().map(|(_, since)| *since).min();
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn line_up(&mut self, id: u64, now: Instant) {
        let line = match billed_by(id) {
            BilledBy::Counted => &mut self.first,
            BilledBy::Reported => &mut self.others,
        };
        line.push_back((id, now));
    }
}

#[cfg(test)]
mod tests;
