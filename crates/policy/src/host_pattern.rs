//! Hosts that calls are told apart by.
//!
//! Not here: which hosts a gate answers for at all ([`crate::web`]).

use std::fmt;

use crate::web::without_port;

/// Which hosts a rule is for, in lower case and without a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// This one.
    Exact(Box<str>),
    /// Each name below this domain, which is written with a leading `*.`.
    Below(Box<str>),
}

impl HostPattern {
    /// Whether it takes the host that a request names, with or without a port.
    #[must_use]
    pub fn takes(&self, host: &[u8]) -> bool {
        let Some(host) = without_port(host) else {
            return false;
        };
        match self {
            Self::Exact(name) => host.eq_ignore_ascii_case(name.as_bytes()),
            Self::Below(domain) => {
                let own = host.len().checked_sub(domain.len() + 1);
                let split = own.and_then(|own| host.split_at_checked(own));
                split.is_some_and(|(own, rest)| {
                    let below = rest.strip_prefix(b".");
                    !own.is_empty()
                        && below.is_some_and(|below| below.eq_ignore_ascii_case(domain.as_bytes()))
                })
            }
        }
    }

    /// How far it is preferred to others: by how much it says.
    #[must_use]
    pub fn rank(&self) -> (u8, usize) {
        match self {
            Self::Exact(name) => (2, name.len()),
            Self::Below(domain) => (1, domain.len()),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Below(domain) => write!(f, "*.{domain}"),
        }
    }
}
