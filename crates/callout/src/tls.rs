//! Whom the gate trusts among the services that it asks, and who it is to them.
//!
//! Invariant: nothing is ever downgraded to clear text.
//! Not here: how trust is made of certificates, and when files change (the host does both).

use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};

/// Trust, and who the gate is.
#[derive(Debug, Clone)]
pub struct Tls(Arc<ClientConfig>);

impl Tls {
    /// As the host made it.
    #[must_use]
    pub fn of(config: Arc<ClientConfig>) -> Self {
        Self(config)
    }

    /// Trust in nobody, for what is only ever spoken to in clear.
    ///
    /// # Errors
    /// There is no version of TLS to speak, which no build is without.
    pub fn nobody() -> Result<Self, rustls::Error> {
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        Ok(Self(Arc::new(config)))
    }

    /// The same, for one who speaks these protocols.
    pub(crate) fn speaking(&self, protocols: &[&[u8]]) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.0);
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }
}
