//! Whether a service is asked at all.
//!
//! Invariant: after [`FAILURES_MAX`] outages in a row one question a second goes out and the others fail at once, until
//! one is answered. A refusal or an answer of no use is not an outage: no caller can close the way for all others with
//! a question that the service does not like.

use std::time::Duration;

use tokio::time::Instant;

use crate::fault::Fault;

/// Outages in a row after which a service is down.
const FAILURES_MAX: u32 = 5;
/// How often it is tried then.
const PROBE_EVERY: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(super) struct Circuit {
    failures: u32,
    /// The last question while it was down, or its last failure.
    last: Option<Instant>,
}

impl Circuit {
    pub(super) fn admit(&mut self, now: Instant) -> Result<(), Fault> {
        let is_early = |last: Instant| now.saturating_duration_since(last) < PROBE_EVERY;
        if self.failures < FAILURES_MAX {
            return Ok(());
        }
        if self.last.is_some_and(is_early) {
            return Err(Fault::Down);
        }
        self.last = Some(now);
        Ok(())
    }

    pub(super) fn note(&mut self, now: Instant, fault: Option<&Fault>) {
        if fault.is_some_and(Fault::is_outage) {
            self.failures = self.failures.saturating_add(1);
            self.last = Some(now);
        } else {
            self.failures = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down() -> Fault {
        Fault::Broken(String::new())
    }

    #[test]
    fn it_is_tried_once_a_second_while_it_is_down() {
        let (mut circuit, mut now) = (Circuit::default(), Instant::now());
        for _ in 0..FAILURES_MAX {
            assert_eq!(circuit.admit(now), Ok(()));
            circuit.note(now, Some(&down()));
        }
        assert_eq!(circuit.admit(now), Err(Fault::Down));
        for _ in 0..3 {
            now += PROBE_EVERY;
            assert_eq!(circuit.admit(now), Ok(()));
            assert_eq!(circuit.admit(now), Err(Fault::Down), "one probe at a time");
            circuit.note(now, Some(&down()));
        }
        now += PROBE_EVERY;
        assert_eq!(circuit.admit(now), Ok(()));
        circuit.note(now, None);
        assert_eq!(circuit.admit(now), Ok(()));
        assert_eq!(circuit.admit(now), Ok(()));
    }

    #[test]
    fn a_question_that_is_not_liked_closes_nothing() {
        let (mut circuit, now) = (Circuit::default(), Instant::now());
        let refused = |status| Fault::Status { status, code: None };
        for fault in [
            refused(400),
            refused(500),
            Fault::Garbage("x"),
            Fault::Large(1),
        ] {
            for _ in 0..FAILURES_MAX * 2 {
                circuit.note(now, Some(&fault));
                assert_eq!(circuit.admit(now), Ok(()), "{fault}");
            }
        }
        for status in [429, 502, 503, 504] {
            for _ in 0..FAILURES_MAX {
                circuit.note(now, Some(&refused(status)));
            }
            assert_eq!(circuit.admit(now), Err(Fault::Down));
            circuit.note(now, None);
        }
    }
}
