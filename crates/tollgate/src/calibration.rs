//! Engines are asked what prompts count, and what they say is held against what the gate counts.
//!
//! It is done on the thread that asks others: at the start, after a reload that changed who is asked or what counts,
//! every so often, and when calls differ whose shape had agreed.
//! Invariant: no call and no start waits for it. One question runs at a time. A model is asked about again because of
//! calls at most once in [`AGAIN_EVERY`].
//! Not here: who is asked (`engines`), the questions (`round`), what follows from the answers (`tokens::calibration`),
//! the marks of calls (`counting`).

pub(crate) mod engines;
pub(crate) mod round;
pub(crate) mod said;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use callout::Handle;
use counting::{Calibrations, Of, TokenizerCache};
use tokio::sync::watch;

use crate::seldom::Seldom;
use engines::{Engine, Engines, Model};
use round::{Came, Round, clock};
use said::{Known, Parting};
use tokens::probes;

/// A model is asked about again because of its calls at most so often.
pub(crate) const AGAIN_EVERY: Duration = Duration::from_secs(60);
/// How often is looked whether calls want a model to be asked about.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After a round in which an engine could not be asked, the next one.
const RETRY_AFTER: Duration = Duration::from_secs(60);
/// All questions about one model of an engine.
const MODEL_WITHIN: Duration = Duration::from_secs(120);
/// Probes whose text is asked for to show where it parts from ours.
const SHOWN_MAX: usize = 4;
/// Models of backends that are asked about in one round.
const MODELS_MAX: usize = 1000;

/// Asks, as long as it lives.
pub(crate) struct Calibrator {
    plan: watch::Sender<Arc<Engines>>,
    state: Arc<State>,
    _running: callout::Running,
}

struct State {
    cache: Arc<TokenizerCache>,
    calibrations: Arc<Calibrations>,
    told: Mutex<Told>,
    faults: Seldom,
}

/// What rounds came to.
#[derive(Default)]
struct Told {
    rounds: BTreeMap<Of, (Option<Round>, Option<String>)>,
    /// Time spent asking.
    spent: Duration,
}

impl Calibrator {
    /// Begins with these engines.
    pub(crate) fn start(
        handle: &Handle,
        cache: Arc<TokenizerCache>,
        calibrations: Arc<Calibrations>,
        engines: Arc<Engines>,
    ) -> Self {
        let (plan, planned) = watch::channel(engines);
        let state = Arc::new(State {
            cache,
            calibrations,
            told: Mutex::default(),
            faults: Seldom::default(),
        });
        let asking = Arc::clone(&state);
        Self {
            plan,
            state,
            _running: handle.run(async move { asking.ask(planned).await }),
        }
    }

    /// Goes on with those of another configuration, which are asked now where they are others.
    pub(crate) fn take(&self, engines: &Arc<Engines>) {
        self.plan.send_if_modified(|now| {
            let is_other = !now.is_like(engines);
            *now = Arc::clone(engines);
            is_other
        });
    }

    /// What is known of each model that is asked about, or has been.
    pub(crate) fn known(&self) -> Vec<Known> {
        let mut known: BTreeMap<Of, Known> = BTreeMap::new();
        let entry = |(backend, model, _): &Of| Known {
            backend: Arc::clone(backend),
            model: Arc::clone(model),
            round: None,
            calibration: Default::default(),
            fault: None,
            is_away: false,
            parting: None,
        };
        let engines = Arc::clone(&self.plan.borrow());
        let told = self.state.told();
        // What was asked of a tokenizer that was replaced since says nothing.
        let now = |(.., key): &Of| engines.has(*key);
        for (of, (round, fault)) in told.rounds.iter().filter(|(of, _)| now(of)) {
            let known = known.entry(of.clone()).or_insert_with(|| entry(of));
            known.is_away = fault.is_some();
            (known.round, known.fault) = (round.clone(), fault.clone());
        }
        drop(told);
        for (of, calibration) in self.state.calibrations.all() {
            let known = known.entry(of.clone()).or_insert_with(|| entry(&of));
            known.calibration = calibration;
        }
        let mut all: Vec<Known> = known.into_values().collect();
        all.extend(passed_over(&engines));
        all
    }

    /// Time spent asking.
    pub(crate) fn spent(&self) -> Duration {
        self.state.told().spent
    }
}

/// Models that nobody is asked for.
pub(crate) fn passed_over(engines: &Engines) -> impl Iterator<Item = Known> {
    engines.passed_over.iter().map(|over| Known {
        backend: Arc::clone(&over.backend),
        model: Arc::clone(&over.model),
        round: None,
        calibration: Default::default(),
        fault: Some(over.why.to_owned()),
        is_away: false,
        parting: None,
    })
}

