//! Whom the gate trusts among the services that it asks, and who it is to them.
//!
//! Invariant: certificates are always verified; nothing is ever downgraded to clear text.
//! Not here: when files change (the host makes a new client).

use std::io;
use std::sync::Arc;

use policy::secret::Secret;
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Why a certificate, key or bundle is of no use.
#[derive(Debug, thiserror::Error)]
pub enum TlsFault {
    /// Not PEM, or without what is needed.
    #[error("not a PEM file with a {0}")]
    Pem(&'static str),
    /// Key and certificate do not belong together, or are unusable.
    #[error("{0}")]
    Unusable(#[from] rustls::Error),
    /// The system's roots cannot be read.
    #[error("cannot read the system's root certificates: {0}")]
    Roots(#[source] io::Error),
}

/// Who the gate is to a service.
#[derive(Debug, Clone)]
pub struct ClientIdentity {
    /// Its certificate and those that lead to a root, as PEM.
    pub certificate: Vec<u8>,
    /// The key, as PEM.
    pub key: Secret,
}

/// Trust, and who the gate is.
#[derive(Debug, Clone)]
pub struct Tls(Arc<ClientConfig>);

impl Tls {
    /// Trust in the system's roots, or in `bundle` (PEM) alone when one is given.
    ///
    /// # Errors
    /// [`TlsFault`] when there are no usable roots, or certificate and key are of no use.
    pub fn new(bundle: Option<&[u8]>, identity: Option<&ClientIdentity>) -> Result<Self, TlsFault> {
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots(bundle)?);
        let config = match identity {
            None => config.with_no_client_auth(),
            Some(identity) => {
                let chain = certificates(&identity.certificate)?;
                let key = PrivateKeyDer::from_pem_slice(identity.key.expose())
                    .map_err(|_| TlsFault::Pem("private key"))?;
                config.with_client_auth_cert(chain, key)?
            }
        };
        Ok(Self(Arc::new(config)))
    }

    /// Trust in nobody, for what is only ever spoken to in clear.
    ///
    /// # Errors
    /// [`TlsFault`] when there is no version of TLS to speak, which no build is without.
    pub fn nobody() -> Result<Self, TlsFault> {
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

pub(crate) fn roots(bundle: Option<&[u8]>) -> Result<RootCertStore, TlsFault> {
    let mut roots = RootCertStore::empty();
    if let Some(bundle) = bundle {
        for certificate in certificates(bundle)? {
            roots.add(certificate)?;
        }
        return Ok(roots);
    }
    let native = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(native.certs);
    match native.errors.into_iter().next() {
        Some(error) if roots.is_empty() => {
            Err(TlsFault::Roots(io::Error::other(error.to_string())))
        }
        _ => Ok(roots),
    }
}

pub(crate) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) | Err(_) => Err(TlsFault::Pem("certificate")),
    }
}
