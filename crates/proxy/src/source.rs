//! Where connections come from, and how many may come from one place.
//!
//! Invariant: the table has an entry for each address with an open connection and no other, so that the bound of
//! connections is its bound too.
//! Not here: accepting and refusing (`worker`).

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// One who opens connections: an address, of IPv6 the network of 64 bits that one host may have whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Source {
    V4(Ipv4Addr),
    /// The first half of the address.
    V6(u64),
}

impl Source {
    /// Where this address belongs.
    pub(crate) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                let word = |high: u16, low: u16| u64::from(high) << 16 | u64::from(low);
                Self::V6(word(a, b) << 32 | word(c, d))
            }
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V4(address) => write!(f, "{address}"),
            Self::V6(network) => {
                let address = Ipv6Addr::from(u128::from(*network) << 64);
                write!(f, "{address}/64")
            }
        }
    }
}

/// A bound that was reached, until half of it is free again.
#[derive(Debug, Default)]
pub(crate) struct Full {
    /// The bound, while it counts as reached.
    at: Option<usize>,
    refused: u64,
}

impl Full {
    /// Counts a refusal. Whether it is the first one.
    pub(crate) fn refuse(&mut self, bound: usize) -> bool {
        self.refused += 1;
        self.at.replace(bound).is_none()
    }

    /// Only so many are left: how many were refused, if the bound counts as reached no more.
    pub(crate) fn eased(&mut self, open: usize) -> Option<u64> {
        let bound = self.at?;
        if open > bound / 2 {
            return None;
        }
        self.at = None;
        Some(std::mem::take(&mut self.refused))
    }
}

/// The connections of one worker by their source.
#[derive(Debug, Default)]
pub(crate) struct Sources(HashMap<Source, Entry>);

#[derive(Debug, Default)]
struct Entry {
    open: usize,
    full: Full,
}

/// What becomes of a connection that one more would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entered {
    /// It is counted in.
    Within,
    /// It is not; whether it is the first one refused.
    Beyond { is_first: bool },
}

impl Sources {
    /// One more from there, if there are fewer than `bound`.
    pub(crate) fn enter(&mut self, source: Source, bound: usize) -> Entered {
        let entry = self.0.entry(source).or_default();
        if entry.open >= bound.max(1) {
            let is_first = entry.full.refuse(bound);
            return Entered::Beyond { is_first };
        }
        entry.open += 1;
        Entered::Within
    }

    /// One of them ended. How many were refused, if there is room for more again.
    pub(crate) fn leave(&mut self, source: Source) -> Option<u64> {
        let entry = self.0.get_mut(&source)?;
        entry.open = entry.open.saturating_sub(1);
        let refused = entry.full.eased(entry.open);
        if entry.open == 0 {
            self.0.remove(&source);
        }
        refused
    }
}

#[cfg(test)]
mod tests;
