//! Engines are asked what prompts count, and what they say is held against what the gate counts.
//!
//! It is done on the thread that asks others: at the start, after a reload that changed who is asked or what counts,
//! every so often, and when calls differ whose shape had agreed. Only engines that could not be asked are again sooner.
//! Invariant: no call and no start waits for it. One question runs at a time. A model is asked about again because of
//! calls at most once in [`AGAIN_EVERY`]. What was said of a backend at other addresses is dropped, and so is what some
//! of its addresses say where others could not be asked.
//! Not here: who is asked (`engines`), the questions (`round`), what follows from the answers (`tokens::calibration`),
//! the marks of calls (`counting`).

pub(crate) mod engines;
pub(crate) mod round;
pub(crate) mod said;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use callout::Handle;
use counting::{Calibrations, CountedModel, TokenizerCache};
use tokio::sync::watch;

use crate::seldom::Seldom;
use engines::{Engine, Engines, Model, NoWay};
use round::{Came, Ids, Round, clock};
use said::{Known, Parting};
use tokens::calibration::Change;
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
    rounds: BTreeMap<CountedModel, (Option<Round>, Option<NoWay>)>,
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
        let before = Arc::clone(&self.plan.borrow());
        self.plan.send_if_modified(|now| {
            let is_other = !now.is_like(engines);
            *now = Arc::clone(engines);
            is_other
        });
        // Afterwards, so that no answer of before comes back.
        let is_elsewhere = |backend: &str| before.moves(engines, backend);
        self.state.calibrations.forget(is_elsewhere);
        let mut told = self.state.told();
        told.rounds.retain(|of, _| !is_elsewhere(&of.backend));
    }

    /// What is known of each model that is asked about, or has been.
    pub(crate) fn known(&self) -> Vec<Known> {
        let mut known: BTreeMap<CountedModel, Known> = BTreeMap::new();
        let entry = |of: &CountedModel| Known {
            backend: Arc::clone(&of.backend),
            model: Arc::clone(&of.model),
            round: None,
            summary: Default::default(),
            fault: None,
            is_away: false,
            is_part: false,
            parting: None,
        };
        let engines = Arc::clone(&self.plan.borrow());
        let told = self.state.told();
        // What was asked of a tokenizer that was replaced since says nothing.
        let now = |of: &CountedModel| engines.has(of.tokenizer);
        for (of, (round, fault)) in told.rounds.iter().filter(|(of, _)| now(of)) {
            let known = known.entry(of.clone()).or_insert_with(|| entry(of));
            known.is_away = matches!(fault, Some(NoWay::Now(_)));
            known.fault = fault.as_ref().map(|fault| fault.why().to_owned());
            known.round = round.clone();
        }
        drop(told);
        for (of, summary) in self.state.calibrations.summaries() {
            let known = known.entry(of.clone()).or_insert_with(|| entry(&of));
            known.summary = summary;
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
        summary: Default::default(),
        fault: Some(over.why.to_owned()),
        is_away: false,
        is_part: false,
        parting: None,
    })
}

impl State {
    /// Asks for ever. Between rounds no configuration is held on to.
    async fn ask(&self, mut planned: watch::Receiver<Arc<Engines>>) {
        let (mut failing, mut failures) = (BTreeSet::new(), 0_u32);
        // When calls had models asked about.
        let mut again = BTreeMap::new();
        let mut all_at: Option<Instant> = None;
        loop {
            let engines = Arc::clone(&planned.borrow_and_update());
            let Some(every) = engines.every else {
                drop(engines);
                if planned.changed().await.is_err() {
                    return;
                }
                all_at = None;
                continue;
            };
            let is_sooner = all_at.is_some_and(|at| Instant::now() < at);
            let wanted = if is_sooner {
                Wanted::Backends(&failing)
            } else {
                Wanted::All
            };
            failing = self.round(&engines, &planned, wanted).await;
            drop(engines);
            let now = Instant::now();
            let all = match all_at {
                Some(at) if is_sooner => at,
                _ => now + next_after(every, 0),
            };
            all_at = Some(all);
            let mut next = all;
            if failing.is_empty() {
                failures = 0;
            } else {
                failures = failures.saturating_add(1);
                next = all.min(now + next_after(every, failures));
            }
            match self.until(next, &mut planned, &mut again).await {
                Woken::Due => {}
                Woken::Changed => (all_at, failures) = (None, 0),
                Woken::Over => return,
            }
        }
    }

