//! Which address of a name a call goes to, and which addresses the name has no longer.
//!
//! Invariant: calls go to addresses of the last answer alone, in turn where it has several; a connection to
//! another one is closed once answers have lacked its address for [`GONE_AFTER`], so that names whose answers
//! show a few of many addresses in turn keep their connections.
//! Not here: asking (`names`), connections (`pool`).

use std::cell::{Cell, RefCell};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::time::Instant;

/// For how long answers may lack an address before connections to it are closed.
const GONE_AFTER: Duration = Duration::from_secs(10);
/// For how long no turn is given to an address that did not take a connection at once.
const AVOID_FOR: Duration = Duration::from_secs(5);
/// Addresses that are remembered.
const MOST: usize = 256;

/// What one worker knows of the addresses of one name.
#[derive(Default)]
pub(super) struct Spread {
    /// Those of the last answer.
    latest: RefCell<Vec<IpAddr>>,
    /// Of them those that take turns: the family that the system would take first.
    turns: RefCell<Vec<IpAddr>>,
    next: Cell<usize>,
    /// When each was last found.
    found: RefCell<Vec<(IpAddr, Instant)>>,
    avoided: RefCell<Vec<(IpAddr, Instant)>>,
    /// The name has or had another address beside the first.
    is_needed: Cell<bool>,
}

impl Spread {
    /// The name has these addresses now.
    pub(super) fn apply(&self, host: &str, addresses: &[SocketAddr], now: Instant) {
        let latest: Vec<IpAddr> = addresses.iter().map(SocketAddr::ip).collect();
        let mut found = self.found.borrow_mut();
        let had = self.latest.replace(latest.clone());
        let (new, left) = (lacking(&latest, &had), lacking(&had, &latest));
        if !had.is_empty() && !left.is_empty() {
            tracing::info!(
                host,
                ?new,
                ?left,
                "the addresses of an upstream's name have changed"
            );
        }
        found.retain(|(ip, at)| !latest.contains(ip) && !is_gone(*at, now));
        found.truncate(MOST.saturating_sub(latest.len()));
        found.extend(latest.iter().map(|ip| (*ip, now)));
        let is_v6 = latest.first().is_some_and(IpAddr::is_ipv6);
        let turns: Vec<IpAddr> = latest
            .into_iter()
            .filter(|ip| ip.is_ipv6() == is_v6)
            .collect();
        if self.turns.borrow().is_empty() {
            // Workers begin at different addresses.
            self.next.set(seed(turns.len()));
        }
        if turns.len() > 1 || !left.is_empty() {
            self.is_needed.set(true);
        }
        *self.turns.borrow_mut() = turns;
    }

    /// Whether the name has had one address only, so that nothing has to be asked.
    #[inline]
    pub(super) fn is_one(&self) -> bool {
        !self.is_needed.get()
    }

    /// The address to which the next call goes, where there is a choice.
    #[inline]
    pub(super) fn turn(&self, now: impl FnOnce() -> Instant) -> Option<IpAddr> {
        if self.is_one() {
            return None;
        }
        self.take_turn(now())
    }

    #[cold]
    fn take_turn(&self, now: Instant) -> Option<IpAddr> {
        let turns = self.turns.borrow();
        if turns.len() < 2 {
            return None;
        }
        let mut avoided = self.avoided.borrow_mut();
        avoided.retain(|(_, until)| *until > now);
        let is_avoided = |ip: &IpAddr| avoided.iter().any(|(avoided, _)| avoided == ip);
        let first = self.next.get();
        let mut order = (0..turns.len()).map(|step| first.wrapping_add(step));
        let (at, ip) = order.find_map(|at| {
            let ip = turns.get(at % turns.len())?;
            (!is_avoided(ip)).then_some((at, *ip))
        })?;
        self.next.set(at.wrapping_add(1) % turns.len());
        Some(ip)
    }

    /// Gives no turn to an address for a moment.
    pub(super) fn avoid(&self, ip: IpAddr, now: Instant) {
        let mut avoided = self.avoided.borrow_mut();
        avoided.retain(|(known, until)| *known != ip && *until > now);
        avoided.push((ip, now + AVOID_FOR));
    }

    /// Whether a call may go to a connection to this address.
    pub(super) fn may_use(&self, ip: IpAddr) -> bool {
        self.is_one() || self.latest.borrow().contains(&ip)
    }

    /// Whether a connection to this address is kept.
    pub(super) fn may_keep(&self, ip: IpAddr) -> bool {
        self.is_one() || self.found.borrow().iter().any(|(known, _)| *known == ip)
    }
}

fn is_gone(found: Instant, now: Instant) -> bool {
    now.saturating_duration_since(found) >= GONE_AFTER
}

/// What the first have that the second lack.
fn lacking(of: &[IpAddr], than: &[IpAddr]) -> Vec<IpAddr> {
    of.iter().filter(|ip| !than.contains(ip)).copied().collect()
}

/// A number below `many`, another one in each worker.
fn seed(many: usize) -> usize {
    use std::hash::{BuildHasher as _, RandomState};
    let drawn = RandomState::new().hash_one(0_u8);
    usize::try_from(drawn % many.max(1) as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests;
