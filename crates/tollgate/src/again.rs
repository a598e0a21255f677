//! When a reload that was refused is tried again, though nothing changed that is watched.
//!
//! Invariant: what only a change can mend waits for one; of what is tried again, or read again in doubt, and fails in the same words the log has one line.
//! Not here: reloading (`running`), when that is looked at (`watch`).

use std::time::{Duration, Instant};

use crate::marks::Cause;

/// After how long.
const AGAIN: Duration = Duration::from_secs(5);

/// The last reload, where it was refused.
#[derive(Debug, Default)]
pub(crate) struct Again(Option<Failed>);

#[derive(Debug)]
struct Failed {
    says: String,
    /// Where it may pass.
    due: Option<Instant>,
    /// It is tried again just now, and nobody asked for that.
    is_tried: bool,
}

impl Again {
    /// A reload was refused; whether that is news.
    pub(crate) fn begin(&mut self, says: &str, may_pass: bool, why: Cause, now: Instant) -> bool {
        let last = self.0.take();
        let is_known = |last: &Failed| (last.is_tried || why == Cause::Doubt) && last.says == says;
        let is_known = last.as_ref().is_some_and(is_known);
        self.0 = Some(Failed {
            says: says.to_owned(),
            due: may_pass.then_some(now + AGAIN),
            is_tried: false,
        });
        !is_known
    }

    /// A reload was good.
    pub(crate) fn end(&mut self) {
        self.0 = None;
    }

    /// Whether it is to be tried again now, which whoever asks does then.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        let is_due = |failed: &&mut Failed| failed.due.is_some_and(|due| due <= now);
        let due = self.0.as_mut().filter(is_due);
        due.is_some_and(|failed| {
            failed.is_tried = true;
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_pass_is_tried_again_after_a_while_and_told_once() {
        let (mut again, now) = (Again::default(), Instant::now());
        assert!(again.begin("a fault of the document", false, Cause::News, now));
        assert!(!again.is_due(now + 2 * AGAIN), "a change has to mend it");
        assert!(again.begin("the ledger cannot be read", true, Cause::News, now));
        assert!(!again.is_due(now));
        let later = now + AGAIN;
        assert!(again.is_due(later));
        assert!(!again.begin("the ledger cannot be read", true, Cause::News, later));
        assert!(!again.is_due(later));
        assert!(
            again.begin("the ledger cannot be read", true, Cause::News, later),
            "it was asked for"
        );
        assert!(again.is_due(later + AGAIN));
        assert!(
            again.begin("no thread", true, Cause::News, later + AGAIN),
            "it is another"
        );
        assert!(!again.begin("no thread", true, Cause::Doubt, later));
        assert!(again.begin("another", false, Cause::Doubt, later));
        assert!(!again.begin("another", false, Cause::Doubt, later));
        assert!(again.begin("another", false, Cause::News, later));
        again.end();
        assert!(!again.is_due(later + 9 * AGAIN));
        assert!(
            again.begin("no thread", true, Cause::News, later),
            "it is new again"
        );
    }
}
