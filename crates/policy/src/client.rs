//! Where a request comes from: the address of the client behind proxies that are trusted.
//!
//! Invariant: a word of somebody who is not trusted counts for nothing: `x-forwarded-for` is read from its
//! right end, as far as trusted proxies wrote it, and the first address that is not one of theirs is the
//! client's.
//! Not here: the PROXY protocol's bytes (`wire`), who speaks it (`proxy`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::head::{Known, RequestHead};

/// Most proxies in a row that are looked behind.
const HOPS: usize = 32;
/// What is kept of a shortened address: a network of about the size that a household or an office has.
const SHORT_V4_BITS: u8 = 24;
const SHORT_V6_BITS: u8 = 48;

/// How clients are known by address.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clients {
    /// What of an address is recorded.
    pub recorded: Recorded,
    /// Proxies whose word about the client counts.
    pub proxies: Vec<Network>,
    /// Whether they begin a connection with a PROXY protocol header.
    pub proxy_protocol: bool,
}

/// What of an address is recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Recorded {
    /// All of it.
    #[default]
    Full,
    /// Its /24, or its /48.
    Shortened,
    /// Nothing.
    Off,
}

/// The addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// The network of an address; `None` when it has no so many bits.
    #[must_use]
    pub fn new(address: IpAddr, bits: u8) -> Option<Self> {
        let most = if address.is_ipv4() { 32 } else { 128 };
        (bits <= most).then(|| Self {
            address: masked(address, bits),
            bits,
        })
    }

    /// Whether an address is in it.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && masked(address, self.bits) == self.address
    }
}

/// The address with all but its first bits at zero.
fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32)));
            IpAddr::V4(Ipv4Addr::from_bits(v4.to_bits() & mask.unwrap_or(0)))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128)));
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & mask.unwrap_or(0)))
        }
    }
}

impl Clients {
    /// Whether the word of this peer about the client counts.
    #[must_use]
    pub fn trusts(&self, peer: IpAddr) -> bool {
        self.proxies.iter().any(|network| network.contains(peer))
    }

    /// The client's address, as far as it can be known.
    #[must_use]
    pub fn address(&self, peer: IpAddr, head: &RequestHead) -> IpAddr {
        if self.proxies.is_empty() || !self.trusts(peer) {
            return peer;
        }
        let mut nearest = peer;
        let lists: Vec<&[u8]> = head.fields.of(Known::XForwardedFor).collect();
        let hops = lists
            .iter()
            .rev()
            .flat_map(|list| list.rsplit(|b| *b == b','));
        for hop in hops.take(HOPS) {
            let Some(address) = hop_address(hop) else {
                return nearest;
            };
            nearest = address;
            if !self.trusts(address) {
                return nearest;
            }
        }
        nearest
    }

    /// What of the client's address is recorded.
    #[must_use]
    pub fn recorded(&self, peer: IpAddr, head: &RequestHead) -> Option<IpAddr> {
        self.kept(|| self.address(peer, head))
    }

    /// What of an address is recorded.
    pub(crate) fn kept(&self, address: impl FnOnce() -> IpAddr) -> Option<IpAddr> {
        match self.recorded {
            Recorded::Full => Some(address()),
            Recorded::Shortened => Some(shortened(address())),
            Recorded::Off => None,
        }
    }
}

fn shortened(address: IpAddr) -> IpAddr {
    let bits = if address.is_ipv4() {
        SHORT_V4_BITS
    } else {
        SHORT_V6_BITS
    };
    masked(address, bits)
}

/// An item of `x-forwarded-for`: an address, which some proxies write with a port.
fn hop_address(hop: &[u8]) -> Option<IpAddr> {
    let hop = std::str::from_utf8(hop.trim_ascii()).ok()?;
    let bare = hop
        .strip_prefix('[')
        .and_then(|rest| Some(rest.split_once(']')?.0));
    let address = bare.unwrap_or(hop).parse().ok().or_else(|| {
        let (address, port) = hop.split_once(':')?;
        let is_port = !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit());
        let address: Option<Ipv4Addr> = address.parse().ok().filter(|_| is_port);
        address.map(IpAddr::V4)
    });
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests;
