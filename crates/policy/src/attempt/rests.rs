//! Models at endpoints that were refused with no word of how long: with a 429, or as ones that are not served there.
//!
//! An endpoint that does not serve an operation may serve the model by another one: each rests by itself. Others come first for a moment, twice
//! as long each time, so that the route's retries do not go where the last call was refused. Where
//! there is no other, or all rest, it is tried as ever.
//! Invariant: at most [`RESTS`] are kept, and one more takes the place of the one that ends first; none is longer than [`LONGEST`].
//! Not here: endpoints that say how long (`cooldown`), sick ones (`health`).

use std::time::Duration;

use super::Wanted;
use super::reach::Reach;
use crate::clock::Mono;
use crate::id::EndpointId;
use crate::operation::Operation;
use crate::snapshot::Snapshot;

/// Most that a worker keeps.
const RESTS: usize = 256;
/// The first time.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(16);

#[derive(Debug, Clone)]
struct Rest {
    endpoint: EndpointId,
    /// By which operation alone it was refused; by `None` whatever it is asked for by.
    operation: Option<Operation>,
    model: Option<Box<str>>,
    reach: Reach,
    /// Another caller got a good answer since: what this one got was its own.
    is_its_own: bool,
    until: Mono,
    /// How long the next one is.
    next: Duration,
}

impl Rest {
    /// Whether it is of such calls, whoever makes them.
    fn is_of(&self, endpoint: EndpointId, wanted: Wanted<'_>) -> bool {
        let is_its_operation = self.operation.is_none() || self.operation == wanted.operation;
        self.endpoint == endpoint && is_its_operation && self.model.as_deref() == wanted.model
    }
}

/// Which rest, and until when.
#[derive(Debug, Clone, Default)]
pub(super) struct Rests(Vec<Rest>);

impl Rests {
    #[cold]
    pub(super) fn add(
        &mut self,
        endpoint: EndpointId,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) {
        // Who was let alone for as long as it may rest begins anew.
        self.0.retain(|rest| rest.until.after(LONGEST) > now);
        let (model, reach) = (wanted.model, wanted.asker.alone(s));
        let mut rests = self.0.iter_mut();
        let same =
            |rest: &&mut Rest| rest.operation == wanted.operation && rest.is_of(endpoint, wanted);
        if let Some(rest) = rests.find(same) {
            let is_forgotten = rest.is_its_own && rest.reach != reach;
            rest.is_its_own = false;
            if is_forgotten {
                (rest.reach, rest.until, rest.next) = (reach, now.after(FIRST), FIRST * 2);
                return;
            }
            rest.reach = rest.reach.with(reach);
            // Calls that were under way together are refused together.
            if rest.until <= now {
                rest.until = now.after(rest.next);
                rest.next = (rest.next * 2).min(LONGEST);
            }
            return;
        }
        let soonest = self.0.iter().enumerate().min_by_key(|(_, of)| of.until);
        if self.0.len() >= RESTS
            && let Some((at, _)) = soonest
        {
            self.0.swap_remove(at);
        }
        self.0.push(Rest {
            endpoint,
            operation: wanted.operation,
            model: model.map(Box::from),
            reach,
            is_its_own: false,
            until: now.after(FIRST),
            next: FIRST * 2,
        });
    }

    #[inline]
    pub(super) fn has(
        &self,
        endpoint: EndpointId,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) -> bool {
        !self.0.is_empty() && self.rests(endpoint, wanted, s, now)
    }

    #[cold]
    fn rests(&self, endpoint: EndpointId, wanted: Wanted<'_>, s: &Snapshot, now: Mono) -> bool {
        let mut rests = self.0.iter();
        rests.any(|rest| {
            rest.is_of(endpoint, wanted) && rest.until > now && rest.reach.holds(wanted.asker, s)
        })
    }

    /// The endpoint answered such a call without an error: what rested there begins anew, and what still rests is its caller's own.
    #[inline]
    pub(super) fn succeeded(
        &mut self,
        endpoint: EndpointId,
        wanted: Wanted<'_>,
        s: &Snapshot,
        now: Mono,
    ) {
        if !self.0.is_empty() {
            self.end(endpoint, wanted, s, now);
        }
    }

    #[cold]
    fn end(&mut self, endpoint: EndpointId, wanted: Wanted<'_>, s: &Snapshot, now: Mono) {
        self.0
            .retain(|rest| rest.until > now || !rest.is_of(endpoint, wanted));
        for rest in &mut self.0 {
            rest.is_its_own |= rest.is_of(endpoint, wanted) && !rest.reach.holds(wanted.asker, s);
        }
    }
}
