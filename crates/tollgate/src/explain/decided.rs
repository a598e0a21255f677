//! Which rule of the configuration decided over a call: rules that remember what they said.
//!
//! Not here: the rules (`authority`).

use std::sync::{Arc, Mutex, PoisonError};

use policy::authority::{Asked, Decision, Rules};
use policy::snapshot::Snapshot;

/// The rule that decided last.
#[derive(Debug, Clone, Default)]
pub(super) struct Decided(Arc<Mutex<Option<Arc<str>>>>);

impl Decided {
    /// The rule that allowed the last call, where one did.
    pub(super) fn by(&self) -> Option<Arc<str>> {
        let by = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        by.clone()
    }

    /// Listens to the rules of a snapshot.
    pub(super) fn listen(&self, s: &mut Snapshot) {
        s.authority = s.authority.take().map(|rules| {
            Arc::new(Heard {
                rules,
                by: self.clone(),
            }) as _
        });
    }
}

#[derive(Debug)]
struct Heard {
    rules: Arc<dyn Rules>,
    by: Decided,
}

impl Rules for Heard {
    fn decide(&self, asked: &Asked<'_>) -> Decision {
        let decision = self.rules.decide(asked);
        let by = decision.by.clone().filter(|_| decision.allowed);
        *self.by.0.lock().unwrap_or_else(PoisonError::into_inner) = by;
        decision
    }
}
