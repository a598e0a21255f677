//! What came of one probe when the engine was last asked for it.
//!
//! Not here: the probes themselves (`probes`), what follows from them (`calibration`).

use super::culprits::Seen;
use super::difference::Pair;
use crate::shape::Shape;

/// What came of a probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probed {
    pub(super) shape: Shape,
    pub(super) tokens: Pair,
    /// The round before agreed.
    pub(super) agreed_before: bool,
    /// When it last agreed, or first differed.
    pub(super) since_s: i64,
}

impl Probed {
    pub(super) const fn agrees(&self) -> bool {
        self.tokens.reported == self.tokens.counted
    }

    pub(super) fn seen(&self) -> Seen {
        Seen {
            shape: self.shape,
            sign: self.tokens.sign(),
        }
    }
}
