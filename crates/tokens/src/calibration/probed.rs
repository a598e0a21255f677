//! What came of each probe when the engine was last asked for it.
//!
//! Invariant: at most [`PROBES_MAX`] are kept.
//! Not here: the probes themselves (`probes`), what follows from them (`calibration`).

use std::collections::BTreeMap;

use super::culprits::{self, Seen};
use super::difference::{Difference, Pair, Says};
use crate::shape::{Feature, Shape};

/// Probes that are kept.
const PROBES_MAX: usize = 128;

/// All of them, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Probes {
    all: BTreeMap<&'static str, Probed>,
    /// What those that differ have that others have not.
    pub(super) differ: Shape,
    /// What those that agree have, and none of that: each call asks for it, so it is made once a round.
    pub(super) agree: Shape,
    /// When the last round ended, seconds since 1970.
    pub(super) last_round_s: Option<i64>,
    /// And the one before it.
    round_before_s: Option<i64>,
}

/// What came of a probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probed {
    pub(super) shape: Shape,
    tokens: Pair,
    /// The round before agreed.
    agreed_before: bool,
    /// When it last agreed, or first differed.
    since_s: i64,
}

impl Probes {
    /// Takes what came of one; whether there was room for it.
    pub(super) fn take(
        &mut self,
        name: &'static str,
        shape: Shape,
        tokens: Pair,
        now_s: i64,
    ) -> bool {
        if self.all.len() >= PROBES_MAX && !self.all.contains_key(name) {
            return false;
        }
        let agrees = tokens.reported == tokens.counted;
        let before = self.all.get(name);
        let since_s = match before {
            Some(before) if !agrees && !before.agrees() => before.since_s,
            _ => now_s,
        };
        let probed = Probed {
            shape,
            tokens,
            agreed_before: before.is_some_and(Probed::agrees),
            since_s,
        };
        self.all.insert(name, probed);
        true
    }

    /// All were asked for.
    pub(super) fn end_round(&mut self, now_s: i64) {
        let seen: Vec<Seen> = self.all.values().map(Probed::seen).collect();
        self.differ = culprits::explaining(&seen);
        self.round_before_s = self.last_round_s.replace(now_s);
        let agreed = self.agreeing();
        let agreed = agreed.fold(Shape::NONE, |shape, probed| shape.and(probed.shape));
        self.agree = agreed.without(self.differ);
    }

    /// What came of them in the round before is told.
    pub(super) fn forget_before(&mut self) {
        for probed in self.all.values_mut() {
            probed.agreed_before = false;
        }
    }

    /// What is told of a feature that probes differ for since this round.
    pub(super) fn told_of(&self, feature: Feature) -> Option<Says> {
        let with = || self.all.iter().filter(|(_, it)| it.shape.has(feature));
        let mut differing = with().filter(|(_, it)| !it.agrees());
        let (name, first) = differing.next()?;
        let features = Shape::NONE.with(feature);
        let (of, tokens) = (first.shape, first.tokens);
        let mut difference = Difference::of(features, of, Some(*name), tokens, first.since_s);
        let mut changed = first.agreed_before;
        for (_, more) in differing {
            difference.calls += 1;
            difference.tokens = difference.tokens.saturating_add(more.tokens.difference());
            difference.common = difference.common.common(more.shape);
            changed |= more.agreed_before;
        }
        Some(match self.round_before_s {
            Some(before) if changed => Says::Changed(difference, before),
            _ => Says::Differs(difference),
        })
    }

    /// Those that agree.
    pub(super) fn agreeing(&self) -> impl Iterator<Item = &Probed> {
        self.all.values().filter(|probed| probed.agrees())
    }

    /// Those that agree since later. Which of two came first is not known within a second.
    pub(super) fn agreeing_after(&self, first_s: i64) -> impl Iterator<Item = &Probed> {
        self.agreeing().filter(move |it| it.since_s > first_s)
    }

    /// What each that differs says.
    pub(super) fn differences(&self) -> impl Iterator<Item = Difference> {
        let differing = self.all.iter().filter(|(_, probed)| !probed.agrees());
        differing.map(|(name, probed)| {
            let features = probed.shape.common(self.differ);
            let (of, tokens) = (probed.shape, probed.tokens);
            Difference::of(features, of, Some(*name), tokens, probed.since_s)
        })
    }

    /// How many agree, and how many differ.
    pub(super) fn counts(&self) -> (usize, usize) {
        let agree = self.agreeing().count();
        (agree, self.all.len() - agree)
    }
}

impl Probed {
    const fn agrees(&self) -> bool {
        self.tokens.reported == self.tokens.counted
    }

    fn seen(&self) -> Seen {
        Seen {
            shape: self.shape,
            sign: self.tokens.sign(),
        }
    }
}
