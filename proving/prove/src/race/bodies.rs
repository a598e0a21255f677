//! Bodies of many requests: prose, source code and conversations that grow, made from a seed.
//!
//! What is sent is made before the clock starts, as templates whose words can be exchanged ([`text`]); a body that is to be
//! seen once is a copy of one with other words, some microseconds' work for 32 KB. The turns of a conversation are slices
//! of one text, so that a turn costs nothing.
//! Invariant: the bodies of a round follow from seed, scenario and round alone, whoever is asked; no two rounds have the same,
//! but for those of which there is a stated number. Templates take at most [`MOST_BYTES`] and a quarter more for their places,
//! and what is under way as much again.
//! Not here: what a scenario may say of them (`scenario`), sending them (`load`).

mod author;
mod code;
mod conversation;
mod text;
mod words;

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use experiment::random::Rng;
use load::source::{Fixed, Head, Payload, Source, Turn};
use serde::{Deserialize, Serialize};

use author::Author;
use conversation::Script;

#[cfg(test)]
mod tests;

/// Bytes of all templates of a scenario at most.
pub(crate) const MOST_BYTES: usize = 64 << 20;
/// Templates of bodies that are made new each time.
pub(crate) const TEMPLATES: usize = 64;

/// What stands after the messages.
const CLOSING: &[u8] = b"]}";

/// Streams of the seed's generator.
const TEMPLATE: u64 = 1;
const RENEWAL: u64 = 2;

/// What bodies are to be like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum Kind {
    /// So many bodies of prose, over and over; without a number, none comes twice.
    Prose(Option<usize>),
    /// The same of source code.
    Code(Option<usize>),
    /// Conversations side by side, whose first request has so many bytes and each further one so many more; when one has
    /// reached its greatest size, another begins.
    Conversations {
        /// How many are under way.
        at_once: usize,
        first: usize,
        turn: usize,
    },
}

/// Bodies to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Plan {
    pub(crate) kind: Kind,
    /// Of a body, or of the last of a conversation, with everything around the messages.
    pub(crate) bytes: usize,
    /// Before the messages.
    pub(crate) opening: usize,
    pub(crate) seed: u64,
}

/// Templates that were made.
#[derive(Debug)]
pub(crate) struct Pool {
    plan: Plan,
    scripts: Vec<Script>,
    /// Whether each has other words whenever it is sent.
    renews: bool,
}

/// The bodies of one round.
#[derive(Debug)]
pub(crate) struct Bodies {
    pool: Arc<Pool>,
    round: u64,
    at: Mutex<At>,
}

#[derive(Debug)]
struct At {
    sent: u64,
    /// The conversation that is under way at each place.
    open: Vec<Bytes>,
}

impl Plan {
    /// Bytes of all templates.
    pub(crate) fn templates_bytes(&self) -> usize {
        self.templates().saturating_mul(self.bytes)
    }

    fn templates(&self) -> usize {
        match self.kind {
            Kind::Prose(count) | Kind::Code(count) => count.unwrap_or(TEMPLATES),
            Kind::Conversations { at_once, .. } => at_once,
        }
    }

    /// Makes the templates.
    pub(crate) fn make(&self) -> Pool {
        let around = self.opening + CLOSING.len();
        let messages = |bytes: usize| bytes.saturating_sub(around);
        let script = |number: usize| {
            let rng = Rng::stream(self.seed, &[TEMPLATE, number as u64]);
            let mut author = Author::new(rng);
            match self.kind {
                Kind::Prose(_) => Script::prose(&mut author, messages(self.bytes)),
                Kind::Code(_) => Script::code(&mut author, messages(self.bytes)),
                Kind::Conversations { first, turn, .. } => {
                    let ends = (first..=self.bytes).step_by(turn.max(1)).map(messages);
                    Script::agent(&mut author, ends)
                }
            }
        };
        Pool {
            plan: *self,
            scripts: (0..self.templates()).map(script).collect(),
            renews: !matches!(self.kind, Kind::Prose(Some(_)) | Kind::Code(Some(_))),
        }
    }

    /// Those that one of several senders makes, so that each conversation is one sender's.
    #[must_use]
    pub(crate) fn shared_by(mut self, senders: usize) -> Self {
        if let Kind::Conversations { at_once, .. } = &mut self.kind {
            *at_once = at_once.div_ceil(senders.max(1));
        }
        self
    }
}

impl Bodies {
    /// Those of `round`, from the first on.
    pub(crate) fn new(pool: Arc<Pool>, round: u64) -> Self {
        let open = vec![Bytes::new(); pool.scripts.len()];
        Self {
            pool,
            round,
            at: Mutex::new(At { sent: 0, open }),
        }
    }

    /// What they are made by, and of which round they are.
    pub(crate) fn plan(&self) -> (Plan, u64) {
        (self.pool.plan, self.round)
    }

    /// The messages of the next request.
    fn next(&self) -> Bytes {
        let mut at = self.at.lock().unwrap_or_else(PoisonError::into_inner);
        let places = self.pool.scripts.len() as u64;
        let (place, step) = (at.sent % places, at.sent / places);
        at.sent += 1;
        let script = &self.pool.scripts[place as usize];
        let turns = script.ends.len() as u64;
        // They do not all begin at once: at any time there are conversations of every length.
        let step = step + place * turns / places;
        let (turn, generation) = (step % turns, step / turns);
        let open = &mut at.open[place as usize];
        if turn == 0 || open.is_empty() {
            *open = self.pool.text(script, [self.round, generation, place]);
        }
        let messages = open.slice(..script.ends[turn as usize] as usize);
        if turns == 1 && self.pool.renews {
            *open = Bytes::new();
        }
        messages
    }
}

impl Pool {
    fn text(&self, script: &Script, [round, generation, place]: [u64; 3]) -> Bytes {
        if self.renews {
            let name = [RENEWAL, round, generation, place];
            let mut rng = Rng::stream(self.plan.seed, &name);
            script.text.renewed(&mut rng).into()
        } else {
            Bytes::copy_from_slice(script.text.bytes())
        }
    }
}

/// Requests of one round: heads in turn, each with the next body.
#[derive(Debug)]
pub(crate) struct Requests {
    /// With the whole body, or with what stands before the messages.
    fixed: Fixed,
    bodies: Option<Bodies>,
}

impl Requests {
    /// `fixed` as it is, or with messages of `bodies` after its payload, which is one part.
    pub(crate) const fn new(fixed: Fixed, bodies: Option<Bodies>) -> Self {
        Self { fixed, bodies }
    }

    pub(crate) fn head(&self) -> &Head {
        self.fixed.head()
    }

    pub(crate) const fn fixed(&self) -> &Fixed {
        &self.fixed
    }

    pub(crate) const fn bodies(&self) -> Option<&Bodies> {
        self.bodies.as_ref()
    }
}

impl Source for Requests {
    fn sessions(&self, profile: usize) -> u64 {
        self.fixed.sessions(profile)
    }

    fn turns(&self, profile: usize, session: u64) -> u32 {
        self.fixed.turns(profile, session)
    }

    fn turn(&self, profile: usize, session: u64, turn: u32) -> Option<Turn<'_>> {
        let given = self.fixed.turn(profile, session, turn)?;
        let Some(bodies) = &self.bodies else {
            return Some(given);
        };
        let [opening, ..] = given.payload.parts();
        let parts = [opening.clone(), bodies.next(), Bytes::from_static(CLOSING)];
        Some(Turn {
            payload: Payload::new(&parts).expect("three parts"),
            ..given
        })
    }
}
