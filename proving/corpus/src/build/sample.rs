//! Which sessions of a profile are taken.
//!
//! Each session has a number that follows from the seed, the profile's name and its own; those with the smallest
//! numbers are taken. So a sample is the same wherever the files lie and however they are read, and a larger one of
//! the same seed has every session of a smaller.
//! Invariant: 16 bytes for each session that may be taken.
//! Not here: reading the sessions (`pipeline`).

use std::collections::{BinaryHeap, HashSet};
use std::ops::ControlFlow;

use sha2::{Digest, Sha256};

use super::files::shown;
use super::{BuildError, ProfilePlan};
use crate::reader::{Position, Unit};

/// The sessions that are wanted.
pub(super) struct Sample {
    positions: HashSet<u64>,
    /// From how many they were drawn.
    pub(super) candidates: u64,
}

impl Sample {
    pub(super) fn len(&self) -> u64 {
        self.positions.len() as u64
    }

    pub(super) fn wants(&self, profile: &ProfilePlan<'_>, position: &Position) -> bool {
        self.positions.contains(&named(profile, position))
    }
}

/// Draws `n` sessions, or takes all where there are no more.
pub(super) fn draw(
    profile: &ProfilePlan<'_>,
    units: &[Unit],
    seed: u64,
    n: u64,
) -> Result<Sample, BuildError> {
    let mut smallest: BinaryHeap<(u64, u64)> = BinaryHeap::new();
    let mut candidates = 0;
    for unit in units {
        profile.reader.list(unit, &mut |position, id| {
            candidates += 1;
            let one = (drawn(seed, &profile.name, id), named(profile, &position));
            if (smallest.len() as u64) < n {
                smallest.push(one);
            } else if smallest.peek().is_some_and(|largest| one < *largest) {
                smallest.pop();
                smallest.push(one);
            }
            ControlFlow::Continue(())
        })?;
    }
    Ok(Sample {
        positions: smallest.into_iter().map(|(_, position)| position).collect(),
        candidates,
    })
}

fn drawn(seed: u64, profile: &str, id: &str) -> u64 {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update((profile.len() as u64).to_le_bytes());
    hash.update(profile);
    hash.update(id);
    first(hash)
}

/// A position in 64 bits.
fn named(profile: &ProfilePlan<'_>, position: &Position) -> u64 {
    let mut hash = Sha256::new();
    hash.update(shown(&profile.paths, &position.file));
    hash.update(format!("{:?} {}", position.at, position.part));
    first(hash)
}

fn first(hash: Sha256) -> u64 {
    let whole = hash.finalize();
    u64::from_le_bytes(std::array::from_fn(|i| whole[i]))
}
