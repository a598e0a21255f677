//! Whose certificates are good.
//!
//! Invariant: a certificate is checked unless its loudly named opposite was asked for.
//! Not here: handshakes (`io`).

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::TlsConnector;

use super::Trust;

/// Nobody's certificates could be taken for good.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file of authorities.
    #[error("{path}: {says}; it has to hold certificates in PEM form")]
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        says: String,
    },
    /// The system's authorities.
    #[error("the system has no authorities that can be read{0}; name a file of them")]
    System(String),
    /// The library's own state.
    #[error("bug: TLS could not be set up: {0}")]
    Setup(#[from] rustls::Error),
    /// The operating system gave no event queue or timer.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What opens connections; every thread has one of its own, with its own tickets.
pub(super) fn connector(trust: &Trust, is_http2: bool) -> Result<TlsConnector, TrustError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()?;
    let mut config = match trust {
        Trust::DangerouslyAnyone => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
            .with_no_client_auth(),
        Trust::System | Trust::File(_) => builder
            .with_root_certificates(roots(trust)?)
            .with_no_client_auth(),
    };
    let protocol: &[u8] = if is_http2 { b"h2" } else { b"http/1.1" };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config).into())
}

fn roots(trust: &Trust) -> Result<RootCertStore, TrustError> {
    let mut store = RootCertStore::empty();
    let Trust::File(path) = trust else {
        let found = rustls_native_certs::load_native_certs();
        let (good, _) = store.add_parsable_certificates(found.certs);
        return match (good, found.errors.first()) {
            (0, Some(error)) => Err(TrustError::System(format!(": {error}"))),
            (0, None) => Err(TrustError::System(String::new())),
            _ => Ok(store),
        };
    };
    let fault = |says: String| TrustError::File {
        path: path.clone(),
        says,
    };
    let all = CertificateDer::pem_file_iter(path).map_err(|error| fault(error.to_string()))?;
    for certificate in all {
        let certificate = certificate.map_err(|error| fault(error.to_string()))?;
        let added = store.add(certificate);
        added.map_err(|error| fault(error.to_string()))?;
    }
    if store.is_empty() {
        return Err(fault("no certificate".into()));
    }
    Ok(store)
}

/// Takes anybody for whom they say they are.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, cert, dss, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, cert, dss, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
