//! Whom an upstream's answer speaks of.
//!
//! An error may be about the call that it answers: a schema that an engine's sampler breaks on, a prompt larger than a quota. So it holds
//! for its caller alone until another one got the same with no good answer between; from then on it holds for all.
//! Invariant: a caller closes nothing for the others by what it sends, nor by the names that it gives itself. What is no answer (no connection,
//! silence) speaks for all at once.
//! Not here: what follows from it (`health`, `cooldown`, `rests`).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::caller::{Caller, Proven};
use crate::id::WorkloadId;
use crate::snapshot::Snapshot;

/// Who makes a call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asker<'a> {
    /// Its workload.
    pub workload: Option<WorkloadId>,
    /// Who is proven to be behind it, where somebody is.
    pub caller: Option<&'a Arc<Caller>>,
}

impl Asker<'_> {
    /// What tells it from others, also after a reload.
    #[cold]
    fn key(self, s: &Snapshot) -> u64 {
        let workload = self.workload.and_then(|id| s.workload(id));
        let mut hasher = DefaultHasher::new();
        if let Some(workload) = workload {
            workload.name.hash(&mut hasher);
        }
        let caller = self.caller.filter(|caller| caller.by != Proven::Header);
        if let Some(caller) = caller {
            // A name at one issuer is somebody else at another; one that is said is nobody who is proven.
            let user =
                (caller.user.as_ref()).filter(|_| caller.key.is_none() && !caller.is_user_said);
            (caller.by, caller.issuer(), &caller.key, user).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// It, and nobody else.
    #[cold]
    pub(super) fn alone(self, s: &Snapshot) -> Reach {
        Reach::Only(self.key(s))
    }
}

/// Whom something holds for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Reach {
    #[default]
    All,
    /// One caller.
    Only(u64),
}

impl Reach {
    #[cold]
    pub(super) fn holds(self, asker: Asker<'_>, s: &Snapshot) -> bool {
        match self {
            Self::All => true,
            Self::Only(key) => key == asker.key(s),
        }
    }

    /// Whom it holds for, where `other` got the same.
    pub(super) fn with(self, other: Self) -> Self {
        if self == other { self } else { Self::All }
    }
}
