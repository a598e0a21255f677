//! The proxy on the way to each endpoint: what the document says, else what the environment says.
//!
//! The variables are those that most programs take: `https_proxy` for https, `http_proxy` for http, `no_proxy` for
//! what goes straight, each in capitals too. Loopback always goes straight, unless the document says otherwise.
//! Invariant: no message shows what a variable holds, which may be a password.

use std::net::IpAddr;
use std::sync::Arc;

use policy::secret::Secret;
use policy::snapshot::Proxy;

use crate::decode::{At, Field, Place, Written};
use crate::schema::ProxyAt;
use crate::schema::proxy;
use crate::target::Target;

/// How the endpoints of a backend are reached.
pub(super) enum Way {
    /// As the environment says.
    Environment,
    /// As the document says.
    Written(Option<Arc<Proxy>>),
}

impl super::Lowering<'_> {
    /// What the document says of a backend's proxy.
    pub(super) fn way(&mut self, written: &Field<proxy::Proxy>) -> Way {
        let (target, place, authorization) = match written.get() {
            None if written.is_absent() => return Way::Environment,
            None => return Way::Written(None),
            Some(proxy::Proxy::Short(at)) => match &at.value.0 {
                None => return Way::Written(None),
                Some(target) => (target, &at.place, None),
            },
            Some(proxy::Proxy::Full(full)) => {
                let authorization = self.authorization(full);
                match full.url.get() {
                    None => return Way::Written(None),
                    Some(at) => (&at.value, &at.place, authorization),
                }
            }
        };
        let wrong = if target.tls {
            Some("a proxy is spoken to in clear; TLS to the upstream goes through it")
        } else if target.base_path.is_empty() {
            None
        } else {
            Some("a proxy's address has no path")
        };
        if let Some(says) = wrong {
            let place = place.clone();
            self.fault(&place, says, "write http://host:port");
        }
        Way::Written(Some(Arc::new(Proxy {
            host: target.host.clone(),
            port: target.port,
            authorization,
        })))
    }

    fn authorization(&mut self, written: &ProxyAt) -> Option<Secret> {
        let credential = written.credential.get()?;
        let url = written.url.get().map(|at| &at.place);
        let place = Place {
            path: url.map_or(String::new(), |url| {
                format!("{}.credential", url.path.trim_end_matches(".url"))
            }),
            line: url.map_or(0, |url| url.line),
        };
        let (secret, at) = self.secret(
            &credential.file,
            &credential.env,
            &credential.inline,
            &place,
            "file, env and inline",
        )?;
        if !secret.expose().contains(&b':') {
            let says = "the proxy's credential holds no `:`";
            self.fault(&at, says, "write user:password");
        }
        Some(basic(secret.expose()))
    }

    /// The proxy that the environment names for an endpoint.
    pub(super) fn environment_proxy(&mut self, at: &At<Target>) -> Option<Arc<Proxy>> {
        let target = &at.value;
        let names = if target.tls {
            ["https_proxy", "HTTPS_PROXY"]
        } else {
            ["http_proxy", "HTTP_PROXY"]
        };
        let value = |names: [&'static str; 2]| {
            names.into_iter().find_map(|name| {
                let value = self.sources.var(name)?;
                (!value.trim().is_empty()).then_some((name, value))
            })
        };
        let (name, written) = value(names)?;
        let exempt = value(["no_proxy", "NO_PROXY"]).map(|(_, list)| list);
        if goes_straight(exempt.as_deref().unwrap_or_default(), target) {
            return None;
        }
        let proxy = from_variable(written.trim());
        if proxy.is_none() {
            self.fault(
                &at.place,
                format!("the variable {name} holds no http:// proxy"),
                "set it to http://host:port, or write proxy: none",
            );
        }
        proxy.map(Arc::new)
    }
}

/// `[http://][user:password@]host:port[/]`.
fn from_variable(text: &str) -> Option<Proxy> {
    let rest = match text.split_once("://") {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest,
        Some(_) => return None,
        None => text,
    };
    let rest = rest.trim_end_matches('/');
    let (user, authority) = match rest.rsplit_once('@') {
        Some((user, authority)) => (Some(user), authority),
        None => (None, rest),
    };
    let target = Target::read(&format!("http://{authority}")).ok()?;
    target.base_path.is_empty().then(|| Proxy {
        host: target.host,
        port: target.port,
        authorization: user.map(|user| basic(&unescaped(user))),
    })
}

/// Whether a list of exceptions names a target, or it is on this machine.
fn goes_straight(exempt: &str, target: &Target) -> bool {
    let host = target.host.as_str();
    let ip = host.parse::<IpAddr>().ok();
    if host == "localhost" || host.ends_with(".localhost") || ip.is_some_and(|ip| ip.is_loopback())
    {
        return true;
    }
    let mut entries = exempt.split([',', ' ']).filter(|entry| !entry.is_empty());
    entries.any(|entry| {
        let entry = entry.to_ascii_lowercase();
        if entry == "*" {
            return true;
        }
        if let Some((network, bits)) = entry.split_once('/') {
            let network = network.parse::<IpAddr>().ok().zip(bits.parse().ok());
            return ip
                .zip(network)
                .is_some_and(|(ip, (network, bits))| is_within(ip, network, bits));
        }
        let name = match entry.rsplit_once(':') {
            Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
                if port.parse() != Ok(target.port) {
                    return false;
                }
                name
            }
            _ => entry.as_str(),
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        if let (Some(ip), Ok(named)) = (ip, name.parse::<IpAddr>()) {
            return ip == named;
        }
        let name = name.trim_start_matches('*').trim_start_matches('.');
        let before = host.strip_suffix(name);
        !name.is_empty() && before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// Whether an address lies in a network.
fn is_within(ip: IpAddr, network: IpAddr, bits: u32) -> bool {
    let (ip, network, width) = match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            (u128::from(ip.to_bits()), u128::from(network.to_bits()), 32)
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => (ip.to_bits(), network.to_bits(), 128),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
    };
    let rest = u32::checked_sub(width, bits);
    rest.is_some_and(|rest| {
        ip.checked_shr(rest).unwrap_or(0) == network.checked_shr(rest).unwrap_or(0)
    })
}

/// `%40` as `@`, and its kin.
fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = text.bytes();
    let mut out = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        let mut after = bytes.clone();
        let mut digit = || char::from(after.next()?).to_digit(16);
        let escaped = match byte {
            b'%' => digit().zip(digit()),
            _ => None,
        };
        match escaped.and_then(|(high, low)| u8::try_from(high << 4 | low).ok()) {
            Some(escaped) => {
                out.push(escaped);
                bytes = after;
            }
            None => out.push(byte),
        }
    }
    out
}

/// Value of `proxy-authorization` for `user:password` (RFC 7617).
fn basic(pair: &[u8]) -> Secret {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut value = b"Basic ".to_vec();
    for three in pair.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = usize::try_from(bits >> (18 - 6 * at) & 63).unwrap_or(0);
            let is_padding = at > u32::try_from(three.len()).unwrap_or(3);
            value.push(if is_padding { b'=' } else { DIGITS[digit] });
        }
    }
    Secret::new(value)
}

#[cfg(test)]
mod tests;
