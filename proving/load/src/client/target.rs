//! Where requests go: a URL whose name was resolved once.
//!
//! Invariant: a target has at least one address; names are asked for when it is made, and never during a run.
//! Not here: connecting (`io`).

use std::fmt;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

use http::Uri;
use rustls_pki_types::ServerName;

/// One base URL.
#[derive(Debug, Clone)]
pub struct Target {
    /// What the host header says.
    authority: Box<str>,
    /// Stands before the path of every request; without a slash at its end.
    prefix: Box<str>,
    /// Whom a certificate must name, where TLS is spoken.
    server_name: Option<ServerName<'static>>,
    addresses: Vec<SocketAddr>,
}

/// What is no target.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// Not a URL of the form that is asked for.
    #[error("`{url}` is no target: {says}; write http://HOST[:PORT][/PATH] or https://…")]
    Url {
        /// As given, without what may stand before an @.
        url: String,
        /// What is wrong with it.
        says: &'static str,
    },
    /// Its name has no address.
    #[error("{host}: no address: {source}")]
    Name {
        /// Which name.
        host: String,
        /// Why.
        source: io::Error,
    },
}

impl Target {
    /// Reads a URL, and resolves its name.
    ///
    /// # Errors
    /// It is no such URL, or its name has no address.
    pub fn parse(url: &str) -> Result<Self, TargetError> {
        let fault = |says| TargetError::Url {
            url: url
                .rsplit_once('@')
                .map_or(url, |(_, rest)| rest)
                .to_owned(),
            says,
        };
        let uri: Uri = url.parse().map_err(|_| fault("it does not parse"))?;
        let (is_tls, default_port) = match uri.scheme_str() {
            Some("http") => (false, 80),
            Some("https") => (true, 443),
            _ => return Err(fault("its scheme is neither http nor https")),
        };
        let authority = uri.authority().ok_or_else(|| fault("it has no host"))?;
        if authority.as_str().contains('@') {
            return Err(fault("credentials do not belong in a URL"));
        }
        if uri.query().is_some() {
            return Err(fault("a query does not belong to a target"));
        }
        let host = authority.host().trim_matches(['[', ']']);
        let has_port = authority.as_str().len() > authority.host().len();
        let port = match authority.port_u16() {
            None if has_port => return Err(fault("its port is none from 1 to 65535")),
            Some(0) => return Err(fault("its port is none from 1 to 65535")),
            port => port.unwrap_or(default_port),
        };
        if host.is_empty() {
            return Err(fault("it has no host"));
        }
        let name = |source| TargetError::Name {
            host: host.to_owned(),
            source,
        };
        let addresses: Vec<_> = (host, port).to_socket_addrs().map_err(name)?.collect();
        if addresses.is_empty() {
            return Err(name(io::ErrorKind::NotFound.into()));
        }
        let server_name = match is_tls {
            true => Some(
                ServerName::try_from(host.to_owned())
                    .map_err(|_| fault("no certificate can name its host"))?,
            ),
            false => None,
        };
        Ok(Self {
            authority: authority.as_str().into(),
            prefix: uri.path().trim_end_matches('/').into(),
            server_name,
            addresses,
        })
    }

    /// What the host header says.
    #[must_use]
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// What stands before the path of every request.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether TLS is spoken.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        self.server_name.is_some()
    }

    pub(super) const fn server_name(&self) -> Option<&ServerName<'static>> {
        self.server_name.as_ref()
    }

    /// Where it is, tried in order.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

impl From<SocketAddr> for Target {
    fn from(address: SocketAddr) -> Self {
        Self {
            authority: address.to_string().into(),
            prefix: "".into(),
            server_name: None,
            addresses: vec![address],
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_tls() { "https" } else { "http" };
        write!(out, "{scheme}://{}{}", self.authority, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    //! URLs good and bad.

    use super::Target;

    #[test]
    fn a_url_has_an_authority_a_prefix_and_an_address() {
        let read = |url: &str| {
            let target = Target::parse(url).expect(url);
            let address = target.addresses()[0].to_string();
            (
                target.authority().to_owned(),
                target.prefix().to_owned(),
                address,
                target.is_tls(),
            )
        };
        let expected = |authority: &str, prefix: &str, address: &str, is_tls| {
            (
                authority.to_owned(),
                prefix.to_owned(),
                address.to_owned(),
                is_tls,
            )
        };
        assert_eq!(
            read("http://127.0.0.1:80"),
            expected("127.0.0.1:80", "", "127.0.0.1:80", false)
        );
        assert_eq!(
            read("https://[::1]/base/"),
            expected("[::1]", "/base", "[::1]:443", true)
        );
        let url = "http://127.0.0.1:9/a/b";
        assert_eq!(Target::parse(url).expect("a target").to_string(), url);
    }

    #[test]
    fn what_is_no_target_is_refused_with_what_to_write() {
        for (url, says) in [
            ("127.0.0.1:80", "scheme"),
            ("ftp://127.0.0.1/", "scheme"),
            ("http://", "does not parse"),
            ("http://127.0.0.1:99999", "port"),
            ("http://127.0.0.1/?q=1", "query"),
            ("http://sk-hush:x@127.0.0.1/", "credentials"),
        ] {
            let told = Target::parse(url).expect_err(url).to_string();
            assert!(
                told.contains(says) && told.contains("https://"),
                "{url}: {told}"
            );
            assert!(!told.contains("hush"), "{told}");
        }
    }
}
