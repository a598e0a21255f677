//! Hosts that clients may name, and origins of web pages.
//!
//! Invariant: what reads is in the one form in which it is compared later: lower case, no default port.
//! Not here: addresses of backends (`target`).

use std::net::IpAddr;

use crate::decode::{Problem, Written};
use crate::target::{Target, is_host};

/// A host that a request may name: a name or an address without a port, or `*` for every host.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Host(pub(crate) String);

impl Written for Host {
    const PATTERN: &'static str = r"^(\*|[A-Za-z0-9._-]{1,253}|\[?[0-9A-Fa-f:.]+\]?)$";

    fn read(text: &str) -> Result<Self, Problem> {
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
        let host = bare.unwrap_or(text).to_ascii_lowercase();
        if host == "*" || host.parse::<IpAddr>().is_ok() || is_host(&host) {
            return Ok(Self(host));
        }
        let hint = "write a name or an address without a port, or \"*\" for every host";
        Err(Problem::new("is not a host", hint))
    }
}

/// The origin of a web page as browsers write it, or `*` for every origin.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Origin(pub(crate) String);

const EXAMPLE: &str =
    "write scheme, host and port, such as https://app.example, or \"*\" for every origin";

impl Written for Origin {
    const PATTERN: &'static str = r"^(\*|[a-z][a-z0-9+.-]*://[^/?#@A-Z]+)$";

    fn read(text: &str) -> Result<Self, Problem> {
        if text == "*" {
            return Ok(Self(text.to_owned()));
        }
        if text == "null" {
            let hint = "give the page an origin of its own";
            return Err(Problem::new("stands for no page in particular", hint));
        }
        let is_web = text.starts_with("http://") || text.starts_with("https://");
        let canonical = if is_web {
            Target::read(text)
                .ok()
                .filter(|at| at.base_path.is_empty())
                .map(|at| {
                    format!(
                        "{}://{}",
                        if at.tls { "https" } else { "http" },
                        at.authority
                    )
                })
        } else {
            of_an_app(text)
        };
        let canonical = canonical.ok_or_else(|| Problem::new("is not an origin", EXAMPLE))?;
        if canonical == text {
            return Ok(Self(canonical));
        }
        let hint = format!("write {canonical}");
        Err(Problem::new("is not written as browsers write it", hint))
    }
}

/// The origin of a web page as browsers write it, one with `*.` before a name for all below that, or `*` for every origin.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PageOrigin(pub(crate) String);

impl Written for PageOrigin {
    const PATTERN: &'static str = r"^(\*|[a-z][a-z0-9+.-]*://[^/?#@A-Z]+)$";

    fn read(text: &str) -> Result<Self, Problem> {
        let bare = text.replacen("://*.", "://", 1);
        Origin::read(&bare).map(|_| Self(text.to_owned()))
    }
}

/// The origin of a page that an application brings along, such as `tauri://localhost`.
fn of_an_app(text: &str) -> Option<String> {
    let (scheme, host) = text.split_once("://")?;
    let fine = |b: u8| b.is_ascii_alphanumeric() || b"-._~:+[]".contains(&b);
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"+.-".contains(&b);
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.bytes().all(plain);
    let is_host = (1..=253).contains(&host.len()) && host.bytes().all(fine);
    (is_scheme && is_host).then(|| text.to_ascii_lowercase())
}
