//! What a server does by itself, before anybody could let it: answers that it begins, and what it writes down of what was said.
//!
//! Invariant: each is charged once, whatever becomes of its session: by the word that lets it in, or else as owed by whoever opened the
//! session, from whatever limits and budgets have left.
//! Not here: asking whether one is let in (`answer`), telling of it (`said`).

use policy::exchange::SaidSoFar;
use policy::record::Outcome;

use super::answer::{Answer, Wanted, owed};
use super::{Made, Over, Session};
use crate::client::Downstream;

/// Items that may be written down at one time.
const ITEMS_MAX: usize = 64;

impl<D: Downstream> Session<'_, D> {
    /// An answer of the server's own may be made.
    pub(super) fn made(&mut self, made: Made<'_>, answer: Answer) {
        let id = made.id;
        if let Some(answer) = finished(answer, made.pieces, made.over) {
            self.answers.push((id, answer));
        }
    }

    /// A piece of what was said is written down.
    pub(super) fn transcribing(&mut self, item: Box<str>, bytes: usize) {
        let mut items = self.transcribing.iter_mut();
        if let Some((_, so_far)) = items.find(|(of, _)| *of == item) {
            *so_far = so_far.saturating_add(bytes);
            return;
        }
        if self.transcribing.len() >= ITEMS_MAX {
            let (_, bytes) = self.transcribing.remove(0);
            self.owes_transcript(bytes, Outcome::Aborted);
        }
        self.transcribing.push((item, bytes));
    }
}

impl<'s, D> Session<'s, D> {
    /// What is written down no more.
    pub(super) fn transcribed_item(&mut self, item: &str) {
        self.transcribing.retain(|(of, _)| **of != *item);
    }

    /// One that is not let in ran all the same.
    pub(super) fn owes(&mut self, made: Made<'s>, outcome: Outcome) {
        // What it holds, if it holds anything by now, is given back first.
        drop(made.admitting);
        let (pieces, over) = (made.pieces, made.over);
        let answer = self.owed(&made.wanted);
        if let Some(answer) = answer.and_then(|answer| finished(answer, pieces, over)) {
            answer.cut(outcome);
        }
    }

    /// The session is over: so is what ran on it and was not let in.
    pub(super) fn owes_all(&mut self, outcome: Outcome) {
        for made in std::mem::take(&mut self.made) {
            self.owes(made, outcome);
        }
        for (_, bytes) in std::mem::take(&mut self.transcribing) {
            self.owes_transcript(bytes, outcome);
        }
    }

    /// Something was written down of what was said, and its end was not heard.
    fn owes_transcript(&mut self, bytes: usize, outcome: Outcome) {
        let context = SaidSoFar {
            audio_bytes: std::mem::take(&mut self.said.sound),
            ..SaidSoFar::default()
        };
        let wanted = Wanted {
            model: self.said.writes(),
            told: None,
            context,
            cap: None,
            is_over: true,
            is_made: true,
        };
        if let Some(mut answer) = self.owed(&wanted) {
            answer.take(bytes, false);
            answer.cut(outcome);
        }
    }

    fn owed(&self, wanted: &Wanted) -> Option<Answer> {
        let opened = self.active.exchange.record();
        owed(self.opening, self.active.view(), opened, wanted)
    }
}

/// Brings an answer to where it was when it was let in; gives it back where it goes on.
fn finished(mut answer: Answer, pieces: Vec<(usize, bool)>, over: Option<Over>) -> Option<Answer> {
    answer.runs = true;
    for (bytes, is_audio) in pieces {
        answer.take(bytes, is_audio);
    }
    match over {
        Some(Over::Done(usage, is_good)) => answer.end(&usage, is_good),
        Some(Over::Seconds(seconds)) => answer.end_by_seconds(seconds),
        None => return Some(answer),
    }
    None
}
