//! A corpus as the source of a run: slices of its memory map, as they are.
//!
//! Invariant: between the map and the socket nothing is joined, copied or parsed.
//! Not here: what a corpus is (`corpus`), when a turn is due (`experiment::workload`).

use std::time::Duration;

use corpus::store::Corpus;
use load::source::{Payload, Source, Turn};

/// The profiles of a corpus that take part in a run.
pub(super) struct Replayed {
    corpus: Corpus,
    /// By the run's profile: the corpus's.
    profiles: Vec<usize>,
}

impl Replayed {
    pub(super) const fn new(corpus: Corpus, profiles: Vec<usize>) -> Self {
        Self { corpus, profiles }
    }

    fn turn_of(&self, profile: usize, session: u64, turn: u32) -> Option<corpus::store::Turn<'_>> {
        let profile = *self.profiles.get(profile)?;
        let session = self.corpus.session_of(profile, session)?;
        session.turn(usize::try_from(turn).ok()?)
    }
}

impl Source for Replayed {
    fn sessions(&self, profile: usize) -> u64 {
        let profile = self.profiles.get(profile);
        profile.map_or(0, |profile| self.corpus.sessions_of(*profile))
    }

    fn turns(&self, profile: usize, session: u64) -> u32 {
        let session = self
            .profiles
            .get(profile)
            .and_then(|profile| self.corpus.session_of(*profile, session));
        session.map_or(0, |session| {
            u32::try_from(session.len()).unwrap_or(u32::MAX)
        })
    }

    fn think(&self, profile: usize, session: u64, turn: u32) -> Option<Duration> {
        self.turn_of(profile, session, turn)?.think()
    }

    fn turn(&self, profile: usize, session: u64, turn: u32) -> Option<Turn<'_>> {
        let turn = self.turn_of(profile, session, turn)?;
        let payload = Payload::new(&turn.bytes()).ok()?;
        Some(Turn {
            payload,
            head: None,
            tokens: Some(turn.answer_tokens()),
        })
    }
}
