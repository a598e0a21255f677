//! What is known of how our counts stand to those of each engine, by backend, model and tokenizer.
//!
//! Calls that are reported feed it, and so does who asks engines; the mark of a prompt comes from it.
//! Invariant: at most [`MODELS_MAX`] are told apart, and what is beyond is never exact. Only the thread that reconciles,
//! one that asks engines, one that counts for who asks and a scrape take its lock.
//! Not here: what follows from a comparison (`tokens::calibration`), asking engines (the host), the alarm (`metrics`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokens::calibration::{Calibration, Change, Difference, Says, Summary};
use tokens::drift::Tolerance;
use tokens::{Certainty, Count, Doubt, Shape};

use crate::metrics::{Compared, Direction, DriftMetrics, Heard};

/// Models of backends that are told apart.
const MODELS_MAX: usize = 1000;

/// Whose count it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CountedModel {
    /// The backend that answers.
    pub backend: Arc<str>,
    /// The model as it may be a label.
    pub model: Arc<str>,
    /// The tokenizer's key.
    pub tokenizer: u64,
}

impl CountedModel {
    /// What is compared of it.
    pub(crate) fn compared(&self, direction: Direction) -> Compared {
        Compared {
            model: Arc::clone(&self.model),
            backend: Arc::clone(&self.backend),
            direction,
        }
    }
}

/// All of them.
#[derive(Debug)]
pub struct Calibrations {
    known: Mutex<Known>,
    metrics: Arc<DriftMetrics>,
}

#[derive(Debug, Default)]
struct Known {
    /// Of counts that are exact but for what the engine makes of the call.
    of: BTreeMap<CountedModel, Calibration>,
    /// Of counts that are approximate for a reason of their own. Kept only to find the shapes whose difference exceeds the
    /// tolerance.
    near: BTreeMap<CountedModel, Calibration>,
    /// Models that the engine is to be asked about again.
    wanted: BTreeSet<(Arc<str>, Arc<str>)>,
    /// The tokenizers of the configuration; none where all are.
    keys: Option<BTreeSet<u64>>,
}

impl Known {
    /// Whether there is anything to know of a tokenizer: calls that began with one of the configuration before end yet.
    fn has(&self, key: u64) -> bool {
        self.keys.as_ref().is_none_or(|keys| keys.contains(&key))
    }
}

/// A prompt that was counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prompted {
    pub(crate) count: Count,
    pub(crate) shape: Shape,
    /// What the engine reports: of a prompt that is complete once it is said.
    pub(crate) reported: Option<u64>,
    /// All of the answer came. What a call reports that broke off marks its own count, and is nobody's calibration: some
    /// engines begin a stream with a number that they correct at its end.
    pub(crate) is_whole: bool,
    /// How far that may lie from our count until the alarm hears of it.
    pub(crate) tolerance: Tolerance,
}

impl Calibrations {
    pub(crate) fn new(metrics: Arc<DriftMetrics>) -> Self {
        Self {
            known: Mutex::default(),
            metrics,
        }
    }

    /// Takes a prompt, and says how far its count can be trusted. One whose report is another is not exact, whoever is
    /// wrong.
    pub(crate) fn take(&self, of: &CountedModel, prompt: Prompted, now_s: i64) -> Certainty {
        let Prompted {
            count,
            shape,
            reported,
            is_whole,
            tolerance,
        } = prompt;
        let marked = |certainty| match certainty {
            Certainty::Exact if reported.is_some_and(|reported| reported != count.tokens) => {
                Certainty::Approximate(Doubt::Differs)
            }
            certainty => certainty,
        };
        let is_near = matches!(
            count.certainty,
            Certainty::Approximate(doubt) if doubt != Doubt::TokenizerSettings
        );
        let mut known = self.known();
        let is_gone = !known.has(of.tokenizer);
        let all = if is_near {
            &mut known.near
        } else {
            &mut known.of
        };
        let has_room = all.len() < MODELS_MAX || all.contains_key(of);
        let Some(reported) = reported.filter(|_| is_whole && !is_gone && has_room) else {
            let none = Calibration::default();
            return marked(all.get(of).unwrap_or(&none).judge(count, shape));
        };
        let calibration = all.entry(of.clone()).or_default();
        let is_same = reported == count.tokens;
        let agrees = is_same || (is_near && tolerance.holds(reported, count.tokens));
        let change = calibration.answer_within(shape, reported, count.tokens, agrees, now_s);
        let certainty = marked(calibration.judge(count, shape));
        if change.asks_again && !is_near {
            let wanted = (Arc::clone(&of.backend), Arc::clone(&of.model));
            known.wanted.insert(wanted);
        }
        // While the model is known: an alarm for one that is forgotten meanwhile would never end.
        self.alarm(of, &change);
        drop(known);
        let heard = match (change.is_for_alarm, change.makes_the_same) {
            (false, _) => Heard::Nothing,
            (true, false) => Heard::Call,
            (true, true) => Heard::CallOfKnown,
        };
        let sides = (reported, count.tokens);
        self.metrics
            .compare_prompt(of.compared(Direction::Prompt), tolerance, sides, heard);
        tell(of, &change);
        certainty
    }

