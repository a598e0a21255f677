//! TLS on both sides: the listener's certificate, and trust in clients and upstreams.
//!
//! Invariant: certificates are always verified; nothing is ever downgraded to clear text.
//! Not here: when files change (`tollgate` watches and publishes anew).

use std::io;
use std::sync::Arc;

pub use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
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
    /// Roots that cannot verify clients.
    #[error("{0}")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
    /// The system's roots cannot be read.
    #[error("cannot read the system's root certificates: {0}")]
    Roots(#[source] io::Error),
}

/// How clients prove who they are, by certificates.
#[derive(Debug)]
pub struct Clients(Arc<dyn ClientCertVerifier>);

impl Clients {
    /// Certificates that `roots` (PEM) vouch for, for use by clients; whoever `is_optional` lets in without one has
    /// proven nothing. One that is brought and not good is refused in any case.
    ///
    /// # Errors
    /// [`TlsFault`] when there are no usable roots.
    pub fn trusting(roots: &[u8], is_optional: bool) -> Result<Self, TlsFault> {
        let roots = Arc::new(store(roots)?);
        let builder = WebPkiClientVerifier::builder_with_provider(roots, default_provider().into());
        let builder = if is_optional {
            builder.allow_unauthenticated()
        } else {
            builder
        };
        Ok(Self(builder.build()?))
    }
}

/// What the data listener needs: HTTP/2 and HTTP/1.1 by ALPN. Clients are asked for certificates where it is said
/// how they are verified.
///
/// Sessions are kept with what is made here, and with it alone: none is resumed under other roots.
///
/// # Errors
/// [`TlsFault`] when the PEM texts do not give a matching certificate chain and key.
pub fn server(
    certificate: &[u8],
    key: &[u8],
    clients: Option<Clients>,
) -> Result<Arc<ServerConfig>, TlsFault> {
    let chain: Vec<_> = certificates(certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsFault::Pem("private key"))?;
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?;
    let builder = match clients {
        Some(Clients(verifier)) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Trust in the system's roots, or in `bundle` alone when one is given; with a certificate chain and its key, the gate
/// shows them to whoever asks.
///
/// # Errors
/// [`TlsFault`] when there are no usable roots, or certificate and key are of no use.
pub fn client(
    bundle: Option<&[u8]>,
    identity: Option<(&[u8], &[u8])>,
) -> Result<Arc<ClientConfig>, TlsFault> {
    let roots = if let Some(bundle) = bundle {
        store(bundle)?
    } else {
        let mut roots = RootCertStore::empty();
        let native = rustls_native_certs::load_native_certs();
        roots.add_parsable_certificates(native.certs);
        if let (true, Some(error)) = (roots.is_empty(), native.errors.into_iter().next()) {
            return Err(TlsFault::Roots(io::Error::other(error.to_string())));
        }
        roots
    };
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    let config = match identity {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let chain = certificates(certificate)?;
            let key =
                PrivateKeyDer::from_pem_slice(key).map_err(|_| TlsFault::Pem("private key"))?;
            config.with_client_auth_cert(chain, key)?
        }
    };
    Ok(Arc::new(config))
}

/// The roots of a bundle.
fn store(bundle: &[u8]) -> Result<RootCertStore, TlsFault> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(bundle)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsFault> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) | Err(_) => Err(TlsFault::Pem("certificate")),
    }
}

#[cfg(test)]
mod tests;