    /// Waits for the next round, and meanwhile asks about models whose calls differ.
    async fn until(
        &self,
        next: Instant,
        planned: &mut watch::Receiver<Arc<Engines>>,
        again: &mut BTreeMap<(Arc<str>, Arc<str>), Instant>,
    ) -> Woken {
        loop {
            let look = (Instant::now() + LOOK_EVERY).min(next);
            tokio::select! {
                changed = planned.changed() => return match changed {
                    Ok(()) => Woken::Changed,
                    Err(_) => Woken::Over,
                },
                () = tokio::time::sleep_until(look.into()) => {}
            }
            let now = Instant::now();
            if now >= next {
                return Woken::Due;
            }
            again.retain(|_, at| now.saturating_duration_since(*at) < AGAIN_EVERY);
            let may = |backend: &Arc<str>, model: &Arc<str>| {
                !again.contains_key(&(Arc::clone(backend), Arc::clone(model)))
            };
            let wanted: BTreeSet<_> = self.calibrations.wanted(may).into_iter().collect();
            if !wanted.is_empty() {
                again.extend(wanted.iter().map(|of| (of.clone(), now)));
                let engines = Arc::clone(&planned.borrow());
                self.round(&engines, planned, Wanted::Models(&wanted)).await;
            }
        }
    }

