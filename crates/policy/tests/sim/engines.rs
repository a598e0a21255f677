//! Engines that answer, and engines that do not.
//!
//! Each has spells of sickness, so that ejection, trial and return all happen.

use policy::attempt::Failure;

use super::rng::Rng;

/// What an engine does with one attempt, decided when it arrives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Answer {
    pub(super) result: Result<u16, Failure>,
    /// Until the head, or until the failure is noticed.
    pub(super) head_ns: i64,
    /// From the head to the last byte.
    pub(super) body_ns: i64,
    pub(super) prompt: u64,
    pub(super) completion: u64,
}

#[derive(Debug)]
pub(super) struct Engines {
    sick_until_ns: Vec<i64>,
}

const SECOND: u64 = 1_000_000_000;

impl Engines {
    pub(super) fn new(count: usize) -> Self {
        Self {
            sick_until_ns: vec![0; count],
        }
    }

    pub(super) fn answer(&mut self, engine: usize, now_ns: i64, cap: u64, rng: &mut Rng) -> Answer {
        let is_sick = self.sick_until_ns[engine] > now_ns;
        if !is_sick && rng.chance(2) {
            self.sick_until_ns[engine] = now_ns + signed(rng.between(SECOND, 60 * SECOND));
        }
        let result = match rng.between(0, 100) {
            0..60 if is_sick => Err(Failure::Connect),
            60..80 if is_sick => Ok(503),
            80..90 if is_sick => Err(Failure::FirstByteTimeout),
            0..2 => Err(Failure::Reset),
            2..4 => Ok(429),
            4 => Ok(500),
            _ => Ok(200),
        };
        let answered = result == Ok(200);
        let tokens = |most: u64, rng: &mut Rng| {
            if answered {
                rng.between(0, most + 1)
            } else {
                0
            }
        };
        // One in twenty lies: far more than its cap.
        let most = if rng.chance(5) { cap * 4 } else { cap };
        Answer {
            result,
            head_ns: signed(rng.between(1_000_000, 2 * SECOND)),
            body_ns: if answered {
                signed(rng.between(0, 20 * SECOND))
            } else {
                0
            },
            prompt: tokens(400, rng),
            completion: tokens(most, rng),
        }
    }
}

fn signed(ns: u64) -> i64 {
    i64::try_from(ns).expect("seconds")
}
