//! The address that browsers come back to after a login.

use std::net::IpAddr;

use crate::decode::{Problem, Written};
use crate::target::Target;

/// Where a provider sends browsers back to: `https`, or `http` of a loopback host, and a path.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RedirectUrl {
    /// As it is written, and registered.
    pub(crate) text: String,
    /// `host[:port]`.
    pub(crate) authority: String,
}

const EXAMPLE: &str = "write an address such as https://ai.example/login/callback";

impl Written for RedirectUrl {
    const PATTERN: &'static str = "^https?://[^/?#@A-Z]+/[^?#]+$";

    fn read(text: &str) -> Result<Self, Problem> {
        let target = Target::read(text)?;
        let scheme = if target.tls { "https" } else { "http" };
        let Target {
            authority,
            base_path,
            ..
        } = &target;
        if base_path.is_empty() {
            return Err(Problem::new("has no path of its own", EXAMPLE));
        }
        if matches!(&**base_path, "/login" | "/logout") || base_path.starts_with("/v1/") {
            let is = "has a path that the gate answers otherwise";
            return Err(Problem::new(is, "write another, such as /login/callback"));
        }
        if !target.tls && !is_loopback(&target.host) {
            let is = "is not https, and leads to another machine";
            return Err(Problem::new(is, "write https://"));
        }
        let canonical = format!("{scheme}://{authority}{base_path}");
        if canonical != text {
            let hint = "write the host in lower case, without the scheme's own port and without a / at the end";
            return Err(Problem::new("is not written as browsers write it", hint));
        }
        Ok(Self {
            text: canonical,
            authority: target.authority,
        })
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
