//! Networks as rules write them: `10.0.0.0/8`, `2001:db8::/32`, or one address.

use std::net::IpAddr;

use policy::client::Network;

/// Reads one; what is wrong with it otherwise.
pub(super) fn read(written: &str) -> Result<Network, String> {
    let (address, bits) = match written.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (written, None),
    };
    let wrong = || format!("{written} is no network; write 10.0.0.0/8 or 2001:db8::/32");
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    if address.to_canonical() != address {
        return Err(format!(
            "{written} is an IPv4 address in IPv6's clothes; write it as IPv4"
        ));
    }
    let most = if address.is_ipv4() { 32 } else { 128 };
    let bits = match bits {
        Some(bits) if is_plain(bits) => bits.parse().map_err(|_| wrong())?,
        Some(_) => return Err(wrong()),
        None => most,
    };
    let network = Network::new(address, bits).ok_or_else(wrong)?;
    if !is_first(address, bits) {
        return Err(format!(
            "{written} has bits set behind its length; write the network's first address"
        ));
    }
    Ok(network)
}

/// Digits without a sign or a zero in front.
fn is_plain(bits: &str) -> bool {
    bits.bytes().all(|byte| byte.is_ascii_digit()) && (bits == "0" || !bits.starts_with('0'))
}

/// Whether an address has no bit set behind a length.
fn is_first(address: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(v4) => v4.to_bits().checked_shl(bits).unwrap_or(0) == 0,
        IpAddr::V6(v6) => v6.to_bits().checked_shl(bits).unwrap_or(0) == 0,
    }
}
