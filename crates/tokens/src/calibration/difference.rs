//! What is said of a comparison: both numbers, what differs, and how features stand.
//!
//! Not here: how it comes to be known (`calibration`).

use super::culprits::Sign;
use crate::shape::Shape;

/// Both numbers of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// By the engine.
    pub reported: u64,
    /// By us.
    pub counted: u64,
}

/// Prompts that the engine counts in another way than we do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What those have that differ, and others have not.
    pub features: Shape,
    /// What all those have that differ.
    pub common: Shape,
    /// The probe that differs; none where calls do.
    pub probe: Option<&'static str>,
    /// The first that differed.
    pub first: Pair,
    /// When that was, seconds since 1970.
    pub first_s: i64,
    /// When one differed last.
    pub last_s: i64,
    /// How many differed.
    pub calls: u64,
    /// Tokens reported beyond those counted, of all of them.
    pub tokens: i64,
}

/// What a call or a round of probes comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// The alarm is to hear of this call: its shape had agreed, and no feature explains what differs.
    pub is_for_alarm: bool,
    /// A shape that had agreed differs: it is worth asking the engine again.
    pub asks_again: bool,
    /// The engine was asked since calls began to differ, and makes the same of the probes as we do.
    pub makes_the_same: bool,
    /// What is to be told.
    pub says: Vec<Says>,
}

/// What is told once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    /// Prompts with these features are counted in two ways.
    Differs(Difference),
    /// They were counted in one way before: the engine changed, after this time (seconds since 1970).
    Changed(Difference, i64),
    /// They are counted in one way again.
    Agrees(Shape),
}

/// What is shown of a calibration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The features that were seen, by how they stand.
    pub features: Features,
    /// What differs: probes first, by name, then calls.
    pub differences: Vec<Difference>,
    /// When the engine was asked last, seconds since 1970.
    pub asked_at_s: Option<i64>,
}

/// The features that were seen, by how they stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// Counts of prompts with them are exact.
    pub agreed: Shape,
    /// They differ.
    pub differ: Shape,
    /// Too few were compared.
    pub open: Shape,
}

impl Pair {
    pub(super) fn sign(self) -> Sign {
        self.reported.cmp(&self.counted)
    }

    pub(super) fn difference(self) -> i64 {
        let (reported, counted) = (i128::from(self.reported), i128::from(self.counted));
        i64::try_from(reported - counted).unwrap_or(i64::MAX)
    }
}

impl Difference {
    pub(super) fn of(
        features: Shape,
        common: Shape,
        probe: Option<&'static str>,
        first: Pair,
        at_s: i64,
    ) -> Self {
        Self {
            features,
            common,
            probe,
            first,
            first_s: at_s,
            last_s: at_s,
            calls: 1,
            tokens: first.difference(),
        }
    }

    /// Tokens reported beyond those counted, of a call on average.
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.tokens as f64 / self.calls.max(1) as f64
    }
}
