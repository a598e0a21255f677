//! Sessions with a given geometry in tokens, where no dataset is at hand.
//!
//! Text is made of words that are one token each with the space before them, in o200k, cl100k and vocabularies like
//! them, so a text of *n* words is *n* tokens long; a template's marks come on top.
//! Invariant: a session follows from the geometry, the seed and its number alone, on every machine.
//! Not here: tools (these sessions have none), times at which sessions begin.

pub(super) mod words;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use experiment::random::Rng;

use super::{At, Fault, Part, Position, ReadError, Reader, Sink, Unit};
use crate::conversation::{Content, Conversation, Decision, Message, Role};

/// Sessions of one unit.
const UNIT_SESSIONS: u64 = 256;
/// Turns of one session.
const MAX_TURNS: f64 = 10_000.0;
/// Tokens of one message.
const MAX_TOKENS: f64 = 1_000_000.0;
/// Tokens of one session.
const MAX_SESSION_TOKENS: usize = 4_000_000;

/// A log-normal distribution; always its mean where the coefficient of variation is 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation as a part of the mean.
    pub cv: f64,
}

impl Spread {
    /// Always this.
    #[must_use]
    pub fn of(mean: f64) -> Self {
        Self { mean, cv: 0.0 }
    }
}

/// What sessions look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Geometry {
    /// Requests of a session.
    pub turns: Spread,
    /// Tokens of the first prompt, the system's message and the user's first.
    pub first_prompt: Spread,
    /// Tokens that each further turn adds to the answer before it.
    pub appended: Spread,
    /// Tokens of an answer.
    pub output: Spread,
    /// The part of the mean first prompt that all sessions have in common, as a system's message: 0 to 1.
    pub shared: f64,
    /// Seconds between an answer and the next request; where not given, that is left to the replay.
    pub think_s: Option<Spread>,
}

impl Default for Geometry {
    /// An agent with a long system prompt and short steps.
    fn default() -> Self {
        Self {
            turns: Spread { mean: 8.0, cv: 0.5 },
            first_prompt: Spread {
                mean: 2_000.0,
                cv: 0.3,
            },
            appended: Spread {
                mean: 400.0,
                cv: 1.0,
            },
            output: Spread {
                mean: 200.0,
                cv: 0.7,
            },
            shared: 0.5,
            think_s: None,
        }
    }
}

/// The generator, as a reader that needs no files.
pub struct Synthetic {
    /// What sessions look like.
    pub geometry: Geometry,
    /// Which sessions of that kind.
    pub seed: u64,
    /// How many.
    pub sessions: u64,
}

impl Reader for Synthetic {
    fn name(&self) -> &'static str {
        "synthetic"
    }

    /// Paths are not read.
    fn units(&self, _: &[PathBuf]) -> Result<Vec<Unit>, ReadError> {
        let g = &self.geometry;
        let later = (g.turns.mean - 1.0).max(0.0) * (g.appended.mean + g.output.mean);
        // Words are about six bytes long.
        let bytes = ((g.first_prompt.mean + g.output.mean + later) * 6.0).max(1.0) as u64;
        let file: Arc<Path> = Arc::from(Path::new("synthetic"));
        let starts = (0..self.sessions).step_by(UNIT_SESSIONS as usize);
        let unit = |from: u64| {
            let to = self.sessions.min(from + UNIT_SESSIONS);
            Unit {
                file: Arc::clone(&file),
                part: Part::Sessions { from, to },
                bytes: bytes.saturating_mul(to - from),
            }
        };
        Ok(starts.map(unit).collect())
    }

    fn read(&self, unit: &Unit, sink: &mut Sink<'_>) -> Result<(), ReadError> {
        let Part::Sessions { from, to } = unit.part else {
            return Ok(());
        };
        for number in from..to {
            let position = position(unit, number);
            if !sink.wants(&position) {
                continue;
            }
            let session = self.session(number);
            if sink.give(position, session) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn list(
        &self,
        unit: &Unit,
        each: &mut dyn FnMut(Position, &str) -> ControlFlow<()>,
    ) -> Result<(), ReadError> {
        if let Part::Sessions { from, to } = unit.part {
            for number in from..to {
                if each(position(unit, number), &self.id(number)).is_break() {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn position(unit: &Unit, number: u64) -> Position {
    Position {
        file: unit.file.clone(),
        at: At::Session(number),
        part: 0,
    }
}

impl Synthetic {
    fn id(&self, number: u64) -> String {
        format!("synthetic-{}-{number}", self.seed)
    }

    /// One session.
    ///
    /// # Errors
    ///
    /// A session of more than 4,000,000 tokens.
    pub fn session(&self, number: u64) -> Result<Conversation, Fault> {
        let g = &self.geometry;
        let mut rng = Rng::stream(self.seed, &[1, number]);
        let turns = whole(&mut rng, g.turns, MAX_TURNS).max(1);
        let shared = (g.first_prompt.mean * g.shared.clamp(0.0, 1.0)).clamp(0.0, MAX_TOKENS);
        let shared = shared.round() as usize;
        let first = whole(&mut rng, g.first_prompt, MAX_TOKENS);
        let mut session = Conversation {
            id: self.id(number),
            ..Conversation::default()
        };
        if shared > 0 {
            // The same in every session of this seed.
            let text = words::text(shared, &mut Rng::stream(self.seed, &[0]));
            session.messages.push(said(Role::System, text));
        }
        let mut total = shared;
        for turn in 0..turns {
            let asked = if turn == 0 {
                first.saturating_sub(shared).max(1)
            } else {
                whole(&mut rng, g.appended, MAX_TOKENS).max(1)
            };
            let answered = whole(&mut rng, g.output, MAX_TOKENS).max(1);
            total += asked + answered;
            if total > MAX_SESSION_TOKENS {
                let says = "would have more than 4,000,000 tokens";
                return Err(Fault::broken("too_long", says));
            }
            let think = g.think_s.filter(|_| turn > 0);
            let think = think.map(|spread| lognormal(&mut rng, spread).clamp(0.0, 1e6));
            let text = words::text(asked, &mut rng);
            session.messages.push(said(Role::User, text));
            let place = session.messages.len();
            let text = words::text(answered, &mut rng);
            session.messages.push(said(Role::Assistant, text));
            session.decisions.push(Decision {
                prompt: (0..place).collect(),
                answer: Some(place),
                think: think.map(Duration::from_secs_f64),
                answer_tokens: u32::try_from(answered).ok(),
            });
        }
        Ok(session)
    }
}

fn said(role: Role, text: String) -> Message {
    Message {
        role,
        content: Some(Content::Text(text)),
        ..Message::default()
    }
}

/// A whole number that is drawn, up to `most`; what is no number is 0.
fn whole(rng: &mut Rng, spread: Spread, most: f64) -> usize {
    lognormal(rng, spread).clamp(0.0, most).round() as usize
}

fn lognormal(rng: &mut Rng, spread: Spread) -> f64 {
    // Without a bound the logarithm of its variance would be none.
    let variation = if spread.cv.is_finite() {
        spread.cv
    } else {
        0.0
    };
    rng.lognormal(spread.mean, variation)
}

#[cfg(test)]
mod tests;
