//! What is known of how our count of one model's prompts stands to that of the engine that serves it.
//!
//! A feature of prompts agrees by one probe, or by [`ANSWERS`] calls whose reports equal our counts, since it last
//! differed. A count is exact where every feature of its call agrees. A difference is laid to the feature that calls
//! have that differ and others have not: it is then a shape that is read in two ways, and nobody's fault until somebody
//! looked. A difference that no feature explains, of calls whose very shape agreed before, is for the alarm (`drift`): features
//! that agree by themselves may yet differ together.
//! A probe *vouches* for a shape when it has all its features, agrees, and was asked after calls of that shape began to
//! differ. A call that differs although vouched for is a *misreport*, and is always for the alarm.
//! Invariant: pure, in constant memory, and the same for the same calls in the same order.
//! Not here: asking an engine, who keeps a calibration and for which model (the host), the alarm's arithmetic (`drift`).

mod culprits;
mod difference;
mod probed;
mod runs;
mod standings;

use std::collections::VecDeque;

use crate::count::{Certainty, Count, Doubt};
use crate::shape::{Feature, Shape};
use culprits::{Seen, Sign};
pub use difference::{Change, Difference, Features, Pair, Says, Summary};
use probed::Probes;
use runs::Runs;
use standings::Standings;

/// Calls whose reports have to equal our counts before a feature of theirs agrees that no probe was asked for.
pub const ANSWERS: u8 = 3;
/// Calls in a row that agree until a difference is over.
pub const CLEARED_AFTER: u8 = 40;
/// Calls that are looked at to find what differs.
const RECENT: usize = 64;
/// Differences that are kept; there are no more features.
const DIFFERENCES_MAX: usize = 32;
/// Shapes that are remembered because a call of just that shape agreed.
const SHAPES_MAX: usize = 128;
/// Calls in a row, of several shapes, that have to differ where the engine makes the same of the probes and no call of just
/// their shape was seen to agree.
const ALL_DIFFER: usize = 8;
/// One model of one engine, against one tokenizer of ours.
#[derive(Clone, Debug, Default)]
pub struct Calibration {
    standings: Standings,
    probes: Probes,
    recent: VecDeque<Seen>,
    /// Of calls that agreed, those that were seen first are forgotten first.
    agreed_shapes: VecDeque<Shape>,
    /// Of calls, the first to differ first.
    differences: Vec<Difference>,
    runs: Runs,
}

/// What explains that a call differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Explained {
    /// These features.
    By(Shape),
    /// Nothing but that something changed.
    Change,
    /// Too few calls were seen.
    NotYet,
}

impl Calibration {
    /// Takes what the engine says of a probe; the round is over when [`Self::asked`] says so.
    pub fn probe(
        &mut self,
        name: &'static str,
        shape: Shape,
        reported: u64,
        counted: u64,
        now_s: i64,
    ) {
        let tokens = Pair { reported, counted };
        if !self.probes.take(name, shape, tokens, now_s) {
            return;
        }
        let agrees = reported == counted;
        self.standings.each(shape, |standing| {
            standing.is_seen = true;
            if agrees {
                standing.probed_s = Some(now_s);
            }
        });
    }

    /// The engine was asked for all probes that it takes. A probe that was not asked for in this round keeps what it had.
    pub fn asked(&mut self, now_s: i64) -> Change {
        let before = self.probes.differ;
        self.probes.end_round(now_s);
        let agreed = self.probes.agree;
        self.standings
            .each(agreed, |standing| standing.has_agreed = true);
        let mut says = Vec::new();
        for feature in self.probes.differ.without(before).features() {
            says.extend(self.probes.told_of(feature));
        }
        let over = before.without(self.probes.differ).common(agreed);
        if !over.is_empty() {
            self.differences
                .retain(|one| one.features.common(over).is_empty());
            self.standings
                .each(over, |standing| standing.differs = false);
            says.push(Says::Agrees(over));
        }
        // What calls differ in that the engine makes as we do is no difference between the two.
        let mut differences = std::mem::take(&mut self.differences);
        differences.retain(|one| !self.is_vouched_for(one.common, one.first_s));
        self.differences = differences;
        // What was told once is no news in the next round.
        self.probes.forget_before();
        Change {
            says,
            ..Change::default()
        }
    }

    /// Takes a call that the engine reported.
    pub fn answer(&mut self, shape: Shape, reported: u64, counted: u64, now_s: i64) -> Change {
        self.answer_within(shape, reported, counted, reported == counted, now_s)
    }

