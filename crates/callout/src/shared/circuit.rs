//! Whether a service is asked at all.
//!
//! Invariant: after outages for [`FAILURES_MAX`] different subjects in a row (keys, where nothing says whose they are) one question a second
//! goes out and the others fail at once, until one is answered; a key whose own question failed or was refused twice is asked again once a
//! second. A refusal or an answer of no use is not an outage. So no caller can close the way for all others, with a question that the service
//! does not like, by asking the same again, or by many questions of its own; nor has a service many from one that it refuses.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::Key;
use crate::fault::Fault;

/// Subjects in a row for which there was an outage, after which a service is down.
const FAILURES_MAX: usize = 5;
/// How often it is tried then.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Keys of outages that are kept at one time; one more forgets the others.
const KEYS_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Circuit {
    /// Subjects in a row for which there was an outage; no more than count.
    failed: Vec<Key>,
    /// How often in a row each key was asked about in vain, when last, and why where that was a refusal.
    keys: HashMap<Key, Vain>,
    /// The last question while it was down, or its last failure.
    last: Option<Instant>,
}

#[derive(Debug)]
struct Vain {
    times: u32,
    last: Instant,
    refusal: Option<Fault>,
}

impl Circuit {
    pub(super) fn admit(&mut self, key: &Key, now: Instant) -> Result<(), Fault> {
        let is_early = |last: &Instant| now.saturating_duration_since(*last) < PROBE_EVERY;
        let known = self.keys.get(key);
        if let Some(vain) = known.filter(|vain| vain.times > 1 && is_early(&vain.last)) {
            return Err(vain.refusal.clone().unwrap_or(Fault::Down));
        }
        if self.failed.len() < FAILURES_MAX {
            return Ok(());
        }
        if self.last.as_ref().is_some_and(is_early) {
            return Err(Fault::Down);
        }
        self.last = Some(now);
        Ok(())
    }

    pub(super) fn note(&mut self, (key, whose): (Key, Key), now: Instant, fault: Option<&Fault>) {
        let is_outage = fault.is_some_and(Fault::is_outage);
        if is_outage {
            if self.failed.len() < FAILURES_MAX && !self.failed.contains(&whose) {
                self.failed.push(whose);
            }
            self.last = Some(now);
        } else {
            self.failed.clear();
        }
        let refusal = fault.filter(|fault| fault.is_refusal()).cloned();
        if !is_outage && refusal.is_none() {
            self.keys.remove(&key);
            return;
        }
        if self.keys.len() >= KEYS_MAX {
            self.keys.clear();
        }
        let times = self.keys.get(&key).map_or(0, |vain| vain.times);
        let vain = Vain {
            times: times.saturating_add(1),
            last: now,
            refusal,
        };
        self.keys.insert(key, vain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down() -> Fault {
        Fault::Broken(String::new())
    }

    fn key(number: usize) -> Key {
        let mut key = [0; 32];
        key[24..].copy_from_slice(&number.to_be_bytes());
        key
    }

    #[test]
    fn it_is_tried_once_a_second_while_it_is_down() {
        let (mut circuit, mut now) = (Circuit::default(), Instant::now());
        for n in 0..FAILURES_MAX {
            assert_eq!(circuit.admit(&key(n), now), Ok(()));
            circuit.note((key(n), key(n)), now, Some(&down()));
        }
        assert_eq!(circuit.admit(&key(99), now), Err(Fault::Down));
        for n in 10..13 {
            now += PROBE_EVERY;
            assert_eq!(circuit.admit(&key(n), now), Ok(()));
            let second = circuit.admit(&key(n + 10), now);
            assert_eq!(second, Err(Fault::Down), "one probe at a time");
            circuit.note((key(n), key(n)), now, Some(&down()));
        }
        now += PROBE_EVERY;
        assert_eq!(circuit.admit(&key(98), now), Ok(()));
        circuit.note((key(98), key(98)), now, None);
        assert_eq!(circuit.admit(&key(97), now), Ok(()));
        assert_eq!(circuit.admit(&key(96), now), Ok(()));
    }

    #[test]
    fn one_key_that_fails_again_and_again_closes_nothing_for_others() {
        let (mut circuit, mut now) = (Circuit::default(), Instant::now());
        circuit.note((key(1), key(1)), now, Some(&down()));
        for _ in 0..FAILURES_MAX * 4 {
            assert_eq!(circuit.admit(&key(1), now), Ok(()));
            circuit.note((key(1), key(1)), now, Some(&down()));
            assert_eq!(circuit.admit(&key(1), now), Err(Fault::Down), "at once");
            assert_eq!(circuit.admit(&key(2), now), Ok(()));
            now += PROBE_EVERY;
        }
        for n in 0..KEYS_MAX * 3 {
            circuit.note((key(n), key(n)), now, Some(&down()));
        }
        assert!(circuit.keys.len() <= KEYS_MAX && circuit.failed.len() <= FAILURES_MAX);
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
            for n in 0..FAILURES_MAX * 2 {
                circuit.note((key(n), key(n)), now, Some(&fault));
                assert_eq!(circuit.admit(&key(99), now), Ok(()), "{fault}");
            }
        }
        for status in [429, 502, 503, 504] {
            for n in 0..FAILURES_MAX {
                circuit.note((key(n), key(n)), now, Some(&refused(status)));
            }
            assert_eq!(circuit.admit(&key(99), now), Err(Fault::Down));
            circuit.note((key(99), key(99)), now, None);
        }
    }

    #[test]
    fn many_keys_of_one_subject_close_nothing_for_others() {
        let (mut circuit, now) = (Circuit::default(), Instant::now());
        let throttled = Fault::Status {
            status: 429,
            code: None,
        };
        for n in 0..FAILURES_MAX * 4 {
            circuit.note((key(n), key(0)), now, Some(&throttled));
            assert_eq!(circuit.admit(&key(99), now), Ok(()));
        }
        for n in 1..FAILURES_MAX {
            circuit.note((key(n), key(n)), now, Some(&throttled));
        }
        assert_eq!(circuit.admit(&key(99), now), Err(Fault::Down), "of several");
    }

    #[test]
    fn a_key_that_is_refused_again_is_asked_about_once_a_second() {
        let (mut circuit, mut now) = (Circuit::default(), Instant::now());
        let refused = Fault::Status {
            status: 400,
            code: Some("invalid_grant".to_owned()),
        };
        circuit.note((key(1), key(1)), now, Some(&refused));
        assert_eq!(circuit.admit(&key(1), now), Ok(()), "it may be good by now");
        for _ in 0..3 {
            circuit.note((key(1), key(1)), now, Some(&refused));
            assert_eq!(circuit.admit(&key(1), now), Err(refused.clone()));
            assert_eq!(circuit.admit(&key(2), now), Ok(()));
            now += PROBE_EVERY;
            assert_eq!(circuit.admit(&key(1), now), Ok(()));
        }
        circuit.note((key(1), key(1)), now, None);
        assert_eq!(circuit.admit(&key(1), now), Ok(()));
    }
}
