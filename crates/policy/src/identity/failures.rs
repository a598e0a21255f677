//! How many bad credentials came of each address lately, and how many of its credentials others are being asked about:
//! past a bound, no more of them is worth the work of a proof.
//!
//! A fixed table: an address that falls on the place of another takes it, so that the worst a crowd of addresses does
//! is to be looked at again.
//! Invariant: a credential that is known to be good is taken whatever else came from its address.
//! Not here: which credentials are bad ([`super`]).

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::fast_hash::finalize;

/// Places of the table.
const PLACES: usize = 1024;
/// The window, seconds.
const WINDOW_S: u64 = 10;
/// Bad credentials of one address that are looked at in a window.
const MOST: u32 = 100;
/// Credentials of one address about which others are asked at one time.
const MOST_ASKED: usize = 256;

/// Bad credentials by address: that of IPv4, the /64 of IPv6.
#[derive(Debug)]
pub(crate) struct Failures {
    places: Box<[Place]>,
    seed: u64,
}

#[derive(Debug, Default)]
struct Place {
    address: u64,
    began_unix_s: u64,
    count: u32,
    /// As many owners as questions run, and this one.
    asked: Rc<()>,
}

/// A question about a credential of an address, as long as it runs.
#[derive(Debug)]
pub(crate) struct Running {
    _one: Rc<()>,
}

impl Default for Failures {
    fn default() -> Self {
        Self::new(0)
    }
}

impl Failures {
    /// None yet.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            places: (0..PLACES).map(|_| Place::default()).collect(),
            seed,
        }
    }

    /// Another one came.
    pub(crate) fn note(&mut self, address: IpAddr, unix_s: u64) {
        let (address, seed) = (key(address), self.seed);
        let Some(place) = place(&mut self.places, address, seed) else {
            return;
        };
        place.take(address);
        if is_over(place, unix_s) {
            (place.began_unix_s, place.count) = (unix_s, 0);
        }
        place.count += 1;
    }

    /// Somebody is asked about a credential of this address.
    pub(crate) fn ask(&mut self, address: IpAddr) -> Running {
        let (address, seed) = (key(address), self.seed);
        let one = place(&mut self.places, address, seed).map(|place| {
            place.take(address);
            Rc::clone(&place.asked)
        });
        Running {
            _one: one.unwrap_or_default(),
        }
    }

    /// How long no more of this address is looked at, where too many came.
    pub(crate) fn wait(&mut self, address: IpAddr, unix_s: u64) -> Option<Duration> {
        let (address, seed) = (key(address), self.seed);
        let place = place(&mut self.places, address, seed)?;
        if place.address != address {
            return None;
        }
        if Rc::strong_count(&place.asked) > MOST_ASKED {
            return Some(Duration::from_secs(1));
        }
        if is_over(place, unix_s) || place.count < MOST {
            return None;
        }
        let end = place.began_unix_s.saturating_add(WINDOW_S);
        Some(Duration::from_secs(end.saturating_sub(unix_s)))
    }
}

impl Place {
    /// Makes it the place of this address.
    fn take(&mut self, address: u64) {
        if self.address != address {
            *self = Self {
                address,
                ..Self::default()
            };
        }
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
    fn an_address_is_turned_away_while_too_many_of_its_questions_run() {
        let mut failures = Failures::new(7);
        let (many, other): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let mut running = Vec::new();
        for _ in 0..MOST_ASKED {
            assert_eq!(failures.wait(many, 1000), None);
            running.push(failures.ask(many));
        }
        assert_eq!(failures.wait(many, 1000), Some(Duration::from_secs(1)));
        assert_eq!(failures.wait(other, 1000), None);
        running.pop();
        assert_eq!(failures.wait(many, 1000), None);
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
