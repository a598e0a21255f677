//! Engines that are asked what they have to do, each by one task, whichever configurations have it.
//!
//! Invariant: an engine that two configurations in a row have is asked on without a break; one that none has any more is asked no longer.
//! Not here: who is asked (`balancing`), asking (`callout`).

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use callout::Running;
use policy::balancing::Shared;

/// An engine that is asked until this is dropped.
#[derive(Debug)]
pub(crate) struct Asked {
    who: Who,
    _running: Running,
}

/// What tells an engine that is asked from another one.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    /// Who is told.
    pub(crate) shared: Arc<Shared>,
    /// Where it is asked.
    pub(crate) url: String,
    /// How often.
    pub(crate) every: Duration,
    /// Who is believed to be it, as the bundle of roots says now: another content of the same file is another trust.
    pub(crate) roots: Option<[u8; 32]>,
}

impl Who {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
            && self.url == other.url
            && self.every == other.every
            && self.roots == other.roots
    }
}

/// The engines that are asked, by any configuration.
#[derive(Debug, Default)]
pub(crate) struct Watched(Mutex<Vec<Weak<Asked>>>);

impl Watched {
    /// Whoever asks it already, or else one who begins.
    pub(crate) fn asked(
        &self,
        who: &Who,
        begin: impl FnOnce() -> Result<Running, String>,
    ) -> Result<Arc<Asked>, String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|asked| asked.strong_count() > 0);
        let mut known = all.iter().filter_map(Weak::upgrade);
        if let Some(known) = known.find(|asked| asked.who.is(who)) {
            return Ok(known);
        }
        let asked = Arc::new(Asked {
            who: who.clone(),
            _running: begin()?,
        });
        all.push(Arc::downgrade(&asked));
        Ok(asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_asked_anew_where_other_roots_are_believed() {
        let who = Who {
            shared: Arc::default(),
            url: "https://10.0.0.1:8000/metrics".to_owned(),
            every: Duration::from_secs(1),
            roots: Some([1; 32]),
        };
        assert!(who.is(&who.clone()));
        let rotated = Who {
            roots: Some([2; 32]),
            ..who.clone()
        };
        assert!(!who.is(&rotated));
    }
}
