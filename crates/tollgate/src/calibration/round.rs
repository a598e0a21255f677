//! One engine is asked what the probes count for one model.
//!
//! Invariant: one question at a time; what is no count is none, and an engine in trouble is left alone at once.
//! Not here: who is asked (`engines`), what follows from the answers (`tokens::calibration`).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callout::{AskedBy, EngineQuestion, EngineSays, EngineTokens, Fault};
use policy::operation::Operation;
use tokens::calibration::{Calibration, Change};
use tokens::probes::{self, Probe};
use tokens::{Counter, Shape};

use super::engines::Model;
use crate::services::now_s;

/// What an engine said of all probes.
#[derive(Debug, Clone)]
pub(crate) struct Round {
    pub(crate) model: Model,
    /// The ways in which it was asked.
    pub(crate) by: BTreeSet<AskedBy>,
    pub(crate) asked: Vec<Asked>,
    /// The most tokens of a prompt and its answer, where it says.
    pub(crate) model_length: Option<u64>,
    pub(crate) took: Duration,
    pub(crate) addresses: Addresses,
}

/// Addresses of a backend, by whether they were asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Addresses {
    pub(crate) asked: usize,
    pub(crate) unasked: usize,
}

/// Probes by what came of them; those that could not be asked for are in none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outcomes {
    pub(crate) same: usize,
    pub(crate) other: usize,
    pub(crate) refused: usize,
}

/// Whether the numbers of tokens are kept, for a look at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ids {
    Kept,
    Dropped,
}

/// Numbers of tokens are kept up to so many times our own count.
const IDS_TIMES: u64 = 4;

/// A probe, and what came of it.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) name: &'static str,
    pub(crate) operation: Operation,
    pub(crate) shape: Shape,
    pub(crate) came: Came,
}

/// What came of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Came {
    /// The engine counts as we do.
    Same(u64),
    /// It does not; with the numbers of its tokens, where it says.
    Other {
        reported: u64,
        counted: u64,
        ids: Vec<u32>,
    },
    /// The engine takes no such call, or we cannot count it.
    Refused,
    /// There is no way to ask it this.
    Unasked,
}

/// Asks for everything.
///
/// # Errors
/// [`Fault`] where the engine cannot be asked now.
pub(crate) async fn ask(
    engine: &EngineTokens,
    model: &Model,
    counter: &Arc<Counter>,
    ids: Ids,
) -> Result<Round, Fault> {
    let began = Instant::now();
    let mut round = Round {
        model: model.clone(),
        by: BTreeSet::new(),
        asked: Vec::with_capacity(probes::COUNT),
        model_length: None,
        took: Duration::ZERO,
        addresses: Addresses {
            asked: 1,
            unasked: 0,
        },
    };
    for probe in probes::all() {
        let came = came_of(engine, counter, &probe, &mut round, ids).await?;
        round.asked.push(Asked {
            name: probe.name,
            operation: probe.operation,
            shape: probe.shape,
            came,
        });
    }
    round.took = began.elapsed();
    Ok(round)
}

async fn came_of(
    engine: &EngineTokens,
    counter: &Arc<Counter>,
    probe: &Probe,
    round: &mut Round,
    ids: Ids,
) -> Result<Came, Fault> {
    let question = EngineQuestion {
        model: &round.model.name,
        operation: probe.operation,
        body: &probe.body,
        is_harmony: round.model.is_harmony,
    };
    let Some(before) = counted(counter, probe).await else {
        return Ok(Came::Refused);
    };
    let count = match engine.count(&question).await {
        Ok(EngineSays::Counts(count)) => count,
        Ok(EngineSays::Refuses) => return Ok(Came::Refused),
        Ok(EngineSays::Nothing) => return Ok(Came::Unasked),
        Err(fault) => return Err(fault),
    };
    round.by.insert(count.by);
    round.model_length = round.model_length.or(count.model_length);
    // Many templates write the day, which may have changed meanwhile.
    let is_same = count.tokens == before || counted(counter, probe).await == Some(count.tokens);
    Ok(if is_same {
        Came::Same(count.tokens)
    } else {
        let is_kept = ids == Ids::Kept && count.tokens <= before.saturating_mul(IDS_TIMES);
        Came::Other {
            reported: count.tokens,
            counted: before,
            ids: if is_kept { count.ids } else { Vec::new() },
        }
    })
}

/// What we count of a probe now; none where we cannot.
async fn counted(counter: &Arc<Counter>, probe: &Probe) -> Option<u64> {
    let (counter, operation) = (Arc::clone(counter), probe.operation);
    let (body, clock_s) = (probe.body.clone(), clock());
    let prompt = aside(move || counter.prompt(operation, body.as_bytes(), clock_s));
    let prompt = prompt.await?.ok()?;
    Some(prompt.count.tokens)
}

/// Work beside the thread that asks others, which templates may not hold up; none where it panics.
pub(super) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// Seconds since 1970.
pub(crate) fn clock() -> i64 {
    i64::try_from(now_s()).unwrap_or(0)
}

impl Round {
    /// What several engines of one backend say: the first that differs counts, and nobody vouches for one that could
    /// not be asked, or that refuses the question.
    pub(crate) fn and(mut self, other: Self) -> Self {
        for (mine, theirs) in self.asked.iter_mut().zip(other.asked) {
            let is_more_telling = match (&mine.came, &theirs.came) {
                (Came::Other { .. }, _) => false,
                (_, Came::Other { .. }) => true,
                (Came::Unasked, _) => false,
                (_, Came::Unasked) => true,
                (Came::Refused, _) => false,
                (Came::Same(_), Came::Refused) => true,
                (Came::Same(_), _) => false,
            };
            if is_more_telling {
                *mine = theirs;
            }
        }
        self.by.extend(other.by);
        self.model_length = self.model_length.or(other.model_length);
        self.took += other.took;
        self.addresses.asked += other.addresses.asked;
        self.addresses.unasked += other.addresses.unasked;
        self
    }

    /// Whether all addresses of the backend were asked: else it vouches for none of them.
    pub(crate) fn is_whole(&self) -> bool {
        self.addresses.unasked == 0
    }

    /// Its probes by what came of them.
    pub(crate) fn outcomes(&self) -> Outcomes {
        let mut outcomes = Outcomes::default();
        for asked in &self.asked {
            match asked.came {
                Came::Same(_) => outcomes.same += 1,
                Came::Other { .. } => outcomes.other += 1,
                Came::Refused => outcomes.refused += 1,
                Came::Unasked => {}
            }
        }
        outcomes
    }

    /// Whether anything was compared.
    pub(crate) fn says_anything(&self) -> bool {
        let Outcomes { same, other, .. } = self.outcomes();
        same + other > 0
    }

    /// Hands all of it to what is known of the model.
    pub(crate) fn told_to(&self, calibration: &mut Calibration, now_s: i64) -> Change {
        for Asked {
            name, shape, came, ..
        } in &self.asked
        {
            let (reported, counted) = match *came {
                Came::Same(tokens) => (tokens, tokens),
                Came::Other {
                    reported, counted, ..
                } => (reported, counted),
                Came::Refused | Came::Unasked => continue,
            };
            calibration.probe(name, *shape, reported, counted, now_s);
        }
        calibration.asked(now_s)
    }
}
