//! How many bad credentials came of each address lately: past a bound, no more of them is worth the work of a proof.
//!
//! A fixed table: an address that falls on the place of another takes it, so that the worst a crowd of addresses does
//! is to be looked at again.
//! Invariant: a credential that is known to be good is taken whatever else came from its address.
//! Not here: which credentials are bad ([`super`]).

use std::net::IpAddr;
use std::time::Duration;

use crate::fast_hash::finalize;

/// Places of the table.
const PLACES: usize = 1024;
/// The window, seconds.
const WINDOW_S: u64 = 10;
/// Bad credentials of one address that are looked at in a window.
const MOST: u32 = 100;

/// Bad credentials by address: that of IPv4, the /64 of IPv6.
#[derive(Debug)]
pub struct Failures {
    places: Box<[Place]>,
    seed: u64,
}

#[derive(Debug, Clone, Copy, Default)]
struct Place {
    address: u64,
    began_unix_s: u64,
    count: u32,
}

impl Default for Failures {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Failures {
    /// None yet.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            places: vec![Place::default(); PLACES].into(),
            seed,
        }
    }

    /// Another one came.
    pub(crate) fn note(&mut self, address: IpAddr, unix_s: u64) {
        let (address, seed) = (key(address), self.seed);
        let Some(place) = place(&mut self.places, address, seed) else {
            return;
        };
        if place.address != address || is_over(place, unix_s) {
            *place = Place {
                address,
                began_unix_s: unix_s,
                count: 0,
            };
        }
        place.count += 1;
    }

    /// How long no more of this address is looked at, where too many came.
    pub(crate) fn wait(&mut self, address: IpAddr, unix_s: u64) -> Option<Duration> {
        let (address, seed) = (key(address), self.seed);
        let place = place(&mut self.places, address, seed)?;
        if place.address != address || is_over(place, unix_s) || place.count < MOST {
            return None;
        }
        let end = place.began_unix_s.saturating_add(WINDOW_S);
        Some(Duration::from_secs(end.saturating_sub(unix_s)))
    }
}

fn is_over(place: &Place, unix_s: u64) -> bool {
    // A clock that was set back ends it, too.
    !(place.began_unix_s..place.began_unix_s.saturating_add(WINDOW_S)).contains(&unix_s)
}

fn place(places: &mut [Place], address: u64, seed: u64) -> Option<&mut Place> {
    let at = finalize(address ^ seed) % PLACES as u64;
    places.get_mut(usize::try_from(at).ok()?)
}

/// An address as a number: all of IPv4, above it the first half of IPv6.
fn key(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(v4) => u64::from(v4.to_bits()),
        IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64 | 1 << 63,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_turned_away_past_the_bound_until_the_window_ends() {
        let mut failures = Failures::new(7);
        let (bad, other): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        for _ in 0..MOST {
            assert_eq!(failures.wait(bad, 1000), None);
            failures.note(bad, 1000);
        }
        assert_eq!(failures.wait(bad, 1003), Some(Duration::from_secs(7)));
        assert_eq!(failures.wait(other, 1003), None);
        assert_eq!(failures.wait(bad, 1010), None);
        assert_eq!(failures.wait(bad, 999), None, "the clock was set back");
    }

    #[test]
    fn a_crowd_of_addresses_takes_no_more_room() {
        let mut failures = Failures::new(7);
        for n in 0..100_000_u32 {
            failures.note(IpAddr::V4(n.into()), 1000);
        }
        assert_eq!(failures.places.len(), PLACES);
    }
}
