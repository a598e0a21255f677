//! How many bad credentials came of each address lately, and how many of its credentials others are being asked about:
//! past a bound, no more of them is worth the work of a proof.
//!
//! A fixed table: an address that falls on the place of another takes it, so that the worst a crowd of addresses does
//! is to be looked at again.
//! Invariant: a credential that is known to be good is taken whatever else came from its address.
//! Not here: which credentials are bad ([`super`]), codes of logins (`callout`, which counts them in such tables).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::fast_hash::finalize;

/// Places of the table.
const PLACES: usize = 1024;

/// What is borne of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailureBounds {
    /// The window, seconds.
    pub window_s: u64,
    /// Bad ones that are looked at in a window.
    pub most: u32,
    /// About which others are asked at one time.
    pub most_asked: usize,
}

impl FailureBounds {
    /// Of credentials.
    pub(crate) const CREDENTIALS: Self = Self {
        window_s: 10,
        most: 100,
        most_asked: 256,
    };
}

/// Of whom something is bad: an address (all of IPv4, the /64 of IPv6), or what else has a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whose(pub u64);

impl From<IpAddr> for Whose {
    fn from(address: IpAddr) -> Self {
        Self(match address {
            IpAddr::V4(v4) => u64::from(v4.to_bits()),
            // Above all of IPv4.
            IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64 | 1 << 63,
        })
    }
}

/// What was bad, by whose it was.
#[derive(Debug)]
pub struct Failures {
    places: Box<[Place]>,
    seed: u64,
    bounds: FailureBounds,
}

#[derive(Debug, Default)]
struct Place {
    whose: u64,
    began_unix_s: u64,
    count: u32,
    /// As many owners as questions run, and this one.
    asked: Arc<()>,
}

/// A question about one, as long as it runs.
#[derive(Debug)]
pub struct Running {
    _one: Arc<()>,
}

impl Default for Failures {
    fn default() -> Self {
        Self::new(0, FailureBounds::CREDENTIALS)
    }
}

impl Failures {
    /// None yet.
    #[must_use]
    pub fn new(seed: u64, bounds: FailureBounds) -> Self {
        Self {
            places: (0..PLACES).map(|_| Place::default()).collect(),
            seed,
            bounds,
        }
    }

    /// Another one came.
    pub fn note(&mut self, whose: impl Into<Whose>, unix_s: u64) {
        let Whose(whose) = whose.into();
        let window_s = self.bounds.window_s;
        let Some(place) = place(&mut self.places, whose, self.seed) else {
            return;
        };
        place.take(whose);
        if place.is_over(window_s, unix_s) {
            (place.began_unix_s, place.count) = (unix_s, 0);
        }
        place.count = place.count.saturating_add(1);
    }

    /// Somebody is asked about one of these.
    pub fn ask(&mut self, whose: impl Into<Whose>) -> Running {
        let Whose(whose) = whose.into();
        let one = place(&mut self.places, whose, self.seed).map(|place| {
            place.take(whose);
            Arc::clone(&place.asked)
        });
        Running {
            _one: one.unwrap_or_default(),
        }
    }

    /// How long no more of these is looked at, where too many came.
    pub fn wait(&mut self, whose: impl Into<Whose>, unix_s: u64) -> Option<Duration> {
        let Whose(whose) = whose.into();
        let bounds = self.bounds;
        let place = place(&mut self.places, whose, self.seed)?;
        if place.whose != whose {
            return None;
        }
        if Arc::strong_count(&place.asked) > bounds.most_asked {
            return Some(Duration::from_secs(1));
        }
        if place.is_over(bounds.window_s, unix_s) || place.count < bounds.most {
            return None;
        }
        let end = place.began_unix_s.saturating_add(bounds.window_s);
        Some(Duration::from_secs(end.saturating_sub(unix_s)))
    }
}

impl Place {
    /// Makes it the place of this one.
    fn take(&mut self, whose: u64) {
        if self.whose != whose {
            *self = Self {
                whose,
                ..Self::default()
            };
        }
    }

    fn is_over(&self, window_s: u64, unix_s: u64) -> bool {
        // A clock that was set back ends it, too.
        !(self.began_unix_s..self.began_unix_s.saturating_add(window_s)).contains(&unix_s)
    }
}

fn place(places: &mut [Place], whose: u64, seed: u64) -> Option<&mut Place> {
    let at = finalize(whose ^ seed) % PLACES as u64;
    places.get_mut(usize::try_from(at).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: FailureBounds = FailureBounds::CREDENTIALS;

    #[test]
    fn an_address_is_turned_away_past_the_bound_until_the_window_ends() {
        let mut failures = Failures::new(7, BOUNDS);
        let (bad, other): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        for _ in 0..BOUNDS.most {
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
        let mut failures = Failures::new(7, BOUNDS);
        let (many, other): (IpAddr, IpAddr) = ([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
        let mut running = Vec::new();
        for _ in 0..BOUNDS.most_asked {
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
        let mut failures = Failures::new(7, BOUNDS);
        for n in 0..100_000_u32 {
            failures.note(IpAddr::V4(n.into()), 1000);
        }
        assert_eq!(failures.places.len(), PLACES);
    }
}
