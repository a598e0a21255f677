//! Addresses of trusted proxies, and what becomes of clients' addresses.

use std::net::IpAddr;

use policy::client;
use serde_json::{Value, json};

use crate::decode::{Problem, Takes, Written};

/// An address, or a network as `10.0.0.0/8`.
#[derive(Clone, Copy)]
pub(crate) struct Network(pub(crate) client::Network);

impl Written for Network {
    const TAKES: Takes = Takes::Text;

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

    fn schema() -> Value {
        json!({ "type": "string", "pattern": "^[0-9A-Fa-f:.]+(/[0-9]{1,3})?$" })
    }
}

/// What of a client's address is recorded.
#[derive(Clone, Copy)]
pub(crate) struct Recorded(pub(crate) client::Recorded);

impl Written for Recorded {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        use client::Recorded as R;
        match text {
            "full" => Ok(Self(R::Full)),
            "shortened" => Ok(Self(R::Shortened)),
            "off" => Ok(Self(R::Off)),
            _ => Err(Problem::new(
                "is not a way to record addresses",
                "write full, shortened or off",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["full", "shortened", "off"] })
    }
}

/// Whether trusted proxies begin a connection with a PROXY protocol header.
#[derive(Clone, Copy)]
pub(crate) struct ProxyProtocol(pub(crate) bool);

impl Written for ProxyProtocol {
    const TAKES: Takes = Takes::Text;

    fn read(text: &str) -> Result<Self, Problem> {
        match text {
            "off" => Ok(Self(false)),
            "required" => Ok(Self(true)),
            _ => Err(Problem::new(
                "is not a use of the PROXY protocol",
                "write off or required",
            )),
        }
    }

    fn schema() -> Value {
        json!({ "enum": ["off", "required"] })
    }
}