    /// Whether a count of such a call is exact, as far as is known.
    pub(crate) fn is_exact(&self, of: &CountedModel, count: Count, shape: Shape) -> bool {
        let known = self.known();
        let calibration = known.of.get(of);
        calibration.is_some_and(|known| known.judge(count, shape) == Certainty::Exact)
    }

    /// Hands what an engine said of probes to what is known of a model, by `told`, and tells what is new of it.
    pub fn probed(&self, of: &CountedModel, told: impl FnOnce(&mut Calibration) -> Change) {
        let mut known = self.known();
        let is_new = !known.of.contains_key(of);
        if !known.has(of.tokenizer) || (is_new && known.of.len() >= MODELS_MAX) {
            return;
        }
        let change = told(known.of.entry(of.clone()).or_default());
        self.alarm(of, &change);
        drop(known);
        tell(of, &change);
    }

    /// The models of backends that an engine is to be asked about again because their calls differ, of those that `may`
    /// be; they are not wanted any more then.
    pub fn wanted(
        &self,
        mut may: impl FnMut(&Arc<str>, &Arc<str>) -> bool,
    ) -> Vec<(Arc<str>, Arc<str>)> {
        let wanted = std::mem::take(&mut self.known().wanted);
        let (now, later): (BTreeSet<_>, BTreeSet<_>) = wanted
            .into_iter()
            .partition(|(backend, model)| may(backend, model));
        self.known().wanted.extend(later);
        now.into_iter().collect()
    }

    /// Forgets all tokenizers but those of a configuration, which has just been published.
    pub fn keep_only(&self, keys: BTreeSet<u64>) {
        let mut known = self.known();
        self.retain(&mut known, |of| keys.contains(&of.tokenizer));
        known.near.retain(|of, _| keys.contains(&of.tokenizer));
        known.keys = Some(keys);
    }

    /// Forgets what is known of these backends, which stand at other addresses from `moved` on. What is told from then
    /// on is said of the new ones, and stays.
    pub fn forget(&self, is_elsewhere: impl Fn(&str) -> bool, moved: impl FnOnce()) {
        let mut known = self.known();
        moved();
        self.retain(&mut known, |of| !is_elsewhere(&of.backend));
        known.near.retain(|of, _| !is_elsewhere(&of.backend));
        known.wanted.retain(|(backend, _)| !is_elsewhere(backend));
    }

    /// Forgets the others. An alarm that one of them raised because its engine changed ends with it.
    fn retain(&self, known: &mut Known, stays: impl Fn(&CountedModel) -> bool) {
        known.of.retain(|of, _| {
            let stays = stays(of);
            if !stays {
                self.metrics.agrees(&of.backend, &of.model);
            }
            stays
        });
    }

    /// What is shown of each: who waits for the lock waits for no copy of probes and calls.
    #[must_use]
    pub fn summaries(&self) -> BTreeMap<CountedModel, Summary> {
        let known = self.known();
        let all = known.of.iter();
        all.map(|(of, calibration)| (of.clone(), calibration.summary()))
            .collect()
    }

    /// Whose counts are near for a reason of their own, and what differs there by more than it may.
    #[must_use]
    pub fn near(&self) -> BTreeMap<CountedModel, Vec<Difference>> {
        let known = self.known();
        let near = known.near.iter();
        near.map(|(of, calibration)| (of.clone(), calibration.differences().collect()))
            .collect()
    }

    /// Raises or ends the alarm for what changed. To be called under the lock, as the alarm is ended by [`Self::retain`].
    fn alarm(&self, of: &CountedModel, change: &Change) {
        for says in &change.says {
            match says {
                Says::Differs(_) => {}
                Says::Changed(..) => self.metrics.changed(&of.backend, &of.model),
                Says::Agrees(_) => self.metrics.agrees(&of.backend, &of.model),
            }
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Says in the log what is new of a model.
fn tell(of: &CountedModel, change: &Change) {
    let CountedModel { backend, model, .. } = of;
    for says in &change.says {
        match says {
            Says::Differs(difference) => told(backend, model, difference),
            Says::Changed(difference, before_s) => {
                let features = difference.features.to_string();
                tracing::warn!(
                    backend = &**backend,
                    model = &**model,
                    calls_with = features,
                    probe = difference.probe,
                    reported = difference.first.reported,
                    counted = difference.first.counted,
                    agreed_at_unix_s = before_s,
                    "the engine's count of such prompts has changed: its template, its tokenizer or its settings were changed"
                );
            }
            Says::Agrees(features) => {
                let features = features.to_string();
                tracing::info!(
                    backend = &**backend,
                    model = &**model,
                    calls_with = features,
                    "the engine and the gate count such prompts the same again"
                );
            }
        }
    }
}

fn told(backend: &str, model: &str, difference: &Difference) {
    let features = difference.features.to_string();
    tracing::warn!(
        backend,
        model,
        calls_with = features,
        probe = difference.probe,
        reported = difference.first.reported,
        counted = difference.first.counted,
        since_unix_s = difference.first_s,
        "the gate and the engine count such prompts differently, from the first answer on: the gate's counts of them are approximate, and raise no drift alarm"
    );
}

#[cfg(test)]
mod tests;