impl State {
    /// Asks for ever. Between rounds no configuration is held on to.
    async fn ask(&self, mut planned: watch::Receiver<Arc<Engines>>) {
        let mut failures = 0_u32;
        loop {
            let engines = Arc::clone(&planned.borrow_and_update());
            let Some(every) = engines.every else {
                drop(engines);
                if planned.changed().await.is_err() {
                    return;
                }
                continue;
            };
            let is_good = self.round(&engines, Wanted::All).await;
            drop(engines);
            failures = if is_good {
                0
            } else {
                failures.saturating_add(1)
            };
            let next = Instant::now() + next_after(every, failures);
            if !self.until(next, &mut planned).await {
                return;
            }
        }
    }

    /// Waits for the next round, and meanwhile asks about models whose calls differ; false when it is over.
    async fn until(&self, next: Instant, planned: &mut watch::Receiver<Arc<Engines>>) -> bool {
        let mut asked: BTreeMap<(Arc<str>, Arc<str>), Instant> = BTreeMap::new();
        loop {
            let look = (Instant::now() + LOOK_EVERY).min(next);
            tokio::select! {
                changed = planned.changed() => return changed.is_ok(),
                () = tokio::time::sleep_until(look.into()) => {}
            }
            let now = Instant::now();
            if now >= next {
                return true;
            }
            asked.retain(|_, at| now.saturating_duration_since(*at) < AGAIN_EVERY);
            let may = |backend: &Arc<str>, model: &Arc<str>| {
                !asked.contains_key(&(Arc::clone(backend), Arc::clone(model)))
            };
            let wanted: BTreeSet<_> = self.calibrations.wanted(may).into_iter().collect();
            if !wanted.is_empty() {
                asked.extend(wanted.iter().map(|of| (of.clone(), now)));
                let engines = Arc::clone(&planned.borrow());
                self.round(&engines, Wanted::Models(&wanted)).await;
            }
        }
    }

