//! TLS on both sides: the listener's certificate, and trust in clients and upstreams.
//!
//! Invariant: certificates are always verified; nothing is ever downgraded to clear text.
//! Not here: names beside a host's (`alt_names`), when files change (`tollgate` watches and publishes anew).

mod alt_names;

use std::io;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::ring::default_provider;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
pub use rustls::{ClientConfig, ServerConfig};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use self::alt_names::AltNames;

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
    /// A name that a certificate is to have is none.
    #[error("a name that a certificate is to have is none")]
    AltName,
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

/// A certificate chain with its key, and the names that it is shown to: all where there is none.
#[derive(Debug)]
pub struct Shown<'p> {
    /// The host of the listener that it is of.
    pub host: Option<policy::plain::HostPattern>,
    /// The chain, PEM.
    pub certificate: &'p [u8],
    /// The key, PEM.
    pub key: &'p [u8],
}

/// Like [`server`], for a port with several certificates: of those whose host is the name that a client asks for, the first is
/// shown; a client that asks for another name, or for none, is shown the first of those without a host, and refused where there is none.
///
/// # Errors
/// [`TlsFault`], with the place of the certificate that is of no use.
pub fn server_of(
    shown: &[Shown<'_>],
    clients: Option<Clients>,
) -> Result<Arc<ServerConfig>, (usize, TlsFault)> {
    let mut made = Vec::new();
    for (at, one) in shown.iter().enumerate() {
        let certified = || -> Result<CertifiedKey, TlsFault> {
            let chain = certificates(one.certificate)?;
            let key =
                PrivateKeyDer::from_pem_slice(one.key).map_err(|_| TlsFault::Pem("private key"))?;
            Ok(CertifiedKey::from_der(chain, key, &default_provider())?)
        };
        let certified = certified().map_err(|fault| (at, fault))?;
        made.push((one.host.clone(), Arc::new(certified)));
    }
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|fault| (0, fault.into()))?;
    let builder = match clients {
        Some(Clients(verifier)) => builder.with_client_cert_verifier(verifier),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_cert_resolver(Arc::new(ByName(made)));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Certificates by the name that a client asks for.
#[derive(Debug)]
struct ByName(Vec<(Option<policy::plain::HostPattern>, Arc<CertifiedKey>)>);

impl ResolvesServerCert for ByName {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name();
        let takes = |host: &Option<policy::plain::HostPattern>| match (host, name) {
            (None, _) => true,
            (Some(host), Some(name)) => host.takes(name.as_bytes()),
            (Some(_), None) => false,
        };
        let mut all = self.0.iter();
        let found = all.find(|(host, _)| takes(host));
        found.map(|(_, certified)| Arc::clone(certified))
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
    let one = Shown {
        host: None,
        certificate,
        key,
    };
    server_of(&[one], clients).map_err(|(_, fault)| fault)
}

/// Trust in the system's roots, or in `bundle` alone when one is given; with a certificate chain and its key, the gate
/// shows them to whoever asks. Of `alt_names` an upstream's certificate has to have one, in place of the name that is asked for.
///
/// # Errors
/// [`TlsFault`] when there are no usable roots, or certificate and key are of no use.
pub fn client(
    bundle: Option<&[u8]>,
    identity: Option<(&[u8], &[u8])>,
    alt_names: &[Box<str>],
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
        .with_safe_default_protocol_versions()?;
    let config = match alt_names {
        [] => config.with_root_certificates(roots),
        some => {
            let verifier = Arc::new(AltNames::new(roots, some)?);
            let config = config.dangerous();
            config.with_custom_certificate_verifier(verifier)
        }
    };
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
