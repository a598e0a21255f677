//! How each feature stands.
//!
//! Not here: what makes it stand so (`calibration`).

use crate::shape::{Feature, Shape};

/// How one feature stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    /// Some probe or call had it.
    pub(super) is_seen: bool,
    /// Calls that agreed since it last differed.
    pub(super) answers: u8,
    /// It agreed at some time.
    pub(super) has_agreed: bool,
    /// A call differed because of it, as far as can be told, and not enough have agreed since.
    pub(super) differs: bool,
    /// When such a call differed last that nothing else explains, seconds since 1970.
    pub(super) differed_s: Option<i64>,
    /// When a probe with it agreed last.
    pub(super) probed_s: Option<i64>,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Standings([Standing; Feature::COUNT]);

impl Standing {
    /// Whether no call differed since a probe agreed.
    pub(super) fn is_probed(&self) -> bool {
        self.probed_s > self.differed_s
    }
}

impl Standings {
    pub(super) fn of(&self, feature: Feature) -> Standing {
        self.0.get(feature as usize).copied().unwrap_or_default()
    }

    pub(super) fn each(&mut self, shape: Shape, change: impl Fn(&mut Standing)) {
        for feature in shape.features() {
            if let Some(standing) = self.0.get_mut(feature as usize) {
                change(standing);
            }
        }
    }

    pub(super) fn shape_of(&self, holds: impl Fn(Standing) -> bool) -> Shape {
        let all = Feature::ALL.into_iter();
        all.filter(|feature| holds(self.of(*feature)))
            .fold(Shape::NONE, Shape::with)
    }
}
