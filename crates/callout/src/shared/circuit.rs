//! Whether a service is asked at all.
//!
//! Invariant: after outages for [`FAILURES_MAX`] different keys in a row one question a second goes out and the others
//! fail at once, until one is answered; a key whose own question failed so twice is asked again once a second. A refusal
//! or an answer of no use is not an outage. So no caller can close the way for all others, with a question that the service
//! does not like or by asking the same again.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

use super::Key;
use crate::fault::Fault;

/// Keys in a row for which there was an outage, after which a service is down.
const FAILURES_MAX: usize = 5;
/// How often it is tried then.
const PROBE_EVERY: Duration = Duration::from_secs(1);
/// Keys of outages that are kept at one time; one more forgets the others.
const KEYS_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Circuit {
    /// Keys in a row for which there was an outage; no more than count.
    failed: Vec<Key>,
    /// How often in a row each was asked about in vain, and when last.
    keys: HashMap<Key, (u32, Instant)>,
    /// The last question while it was down, or its last failure.
    last: Option<Instant>,
}

impl Circuit {
    pub(super) fn admit(&mut self, key: &Key, now: Instant) -> Result<(), Fault> {
        let is_early = |last: &Instant| now.saturating_duration_since(*last) < PROBE_EVERY;
        let known = self.keys.get(key);
        if known.is_some_and(|(times, last)| *times > 1 && is_early(last)) {
            return Err(Fault::Down);
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

    pub(super) fn note(&mut self, key: Key, now: Instant, fault: Option<&Fault>) {
        if !fault.is_some_and(Fault::is_outage) {
            self.failed.clear();
            self.keys.remove(&key);
            return;
        }
        if self.failed.len() < FAILURES_MAX && !self.failed.contains(&key) {
            self.failed.push(key);
        }
        if self.keys.len() >= KEYS_MAX {
            self.keys.clear();
        }
        let (times, last) = self.keys.entry(key).or_insert((0, now));
        (*times, *last) = (times.saturating_add(1), now);
        self.last = Some(now);
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
            circuit.note(key(n), now, Some(&down()));
        }
        assert_eq!(circuit.admit(&key(99), now), Err(Fault::Down));
        for n in 10..13 {
            now += PROBE_EVERY;
            assert_eq!(circuit.admit(&key(n), now), Ok(()));
            let second = circuit.admit(&key(n + 10), now);
            assert_eq!(second, Err(Fault::Down), "one probe at a time");
            circuit.note(key(n), now, Some(&down()));
        }
        now += PROBE_EVERY;
        assert_eq!(circuit.admit(&key(98), now), Ok(()));
        circuit.note(key(98), now, None);
        assert_eq!(circuit.admit(&key(97), now), Ok(()));
        assert_eq!(circuit.admit(&key(96), now), Ok(()));
    }

    #[test]
    fn one_key_that_fails_again_and_again_closes_nothing_for_others() {
        let (mut circuit, mut now) = (Circuit::default(), Instant::now());
        circuit.note(key(1), now, Some(&down()));
        for _ in 0..FAILURES_MAX * 4 {
            assert_eq!(circuit.admit(&key(1), now), Ok(()));
            circuit.note(key(1), now, Some(&down()));
            assert_eq!(circuit.admit(&key(1), now), Err(Fault::Down), "at once");
            assert_eq!(circuit.admit(&key(2), now), Ok(()));
            now += PROBE_EVERY;
        }
        for n in 0..KEYS_MAX * 3 {
            circuit.note(key(n), now, Some(&down()));
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
                circuit.note(key(n), now, Some(&fault));
                assert_eq!(circuit.admit(&key(n), now), Ok(()), "{fault}");
            }
        }
        for status in [429, 502, 503, 504] {
            for n in 0..FAILURES_MAX {
                circuit.note(key(n), now, Some(&refused(status)));
            }
            assert_eq!(circuit.admit(&key(99), now), Err(Fault::Down));
            circuit.note(key(99), now, None);
        }
    }
}