    /// Asks all engines, or about these models alone; whether all could be asked.
    async fn round(&self, engines: &Engines, wanted: Wanted<'_>) -> bool {
        let began = Instant::now();
        let counter = |key| self.cache.get(key);
        let rounds = asked_of(engines, &counter, wanted).await;
        let (mut is_good, mut seen) = (true, BTreeSet::new());
        for (of, (round, fault)) in rounds {
            if let Some(why) = &fault {
                is_good = false;
                if let Some(times) = self.faults.came(Instant::now()) {
                    let (backend, model) = (&*of.0, &*of.1);
                    tracing::warn!(
                        backend,
                        model,
                        why,
                        times,
                        "an engine cannot be asked what prompts count"
                    );
                }
            }
            if let Some(round) = round.as_ref().filter(|round| round.says_anything()) {
                let (backend, model, key) = &of;
                self.calibrations
                    .probed(backend, model, *key, |calibration| {
                        round.told_to(calibration, clock())
                    });
            }
            seen.insert(of.clone());
            let mut told = self.told();
            let before = told.rounds.remove(&of);
            let round = round.map(Round::without_ids);
            let round = round.or_else(|| before.and_then(|(round, _)| round));
            told.rounds.insert(of, (round, fault));
        }
        let mut told = self.told();
        told.spent += began.elapsed();
        if let Wanted::All = wanted {
            told.rounds.retain(|of, _| seen.contains(of));
        }
        is_good
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time until the next round: with up to a tenth more, so that a fleet does not ask at once, and sooner where the
/// last one failed.
fn next_after(every: Duration, failures: u32) -> Duration {
    use std::hash::{BuildHasher, RandomState};
    let next = match failures.checked_sub(1) {
        None => every,
        Some(doublings) => every.min(RETRY_AFTER * 2_u32.pow(doublings.min(10))),
    };
    let chance = u32::try_from(RandomState::new().hash_one(0) % 1000).unwrap_or(0);
    next + next / 10_000 * chance
}

/// What is asked about.
#[derive(Clone, Copy)]
pub(crate) enum Wanted<'w> {
    All,
    /// One backend.
    Backend(&'w str),
    /// Models of backends.
    Models(&'w BTreeSet<(Arc<str>, Arc<str>)>),
}

impl Wanted<'_> {
    pub(crate) fn has_backend(self, backend: &str) -> bool {
        match self {
            Self::All => true,
            Self::Backend(name) => name == backend,
            Self::Models(all) => all.iter().any(|(of, _)| **of == *backend),
        }
    }

    fn has(self, backend: &Arc<str>, model: &Arc<str>) -> bool {
        match self {
            Self::All | Self::Backend(_) => self.has_backend(backend),
            Self::Models(all) => all.contains(&(Arc::clone(backend), Arc::clone(model))),
        }
    }
}

/// What engines say, by model; what could not be asked has a reason. Faults of an engine that are none of its models'
/// stand with each of them.
pub(crate) async fn asked_of(
    engines: &Engines,
    counter: &(impl Fn(u64) -> Option<Arc<tokens::Counter>> + Sync),
    wanted: Wanted<'_>,
) -> BTreeMap<Of, (Option<Round>, Option<String>)> {
    let mut rounds: BTreeMap<Of, (Option<Round>, Option<String>)> = BTreeMap::new();
    for engine in &engines.all {
        if !wanted.has_backend(&engine.backend) {
            continue;
        }
        let is_wanted = |model: &Model| wanted.has(&engine.backend, &model.label);
        for (model, came) in asked_one(engines, engine, counter, is_wanted).await {
            if rounds.len() >= MODELS_MAX {
                return rounds;
            }
            let of = (Arc::clone(&engine.backend), model.label, model.key);
            let (round, fault) = rounds.entry(of).or_default();
            match came {
                Ok(more) => {
                    *round = Some(match round.take() {
                        Some(round) => round.and(more),
                        None => more,
                    });
                }
                Err(why) => *fault = Some(why),
            }
        }
    }
    rounds
}

/// Where the texts part of the first probe that differs, as far as the engine shows its text.
pub(crate) async fn parting(
    engines: &Engines,
    backend: &str,
    round: &Round,
    counter: &tokens::Counter,
) -> Option<Parting> {
    let differing = round.asked.iter().filter_map(|asked| match &asked.came {
        Came::Other { ids, .. } if !ids.is_empty() => Some((asked, ids)),
        _ => None,
    });
    for (asked, ids) in differing.take(SHOWN_MAX) {
        let body = probes::all().into_iter().find(|it| it.name == asked.name)?;
        let shown = counter.shown(asked.operation, body.body.as_bytes(), clock());
        let Ok(Some(Ok(ours))) = shown.map(|shown| shown.map(|shown| shown.text)) else {
            continue;
        };
        let of_backend = engines.all.iter().filter(|it| *it.backend == *backend);
        for engine in of_backend {
            let Ok(tokens) = engine.tokens().await else {
                continue;
            };
            let Ok(Some(text)) = tokens.text(&round.model.name, ids).await else {
                continue;
            };
            if let Some(parting) = Parting::of(asked.name, &text, &ours) {
                return Some(parting);
            }
        }
    }
    None
}

/// One engine, about all its models that are wanted.
async fn asked_one(
    engines: &Engines,
    engine: &Engine,
    counter: &(impl Fn(u64) -> Option<Arc<tokens::Counter>> + Sync),
    is_wanted: impl Fn(&Model) -> bool,
) -> Vec<(Model, Result<Round, String>)> {
    let models = |served: &[String]| {
        let mut models = engines.models(engine, served);
        models.retain(|model| is_wanted(model));
        models
    };
    let of_all = |why: String| {
        let mut models = models(&[]);
        if models.is_empty() && engines.asks_for_models(engine) {
            models.push(Model::any());
        }
        let models = models.into_iter();
        models.map(|model| (model, Err(why.clone()))).collect()
    };
    let tokens = match engine.tokens().await {
        Ok(tokens) => tokens,
        Err(why) => return of_all(why.to_owned()),
    };
    let served = if engines.asks_for_models(engine) {
        match tokens.models().await {
            Ok(served) => served.into_iter().map(|model| model.id).collect(),
            Err(fault) => return of_all(fault.to_string()),
        }
    } else {
        Vec::new()
    };
    let mut all = Vec::new();
    let mut trouble: Option<String> = None;
    for model in models(&served) {
        let came = match (&trouble, counter(model.key)) {
            // It is left alone until the next round.
            (Some(why), _) => Err(why.clone()),
            (None, None) => continue,
            (None, Some(counter)) => {
                let asking = round::ask(&tokens, &model, &counter);
                let asked = match tokio::time::timeout(MODEL_WITHIN, asking).await {
                    Ok(asked) => asked.map_err(|fault| fault.to_string()),
                    Err(_) => Err(format!("its answers took longer than {MODEL_WITHIN:?}")),
                };
                trouble = asked.as_ref().err().cloned();
                asked
            }
        };
        all.push((model, came));
    }
    all
}

#[cfg(test)]
mod tests;
