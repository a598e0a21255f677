//! The address of a backend: `http(s)://host[:port][/base]`.
//!
//! The path is the API root, what stands in place of the client's `/v1`, as in the SDKs'
//! `base_url`. Invariant: no userinfo, query or fragment, no dot segment, nothing to normalise.
//! Not here: resolving and connecting.

use crate::decode::{Problem, Written};

/// A parsed address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) tls: bool,
    /// Lower case, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `host[:port]`, the port left out where it is the scheme's own.
    pub(crate) authority: String,
    /// Empty, or begins with `/` and does not end with one.
    pub(crate) base_path: String,
}

impl Written for Target {
    const IS_ADDRESS: bool = true;
    const PATTERN: &'static str = "^https?://[^/?#@]+(/[^?#]*)?$";

    fn read(text: &str) -> Result<Self, Problem> {
        Self::read_like(text, EXAMPLE)
    }
}

/// The address of a collector of spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collector(pub(crate) Target);

impl Written for Collector {
    const IS_ADDRESS: bool = true;
    const PATTERN: &'static str = Target::PATTERN;

    fn read(text: &str) -> Result<Self, Problem> {
        let example =
            "write an address such as http://127.0.0.1:4318 (http) or http://127.0.0.1:4317 (grpc)";
        Target::read_like(text, example).map(Self)
    }
}

impl Target {
    /// Reads one; `example` is what a fault says is right.
    fn read_like(text: &str, example: &'static str) -> Result<Self, Problem> {
        let (tls, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => {
                return Err(Problem {
                    // Something unknown may hold a password before its `@`.
                    quotable: !text.contains('@'),
                    ..Problem::new("is not an http:// or https:// address", example)
                });
            }
        };
        let (authority, path) = match rest.find('/') {
            Some(slash) => rest.split_at_checked(slash).unwrap_or((rest, "")),
            None => (rest, ""),
        };
        if authority.contains('@') {
            let hint = "put the secret under `credential`";
            return Err(Problem::unquoted("holds a user name or a password", hint));
        }
        if let Some(mark) = rest.chars().find(|c| matches!(c, '?' | '#')) {
            let hint = "write scheme, host, port and path only";
            return Err(Problem::unquoted(format!("holds a `{mark}`"), hint));
        }
        let (host, port) = host_and_port(authority, tls, example)?;
        let base_path = base_path(path)?;
        let bracketed = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.clone()
        };
        let own_port = if tls { 443 } else { 80 };
        let authority = if port == own_port {
            bracketed
        } else {
            format!("{bracketed}:{port}")
        };
        Ok(Self {
            tls,
            host,
            port,
            authority,
            base_path,
        })
    }
}

const EXAMPLE: &str = "write an address such as http://127.0.0.1:8000/v1";

fn host_and_port(authority: &str, tls: bool, example: &str) -> Result<(String, u16), Problem> {
    let bad_host = || Problem::new("has no valid host", example);
    let (host, port) = if let Some(inside) = authority.strip_prefix('[') {
        let (host, after) = inside.split_once(']').ok_or_else(bad_host)?;
        host.parse::<std::net::Ipv6Addr>().map_err(|_| bad_host())?;
        let port = match after {
            "" => None,
            after => Some(after.strip_prefix(':').ok_or_else(bad_host)?),
        };
        (host, port)
    } else {
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        };
        if !is_host(host) {
            return Err(bad_host());
        }
        (host, port)
    };
    let port = match port {
        None if tls => 443,
        None => 80,
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => match port.parse::<u16>() {
            Ok(port) if port > 0 => port,
            _ => {
                return Err(Problem::new(
                    "has no valid port",
                    "write 1 to 65535 after the `:`",
                ));
            }
        },
        Some(_) => {
            return Err(Problem::new(
                "has no valid port",
                "write digits after the `:`",
            ));
        }
    };
    Ok((host.to_ascii_lowercase(), port))
}

/// A DNS name or an IPv4 literal. A name that looks like a number but is not an IPv4 literal is
/// refused: resolvers disagree about `127.1` and `0x7f.1`.
pub(crate) fn is_host(host: &str) -> bool {
    let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    let labels_fine = host.split('.').all(|label| {
        (1..=63).contains(&label.len())
            && label.bytes().all(fine)
            && !label.starts_with('-')
            && !label.ends_with('-')
    });
    let last = host.rsplit('.').next().unwrap_or_default();
    let numeric = last.bytes().next().is_some_and(|b| b.is_ascii_digit())
        && (last.bytes().all(|b| b.is_ascii_digit()) || last.starts_with("0x"));
    labels_fine && host.len() <= 253 && (!numeric || host.parse::<std::net::Ipv4Addr>().is_ok())
}

fn base_path(path: &str) -> Result<String, Problem> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&b);
    let segments_fine = path.split('/').skip(1).all(|segment| {
        !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(fine)
    });
    if path.contains("//") {
        let hint = "take one of them out; a variable that is an address may end in one";
        return Err(Problem::new("has two slashes together in its path", hint));
    }
    if !segments_fine || path.len() > 1024 {
        let hint = "write plain segments, such as /v1 or /v1beta/openai";
        return Err(Problem::new("has a path that is not plain", hint));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests;
