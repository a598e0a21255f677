//! Addresses to listen at, and those of trusted proxies.

use std::net::{IpAddr, SocketAddr};

use policy::client;

use crate::decode::{Problem, Written};

/// Where to listen.
#[derive(Clone, Copy)]
pub(crate) struct Address(pub(crate) SocketAddr);

impl Written for Address {
    fn read(text: &str) -> Result<Self, Problem> {
        text.parse().map(Self).map_err(|_| {
            let hint = "write 127.0.0.1:1975, 0.0.0.0:1975 or \"[::]:1975\"";
            Problem::new("is not an IP address and port", hint)
        })
    }
}

/// An address, or a network as `10.0.0.0/8`.
#[derive(Clone, Copy)]
pub(crate) struct Network(pub(crate) client::Network);

impl Written for Network {
    const PATTERN: &'static str = "^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$";

    fn read(text: &str) -> Result<Self, Problem> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let network = address.parse().ok().and_then(|address: IpAddr| {
            let whole = if address.is_ipv4() { 32 } else { 128 };
            let digits = |bits: &&str| bits.len() <= 3 && bits.bytes().all(|b| b.is_ascii_digit());
            let bits = match bits {
                Some(bits) => Some(bits).filter(digits)?.parse().ok()?,
                None => whole,
            };
            client::Network::new(address, bits)
        });
        let hint = "write an address or a network such as 10.0.0.0/8 or \"fd00::/8\"";
        let is = "is not an address or a network";
        network.map(Self).ok_or_else(|| Problem::new(is, hint))
    }
}
