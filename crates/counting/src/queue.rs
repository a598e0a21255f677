//! Which exchange is counted next.
//!
//! Invariant: the events of one exchange are taken in the order in which they came, by one thread at a time; nothing
//! that was pushed is passed over. Exchanges of routes that are billed by count go first, but every eighth turn is of
//! the others, so that these are late and not lost. Long ones, whoever is billed for them, have a line of their own and
//! at most a quarter of the bytes while short ones wait: nobody's prompts of megabytes keep all others uncounted. In either
//! line those that are billed by count go first.
//! Not here: threads (`shared_queue`), how much may wait (`memory`), what a turn does (`counter`).

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use policy::billing::BilledBy;
use policy::fast_hash::Mix;

use crate::exchange_id::billed_by;

/// One turn of so many is of an exchange that is not billed by count, where both kinds wait.
const TURN_OF_OTHERS: u32 = 8;

/// From so many bytes on a turn is long.
const LONG_BYTES: usize = 256 << 10;
/// Bytes of short turns for each byte of a long one, where both wait.
const SHORT_PER_LONG: usize = 3;
/// What a turn costs whatever its length, as bytes.
const TURN_BYTES: usize = 1 << 10;

/// Something whose counting takes time in its length.
pub(crate) trait Length {
    /// Bytes to count.
    fn bytes(&self) -> usize;
}

/// Exchanges with events of type `E`; `S` is what is kept of one between its turns.
#[derive(Debug)]
pub(crate) struct Queue<E, S> {
    exchanges: HashMap<u64, Exchange<E, S>, Mix>,
    short: Line,
    long: Line,
    /// Bytes of short turns that come before the next long one.
    owed: usize,
}

/// Exchanges that wait for a turn, and since when.
#[derive(Debug, Default)]
struct Line {
    /// Billed by count.
    first: VecDeque<(u64, Instant)>,
    others: VecDeque<(u64, Instant)>,
    /// Turns since one was of the others.
    turns: u32,
}

impl Line {
    fn is_empty(&self) -> bool {
        self.first.is_empty() && self.others.is_empty()
    }

    fn push(&mut self, id: u64, now: Instant) {
        match billed_by(id) {
            BilledBy::Counted => self.first.push_back((id, now)),
            BilledBy::Reported => self.others.push_back((id, now)),
        }
    }

    fn pop(&mut self) -> Option<(u64, Instant)> {
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
        next.or_else(|| self.first.pop_front())
    }

    /// Since when the one waits that waits longest.
    fn since(&self) -> Option<Instant> {
        let fronts = [self.first.front(), self.others.front()];
        fronts.into_iter().flatten().map(|(_, since)| *since).min()
    }
}

#[derive(Debug)]
struct Exchange<E, S> {
    events: Vec<E>,
    kept: Option<S>,
    place: Place,
}

impl<E: Length, S> Exchange<E, S> {
    fn bytes(&self) -> usize {
        self.events.iter().map(Length::bytes).sum()
    }
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
            exchanges: HashMap::default(),
            short: Line::default(),
            long: Line::default(),
            owed: 0,
        }
    }
}

impl<E: Length, S> Queue<E, S> {
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
        let is_long = self.has_long_turn();
        let (id, _) = if is_long {
            self.long.pop()?
        } else {
            self.short.pop()?
        };
        let exchange = self.exchanges.get_mut(&id)?;
        exchange.place = Place::Taken;
        let bytes = TURN_BYTES + exchange.bytes();
        self.owed = if is_long {
            bytes.saturating_mul(SHORT_PER_LONG)
        } else {
            self.owed.saturating_sub(bytes)
        };
        Some(Turn {
            id,
            events: std::mem::take(&mut exchange.events),
            kept: exchange.kept.take(),
        })
    }

    fn has_long_turn(&self) -> bool {
        !self.long.is_empty() && (self.short.is_empty() || self.owed == 0)
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

    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.short.is_empty() && self.long.is_empty()
    }

    /// How long the one that waits longest has waited.
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        let since = self
            .short
            .since()
            .into_iter()
            .chain(self.long.since())
            .min();
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }

    fn line_up(&mut self, id: u64, now: Instant) {
        let bytes = self.exchanges.get(&id).map_or(0, Exchange::bytes);
        let line = if bytes >= LONG_BYTES {
            &mut self.long
        } else {
            &mut self.short
        };
        line.push(id, now);
    }
}

#[cfg(test)]
mod tests;