    /// The same for counts that agree although they are not the same.
    pub fn answer_within(
        &mut self,
        shape: Shape,
        reported: u64,
        counted: u64,
        agrees: bool,
        now_s: i64,
    ) -> Change {
        let tokens = Pair { reported, counted };
        let sign = if agrees { Sign::Equal } else { tokens.sign() };
        let had_agreed = self.has_agreed(shape);
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(Seen { shape, sign });
        self.standings
            .each(shape, |standing| standing.is_seen = true);
        if sign == Sign::Equal {
            let is_for_alarm = had_agreed && !self.is_beside_misreports(shape);
            self.runs.agreed(shape);
            return Change {
                is_for_alarm,
                says: self.agreed(shape),
                ..Change::default()
            };
        }
        self.differed(shape, tokens, had_agreed, now_s)
    }

    /// A call agreed; what is over by that.
    fn agreed(&mut self, shape: Shape) -> Vec<Says> {
        if !self.agreed_shapes.contains(&shape) {
            if self.agreed_shapes.len() >= SHAPES_MAX {
                self.agreed_shapes.pop_front();
            }
            self.agreed_shapes.push_back(shape);
        }
        self.standings.each(shape, |standing| {
            standing.answers = standing.answers.saturating_add(1);
            if standing.answers >= ANSWERS {
                standing.has_agreed = true;
                standing.differs = false;
                standing.differed_s = None;
            }
        });
        if self.differences.is_empty() {
            return Vec::new();
        }
        // What probes differ for is over when they agree.
        let long = self
            .standings
            .shape_of(|standing| standing.answers >= CLEARED_AFTER);
        let long = long.without(self.probes.differ);
        let mut over = Shape::NONE;
        self.differences.retain(|one| {
            let is_over = one.features.without(long).is_empty();
            if is_over {
                over = over.and(one.features);
            }
            !is_over
        });
        let says = (!over.is_empty()).then_some(Says::Agrees(over));
        says.into_iter().collect()
    }

    fn differed(&mut self, shape: Shape, tokens: Pair, had_agreed: bool, now_s: i64) -> Change {
        let first_s = self.runs.differed(shape, now_s);
        let is_misreported = self.is_vouched_for(shape, first_s);
        let is_explained = self.is_told(shape);
        let features = self.explaining(shape);
        self.standings.each(self.suspects(shape), |standing| {
            standing.answers = 0;
            standing.differs = true;
            if !is_explained {
                standing.differed_s = Some(now_s);
            }
        });
        let mut change = Change {
            is_for_alarm: is_misreported || features == Explained::Change,
            asks_again: had_agreed || (!is_misreported && self.is_vouched_for(shape, i64::MIN)),
            makes_the_same: self.makes_the_same(shape, first_s),
            says: Vec::new(),
        };
        let Explained::By(features) = features else {
            return change;
        };
        if is_misreported {
            return change;
        }
        if let Some(known) = self.open_difference(features) {
            known.calls += 1;
            known.tokens = known.tokens.saturating_add(tokens.difference());
            known.common = known.common.common(shape);
            known.last_s = now_s;
            return change;
        }
        if self.differences.len() >= DIFFERENCES_MAX {
            // What there is no room to tell of is not passed over.
            change.is_for_alarm = true;
            return change;
        }
        let new = Difference::of(features, shape, None, tokens, now_s);
        self.differences.push(new);
        if features.len() > 1 {
            // Each may agree by itself.
            self.standings
                .each(features, |standing| standing.differed_s = None);
        }
        // What a probe found was told then.
        if shape.common(self.probes.differ).is_empty() {
            change.says.push(Says::Differs(new));
        }
        change
    }

    fn suspects(&self, shape: Shape) -> Shape {
        culprits::suspects(shape, self.recent.iter().copied())
    }

    /// What explains that a call of this shape differs.
    fn explaining(&self, shape: Shape) -> Explained {
        let seen = || self.recent.iter().copied();
        let told = shape.common(self.probes.differ);
        if !told.is_empty() {
            return Explained::By(told);
        }
        if let Some(feature) = culprits::told_apart(shape, seen()) {
            return Explained::By(Shape::NONE.with(feature));
        }
        let had_agreed = self.has_agreed(shape) && self.has_agreed_whole(shape);
        if had_agreed || self.all_differ(shape) {
            return Explained::Change;
        }
        let Some(common) = culprits::repeated(shape, seen()) else {
            return Explained::NotYet;
        };
        let fresh = common.without(self.standings.shape_of(|standing| standing.has_agreed));
        Explained::By(if fresh.is_empty() { common } else { fresh })
    }

    fn open_difference(&mut self, features: Shape) -> Option<&mut Difference> {
        let mut all = self.differences.iter_mut();
        all.find(|one| one.features == features)
    }

    /// Whether a call or a probe of just this shape agreed: what features do together is no matter then.
    fn has_agreed_whole(&self, shape: Shape) -> bool {
        let mut probes = self.probes.agreeing();
        self.agreed_shapes.contains(&shape) || probes.any(|probed| probed.shape == shape)
    }

