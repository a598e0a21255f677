//! Which addresses may be connected to.
//!
//! Invariant: no metadata service, no neighbour of the link, no group and no placeholder, in whatever form the address
//! is written, unless the service that is asked stands there by its setting. Loopback and private addresses are where
//! providers of identity live, and are let through.
//! Not here: names (whoever connects looks them up, and connects to what was checked here).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Where AWS serves metadata over IPv6.
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// Where Google Cloud does.
const METADATA_V6_OF_GOOGLE: Ipv6Addr = Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254);

/// Where clouds serve metadata over IPv4 at addresses that are not of the link: Azure, Alibaba, Oracle.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// Whether an address may be connected to.
#[must_use]
pub fn is_allowed(address: IpAddr, allow_link_local: bool) -> bool {
    match plain(address) {
        IpAddr::V4(v4) => {
            let is_place = v4.octets()[0] != 0 && !v4.is_multicast() && v4 != Ipv4Addr::BROADCAST;
            let is_near = v4.is_link_local() || METADATA_V4.contains(&v4);
            is_place && (allow_link_local || !is_near)
        }
        IpAddr::V6(v6) => {
            let is_metadata = [METADATA_V6, METADATA_V6_OF_GOOGLE].contains(&v6);
            let is_near = v6.is_unicast_link_local() || is_metadata;
            !v6.is_unspecified() && !v6.is_multicast() && (allow_link_local || !is_near)
        }
    }
}

/// Whether an address is the machine itself, in whatever form it is written.
#[must_use]
pub fn is_of_machine(address: IpAddr) -> bool {
    plain(address).is_loopback()
}

/// The IPv4 address that an IPv6 address stands for: mapped, compatible (`::a.b.c.d`), of NAT64 or of 6to4.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else {
        return address;
    };
    let [.., a, b, c, d] = v6.octets();
    let last = Ipv4Addr::new(a, b, c, d);
    match v6.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => address,
        [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _] => last.into(),
        [0x2002, high, low, ..] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Ipv4Addr::new(a, b, c, d).into()
        }
        _ => address,
    }
}

#[cfg(test)]
mod tests;
