//! Models at endpoints that were refused with 429 and no word of how long.
//!
//! Others come first for a moment, twice as long each time, so that the route's retries do not go where the last call was refused. Where
//! there is no other, or all rest, it is tried as ever.
//! Invariant: at most [`RESTS`] are kept; none is longer than [`LONGEST`].
//! Not here: endpoints that say how long (`cooldown`), sick ones (`health`).

use std::time::Duration;

use crate::clock::Mono;
use crate::id::EndpointId;

/// Most that a worker keeps.
const RESTS: usize = 256;
/// The first time.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(16);

#[derive(Debug, Clone)]
struct Rest {
    endpoint: EndpointId,
    model: Option<Box<str>>,
    until: Mono,
    /// How long the next one is.
    next: Duration,
}

/// Which rest, and until when.
#[derive(Debug, Clone, Default)]
pub(super) struct Rests(Vec<Rest>);

impl Rests {
    #[cold]
    pub(super) fn add(&mut self, endpoint: EndpointId, model: Option<&str>, now: Mono) {
        // Who was let alone for as long as it may rest begins anew.
        self.0.retain(|rest| rest.until.after(LONGEST) > now);
        let mut rests = self.0.iter_mut();
        let same = rests.find(|rest| rest.endpoint == endpoint && rest.model.as_deref() == model);
        if let Some(rest) = same {
            // Calls that were under way together are refused together.
            if rest.until <= now {
                rest.until = now.after(rest.next);
                rest.next = (rest.next * 2).min(LONGEST);
            }
            return;
        }
        if self.0.len() < RESTS {
            self.0.push(Rest {
                endpoint,
                model: model.map(Box::from),
                until: now.after(FIRST),
                next: FIRST * 2,
            });
        }
    }

    #[inline]
    pub(super) fn has(&self, endpoint: EndpointId, model: Option<&str>, now: Mono) -> bool {
        !self.0.is_empty() && self.rests(endpoint, model, now)
    }

    #[cold]
    fn rests(&self, endpoint: EndpointId, model: Option<&str>, now: Mono) -> bool {
        let mut rests = self.0.iter();
        rests.any(|rest| {
            rest.endpoint == endpoint && rest.until > now && rest.model.as_deref() == model
        })
    }

    /// The endpoint answered without an error: what rested there begins anew.
    #[inline]
    pub(super) fn succeeded(&mut self, endpoint: EndpointId, now: Mono) {
        if !self.0.is_empty() {
            self.0
                .retain(|rest| rest.endpoint != endpoint || rest.until > now);
        }
    }
}