    /// Whether nothing agrees any more, whatever its shape, of an engine that makes the same of probes as we do.
    fn all_differ(&self, shape: Shape) -> bool {
        let last = || self.recent.iter().rev().take(ALL_DIFFER);
        let is_other = |one: &Seen| one.shape != shape;
        shape.without(self.probes.agree).is_empty()
            && self.recent.len() >= ALL_DIFFER
            && last().all(Seen::differs)
            && last().any(is_other)
    }

    /// Whether the engine was asked for all of these features since calls began to differ, and makes of them what we make.
    fn makes_the_same(&self, shape: Shape, first_s: i64) -> bool {
        let since = self.probes.agreeing_after(first_s);
        let made = since.fold(Shape::NONE, |made, probed| made.and(probed.shape));
        made.without(self.probes.differ).holds(shape)
    }

    /// Whether a probe that has all of this shape agrees, and was asked for after calls began to differ. Not where probes
    /// differ by a feature of it: what more the one that agrees has in it may be what makes it agree.
    fn is_vouched_for(&self, shape: Shape, first_s: i64) -> bool {
        shape.common(self.probes.differ).is_empty()
            && self
                .probes
                .agreeing_after(first_s)
                .any(|probed| probed.shape.holds(shape))
    }

    /// Whether the engine's reports of some shape are wrong, and this one has not all of it: calls that are reported as they
    /// are do not outweigh those then, however many they are.
    fn is_beside_misreports(&self, shape: Shape) -> bool {
        self.runs.iter().any(|run| {
            let is_of_run = |one: &Seen| one.shape == run.shape && one.differs();
            run.mostly_differs()
                && !shape.holds(run.shape)
                && self.is_vouched_for(run.shape, run.first_s)
                && self.recent.iter().any(is_of_run)
        })
    }

    /// How far counts of prompts of this shape can be trusted, by what was compared.
    #[must_use]
    pub fn mark(&self, shape: Shape) -> Certainty {
        let Features { agreed, differ, .. } = self.features();
        if !shape.common(differ).is_empty() || self.is_told(shape) {
            return Certainty::Approximate(Doubt::Differs);
        }
        if shape.without(agreed).is_empty() {
            Certainty::Exact
        } else {
            Certainty::Approximate(Doubt::NotCompared)
        }
    }

    /// How far this count can be trusted: what it is doubted for itself counts first, but settings that may make another
    /// tokenizer are no matter where the engine counts the same.
    #[must_use]
    pub fn judge(&self, count: Count, shape: Shape) -> Certainty {
        match count.certainty {
            Certainty::Exact | Certainty::Approximate(Doubt::TokenizerSettings) => self.mark(shape),
            doubted @ Certainty::Approximate(_) => doubted,
        }
    }

    /// The features that were seen, by how they stand.
    #[must_use]
    pub fn features(&self) -> Features {
        let probed = self.probes.agree;
        // Of several features that differ together each may agree by itself.
        let told = self
            .differences
            .iter()
            .filter(|one| one.features.len() == 1);
        let told = told.fold(Shape::NONE, |shape, one| shape.and(one.features));
        let (mut agreed, mut differ) = (Shape::NONE, self.probes.differ.and(told));
        let mut open = Shape::NONE;
        for feature in Feature::ALL {
            let one = Shape::NONE.with(feature);
            let standing = self.standings.of(feature);
            if differ.has(feature) || !standing.is_seen {
            } else if (probed.has(feature) && standing.is_probed()) || standing.answers >= ANSWERS {
                agreed = agreed.and(one);
            } else if standing.differs {
                differ = differ.and(one);
            } else {
                open = open.and(one);
            }
        }
        Features {
            agreed,
            differ,
            open,
        }
    }

    /// What is shown of it.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            features: self.features(),
            differences: self.differences().collect(),
            asked_at_s: self.asked_at_s(),
        }
    }

    /// What differs: probes first, by name, then calls.
    pub fn differences(&self) -> impl Iterator<Item = Difference> {
        let probes = self.probes.differences();
        probes.chain(self.differences.iter().copied())
    }

    /// Probes that agree, and those that differ.
    #[must_use]
    pub fn probes(&self) -> (usize, usize) {
        self.probes.counts()
    }

    /// When the engine was asked last, seconds since 1970.
    #[must_use]
    pub const fn asked_at_s(&self) -> Option<i64> {
        self.probes.last_round_s
    }

    /// Whether calls of this shape were exact at some time, and are not known to differ since.
    fn has_agreed(&self, shape: Shape) -> bool {
        shape.common(self.probes.differ).is_empty()
            && !self.is_told(shape)
            && shape
                .features()
                .all(|feature| self.standings.of(feature).has_agreed)
    }

    /// Whether calls with all features of one that differs are among those of this shape.
    fn is_told(&self, shape: Shape) -> bool {
        let mut told = self.differences.iter();
        told.any(|one| shape.holds(one.features))
    }
}

#[cfg(test)]
mod tests;