    /// Asks all engines, or some; the backends that could not be asked. It ends where others are to be asked.
    async fn round(
        &self,
        engines: &Engines,
        planned: &watch::Receiver<Arc<Engines>>,
        wanted: Wanted<'_>,
    ) -> BTreeSet<Arc<str>> {
        let began = Instant::now();
        let counter = |key| self.cache.get(key);
        let (mut failing, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let is_current = || planned.borrow().is_like(engines);
        let mut is_over = false;
        asked_of(engines, &counter, wanted, Ids::Dropped, |about| {
            is_over = !is_current();
            if is_over {
                return false;
            }
            if let Some(NoWay::Now(why)) = &about.fault {
                failing.insert(Arc::clone(&about.of.backend));
                self.warn(&about.of, why);
            }
            seen.insert(about.of.clone());
            self.tell(about, &is_current);
            true
        })
        .await;
        let mut told = self.told();
        told.spent += began.elapsed();
        // Models that an engine has no longer, and what stood for those of one that said nothing.
        if !is_over && !matches!(wanted, Wanted::Models(_)) {
            let is_over = |of: &CountedModel| wanted.has_backend(&of.backend) && !seen.contains(of);
            told.rounds.retain(|of, _| !is_over(of));
        }
        failing
    }

    fn warn(&self, of: &CountedModel, why: &str) {
        if let Some(times) = self.faults.came(Instant::now()) {
            tracing::warn!(
                backend = &*of.backend,
                model = &*of.model,
                why,
                times,
                "an engine cannot be asked what prompts count"
            );
        }
    }

    /// Takes what came of asking about a model.
    fn tell(&self, about: About, is_current: &impl Fn() -> bool) {
        let About {
            of,
            began_s,
            round,
            fault,
        } = about;
        let tells = |round: &&Round| round.says_anything() && round.is_whole();
        if let Some(round) = round.as_ref().filter(tells) {
            let told = |calibration: &mut _| {
                // What moves is forgotten under the same lock, once the plan is another.
                if is_current() {
                    round.told_to(calibration, began_s)
                } else {
                    Change::default()
                }
            };
            self.calibrations.probed(&of, told);
        }
        let mut told = self.told();
        if is_current() {
            let before = told.rounds.remove(&of);
            let round = round.or_else(|| before.and_then(|(round, _)| round));
            told.rounds.insert(of, (round, fault));
        }
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why it waits no longer.
enum Woken {
    /// The next round is due.
    Due,
    /// Others are to be asked.
    Changed,
    /// Nobody is.
    Over,
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
    /// Some of them.
    Backends(&'w BTreeSet<Arc<str>>),
    /// Models of backends.
    Models(&'w BTreeSet<(Arc<str>, Arc<str>)>),
}

impl Wanted<'_> {
    pub(crate) fn has_backend(self, backend: &str) -> bool {
        match self {
            Self::All => true,
            Self::Backend(name) => name == backend,
            Self::Backends(all) => all.contains(backend),
            Self::Models(all) => all.iter().any(|(of, _)| **of == *backend),
        }
    }

    fn has(self, backend: &Arc<str>, model: &Arc<str>) -> bool {
        match self {
            Self::All | Self::Backend(_) | Self::Backends(_) => self.has_backend(backend),
            Self::Models(all) => all.contains(&(Arc::clone(backend), Arc::clone(model))),
        }
    }
}

/// What came of asking about one model of a backend.
pub(crate) struct About {
    pub(crate) of: CountedModel,
    /// When the asking began, seconds since 1970.
    pub(crate) began_s: i64,
    /// What engines said; none where nobody could be asked.
    pub(crate) round: Option<Round>,
    /// Why one of them could not be asked.
    pub(crate) fault: Option<NoWay>,
}

/// Hands what engines say of each model to `tell`, as soon as it is asked about, which says whether to go on.
pub(crate) async fn asked_of(
    engines: &Engines,
    counter: &(impl Fn(u64) -> Option<Arc<tokens::Counter>> + Sync),
    wanted: Wanted<'_>,
    ids: Ids,
    mut tell: impl FnMut(About) -> bool,
) {
    let mut left = MODELS_MAX;
    for of_backend in engines.all.chunk_by(|a, b| a.backend == b.backend) {
        let Some(backend) = of_backend.first().map(|engine| &engine.backend) else {
            continue;
        };
        if !wanted.has_backend(backend) {
            continue;
        }
        let mut all = Vec::with_capacity(of_backend.len());
        for engine in of_backend {
            all.extend(opened(engines, engine, wanted).await);
        }
        let models = all.iter().flat_map(|asking| &asking.models);
        let models: BTreeSet<_> = models
            .map(|model| (Arc::clone(&model.label), model.key))
            .collect();
        for (label, key) in &models {
            let Some(counter) = counter(*key) else {
                continue;
            };
            if left == 0 {
                return;
            }
            left -= 1;
            let began_s = clock();
            let (mut round, fault) = about(&mut all, label, *key, &counter, ids).await;
            if let Some(round) = &mut round {
                round.addresses.unasked += engines.unasked(backend);
            }
            let is_on = tell(About {
                of: CountedModel {
                    backend: Arc::clone(backend),
                    model: Arc::clone(label),
                    tokenizer: *key,
                },
                began_s,
                round,
                fault,
            });
            if !is_on {
                return;
            }
        }
        let fault = all.into_iter().find_map(|asking| asking.way.err());
        let any = Model::any();
        if models.is_empty() && fault.is_some() && wanted.has(backend, &any.label) {
            let is_on = tell(About {
                of: CountedModel {
                    backend: Arc::clone(backend),
                    model: any.label,
                    tokenizer: any.key,
                },
                began_s: clock(),
                round: None,
                fault,
            });
            if !is_on {
                return;
            }
        }
    }
}

/// An engine that is to be asked, about these models.
struct Asking {
    models: Vec<Model>,
    way: Result<callout::EngineTokens, NoWay>,
}

/// The way to an engine; none where it is asked about no model, and then no credential is made for it.
async fn opened(engines: &Engines, engine: &Engine, wanted: Wanted<'_>) -> Option<Asking> {
    let models = |served: &[String]| {
        let mut models = engines.models(engine, served);
        models.retain(|model| wanted.has(&engine.backend, &model.label));
        models
    };
    if !engines.asks_for_models(engine) {
        let models = models(&[]);
        if models.is_empty() {
            return None;
        }
        let way = engine.tokens().await;
        return Some(Asking { models, way });
    }
    let way = match engine.tokens().await {
        Ok(tokens) => match tokens.models().await {
            Ok(served) if served.is_empty() => {
                Err(NoWay::Never("it does not say which models it has"))
            }
            Ok(served) => {
                let served: Vec<String> = served.into_iter().map(|model| model.id).collect();
                return Some(Asking {
                    models: models(&served),
                    way: Ok(tokens),
                });
            }
            Err(fault) => Err(NoWay::Now(fault.to_string())),
        },
        Err(fault) => Err(fault),
    };
    Some(Asking {
        models: Vec::new(),
        way,
    })
}

/// What the engines of a backend say about a model. One in trouble is left alone until the next round.
async fn about(
    all: &mut [Asking],
    label: &Arc<str>,
    key: u64,
    counter: &Arc<tokens::Counter>,
    ids: Ids,
) -> (Option<Round>, Option<NoWay>) {
    let (mut round, mut fault, mut unasked): (Option<Round>, Option<NoWay>, usize) =
        (None, None, 0);
    for asking in all {
        let of = |model: &&Model| model.label == *label && model.key == key;
        let asked = match (&asking.way, asking.models.iter().find(of)) {
            (Err(why), _) => Err(why.clone()),
            // It has other models.
            (Ok(_), None) => continue,
            (Ok(tokens), Some(model)) => {
                let asked = round::ask(tokens, model, counter, ids);
                match tokio::time::timeout(MODEL_WITHIN, asked).await {
                    Ok(asked) => asked.map_err(|fault| NoWay::Now(fault.to_string())),
                    Err(_) => Err(NoWay::Now(format!(
                        "its answers took longer than {MODEL_WITHIN:?}"
                    ))),
                }
            }
        };
        match asked {
            Ok(more) => {
                round = Some(match round {
                    Some(round) => round.and(more),
                    None => more,
                });
            }
            Err(why) => {
                unasked += 1;
                asking.way = Err(why.clone());
                // What can be otherwise soon is what is told.
                if !matches!(fault, Some(NoWay::Now(_))) {
                    fault = Some(why);
                }
            }
        }
    }
    if let Some(round) = &mut round {
        round.addresses.unasked += unasked;
    }
    (round, fault)
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

#[cfg(test)]
mod tests;
