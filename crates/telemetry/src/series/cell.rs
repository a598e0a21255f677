//! What is counted of exchanges, and of attempts, that share their labels.
//!
//! Invariant: an estimate of a refused call is no usage; a cell's parts add up in any order.
//! Not here: which labels those are (`key`), how many cells there may be (`series`).

use policy::record::{Count, Outcome, Record};

use super::key::{Ending, RESULTS};
use crate::histogram::{FIRST_TOKEN, Histogram, OWN, PER_TOKEN, REQUEST, TOKENS, WAIT};

/// Durations of the gate's own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Times {
    pub(crate) own: Histogram<27>,
    pub(crate) first_byte: Histogram<17>,
    pub(crate) upstream: Histogram<17>,
}

/// Exchanges that share labels.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pub(crate) endings: Vec<(Ending, u64)>,
    pub(crate) codes: Vec<((Outcome, &'static str), u64)>,
    /// Prompt and completion by witness, in the order of [`SOURCES`].
    pub(crate) tokens: [[u64; 3]; 2],
    pub(crate) cached: u64,
    pub(crate) reasoning: u64,
    /// Written to caches for five minutes and for an hour; audio of prompt and completion.
    pub(crate) further: [u64; 4],
    pub(crate) invalid: u64,
    pub(crate) doubtful: u64,
    pub(crate) dropped: u64,
    pub(crate) usage: [Histogram<14>; 2],
    pub(crate) duration: Histogram<14>,
    pub(crate) first_token: Histogram<16>,
    pub(crate) per_token: Histogram<13>,
}

/// Witnesses of a count.
pub(crate) const SOURCES: [&str; 3] = ["reported", "counted", "estimated"];

/// Attempts at one endpoint.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tries {
    /// By result, in the order of [`RESULTS`].
    pub(crate) by_result: [u64; RESULTS.len()],
    pub(crate) retried: u64,
    /// Tries that the retry budget let no other one follow.
    pub(crate) refused: u64,
}

impl Times {
    pub(super) fn count(&mut self, record: &Record) {
        if let Some(own) = record.own {
            self.own.time(&OWN, own);
        }
        if let Some(first_byte) = record.first_byte {
            self.first_byte.time(&WAIT, first_byte);
        }
        if let Some(upstream) = record.upstream {
            self.upstream.time(&WAIT, upstream);
        }
    }

    pub(crate) fn absorb(&mut self, other: &Self) {
        let Self {
            own,
            first_byte,
            upstream,
        } = other;
        self.own.absorb(own);
        self.first_byte.absorb(first_byte);
        self.upstream.absorb(upstream);
    }
}

impl Cell {
    /// Everything but endings and codes. A refused call used nothing: its estimate is no usage.
    pub(super) fn count(&mut self, record: &Record) {
        if record.outcome == Outcome::Refused {
            return;
        }
        let tokens = &record.tokens;
        for (i, count) in [tokens.prompt, tokens.completion].into_iter().enumerate() {
            let (source, n) = match count {
                Count::Unknown => continue,
                Count::Reported(n) => (0, n),
                Count::Counted(n) => (1, n),
                Count::Estimated(n) => (2, n),
            };
            let total = &mut self.tokens[i][source];
            *total = total.saturating_add(n);
            self.usage[i].observe(&TOKENS, n);
        }
        self.cached = self.cached.saturating_add(tokens.cached.unwrap_or(0));
        self.reasoning = self.reasoning.saturating_add(tokens.reasoning.unwrap_or(0));
        let further = [
            tokens.cache_write_5m,
            tokens.cache_write_1h,
            tokens.audio_prompt,
            tokens.audio_completion,
        ];
        for (total, n) in self.further.iter_mut().zip(further) {
            *total = total.saturating_add(n.unwrap_or(0));
        }
        self.invalid += u64::from(tokens.invalid);
        self.doubtful += u64::from(tokens.doubtful);
        self.dropped += u64::from(!record.dropped().is_empty());
        if record.backend.is_none() {
            return;
        }
        self.duration.time(&REQUEST, record.duration);
        let Some(first) = record.first_byte.filter(|_| record.streamed) else {
            return;
        };
        self.first_token.time(&FIRST_TOKEN, first);
        let after_first = tokens.completion.tokens().unwrap_or(0).saturating_sub(1);
        if let (Ok(n @ 1..), Outcome::Completed) = (u32::try_from(after_first), record.outcome) {
            let rest = record.duration.saturating_sub(first);
            self.per_token.time(&PER_TOKEN, rest / n);
        }
    }

    /// Each member by its name, so that the compiler asks for one that is added.
    pub(crate) fn absorb(&mut self, other: &Self) {
        let Self {
            endings,
            codes,
            tokens,
            cached,
            reasoning,
            further,
            invalid,
            doubtful,
            dropped,
            usage,
            duration,
            first_token,
            per_token,
        } = other;
        for (ending, n) in endings {
            add(&mut self.endings, *ending, *n);
        }
        for (code, n) in codes {
            add(&mut self.codes, *code, *n);
        }
        for (mine, theirs) in self.tokens.iter_mut().zip(tokens) {
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                *mine = mine.saturating_add(*theirs);
            }
        }
        self.cached = self.cached.saturating_add(*cached);
        self.reasoning = self.reasoning.saturating_add(*reasoning);
        for (mine, theirs) in self.further.iter_mut().zip(further) {
            *mine = mine.saturating_add(*theirs);
        }
        self.invalid += invalid;
        self.doubtful += doubtful;
        self.dropped += dropped;
        for (mine, theirs) in self.usage.iter_mut().zip(usage) {
            mine.absorb(theirs);
        }
        self.duration.absorb(duration);
        self.first_token.absorb(first_token);
        self.per_token.absorb(per_token);
    }
}

impl Tries {
    pub(crate) fn absorb(&mut self, other: &Self) {
        let Self {
            by_result,
            retried,
            refused,
        } = other;
        for (mine, theirs) in self.by_result.iter_mut().zip(by_result) {
            *mine += theirs;
        }
        self.retried += retried;
        self.refused += refused;
    }
}

/// What [`bump`] did.
#[derive(PartialEq, Eq)]
pub(super) enum Bumped {
    Old,
    New,
    NoRoom,
}

/// Counts one more of `key`; a new one only if there is room.
pub(super) fn bump<K: PartialEq>(counts: &mut Vec<(K, u64)>, key: K, room: bool) -> Bumped {
    if let Some((_, n)) = counts.iter_mut().find(|(k, _)| *k == key) {
        *n += 1;
        return Bumped::Old;
    }
    if !room {
        return Bumped::NoRoom;
    }
    counts.push((key, 1));
    Bumped::New
}

fn add<K: PartialEq>(counts: &mut Vec<(K, u64)>, key: K, n: u64) {
    match counts.iter_mut().find(|(k, _)| *k == key) {
        Some((_, mine)) => *mine += n,
        None => counts.push((key, n)),
    }
}
