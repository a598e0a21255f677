//! Which calls a mirror sees, and at which of its addresses.
//!
//! Not here: the copies (the host), what a route says of mirrors ([`crate::plain::actions`]).

use crate::id::EndpointId;
use crate::plain::actions::Mirror;
use crate::snapshot::Snapshot;

/// Where a copy of a call goes, by these random bits; nowhere where it has none.
#[must_use]
pub fn pick(mirror: &Mirror, chance: u64, s: &Snapshot) -> Option<EndpointId> {
    let share = (chance >> 32).wrapping_mul(1_000_000) >> 32;
    if share >= u64::from(mirror.millionths) {
        return None;
    }
    let endpoints = &s.backend(mirror.backend)?.endpoints;
    let weight = |id: &EndpointId| s.endpoint(*id).map_or(0, |of| u64::from(of.weight));
    let all: u64 = endpoints.iter().map(weight).sum();
    let mut left = (chance & 0xffff_ffff).wrapping_mul(all) >> 32;
    let found = endpoints
        .iter()
        .find(|id| match left.checked_sub(weight(id)) {
            Some(rest) => {
                left = rest;
                false
            }
            None => true,
        });
    found.copied()
}

#[cfg(test)]
mod tests;
