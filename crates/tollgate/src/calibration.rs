//! Engines are asked what prompts count, and what they say is held against what the gate counts.
//!
//! It is done on the thread that asks others: at the start, after a reload that changed who is asked or what counts,
//! every so often, and when calls differ whose shape had agreed. Only engines that could not be asked are again sooner.
//! Invariant: no call and no start waits for it. One question runs at a time. A model is asked about again because of
//! calls at most once in [`AGAIN_EVERY`]. What was said of a backend at other addresses is dropped, and so is what some
//! of its addresses say where others could not be asked.
//! Not here: who is asked (`engines`), in which order (`asking`), the questions (`round`), what follows from the answers (`tokens::calibration`),
//! the marks of calls (`counting`).

mod asking;
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
pub(crate) use asking::{About, Wanted, asked_of};
use engines::{Engines, NoWay};
use round::{Ids, Round};
use said::Known;
use tokens::calibration::Change;

/// A model is asked about again because of its calls at most so often.
pub(crate) const AGAIN_EVERY: Duration = Duration::from_secs(60);
/// How often is looked whether calls want a model to be asked about.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After a round in which an engine could not be asked, the next one.
const RETRY_AFTER: Duration = Duration::from_secs(60);
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
        let is_elsewhere = |backend: &str| before.moves(engines, backend);
        let plan = || {
            self.plan.send_if_modified(|now| {
                let is_other = !now.is_like(engines);
                *now = Arc::clone(engines);
                is_other
            });
        };
        // Under the locks of what is told: no answer of before comes back, and none of the new engines is forgotten.
        let mut told = self.state.told();
        self.state.calibrations.forget(is_elsewhere, plan);
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
                see = "docs/troubleshooting.md#the-gate-cannot-ask-an-engine-for-its-counts-of-prompts",
                "the gate cannot ask an engine for its counts of prompts"
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
                // The plan changes, and what moves is forgotten, under the same lock.
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

#[cfg(test)]
mod tests;
