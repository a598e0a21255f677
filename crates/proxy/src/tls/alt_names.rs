//! Upstreams that are known by other names than the one that is asked for: another host's, or a URI such as a SPIFFE ID.
//!
//! Invariant: roots, times, uses and signatures are verified as of any other certificate; a certificate with none of the names is refused,
//! whatever the host is called.
//! Not here: what the names of a certificate are (`peer_certificate`).

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use super::TlsFault;
use crate::peer_certificate;

/// Checks that a certificate has one of some names.
#[derive(Debug)]
pub(super) struct AltNames {
    chain: Arc<WebPkiServerVerifier>,
    hosts: Vec<ServerName<'static>>,
    uris: Vec<Box<str>>,
}

impl AltNames {
    pub(super) fn new(roots: RootCertStore, names: &[Box<str>]) -> Result<Self, TlsFault> {
        let provider = Arc::new(default_provider());
        let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let (uris, hosts): (Vec<&Box<str>>, Vec<&Box<str>>) =
            names.iter().partition(|name| name.contains(':'));
        let hosts = hosts.into_iter().map(|name| {
            let name = ServerName::try_from(name.to_string());
            name.map_err(|_| TlsFault::AltName)
        });
        Ok(Self {
            chain: chain.build()?,
            hosts: hosts.collect::<Result<_, _>>()?,
            uris: uris.into_iter().cloned().collect(),
        })
    }
}

impl ServerCertVerifier for AltNames {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        asked: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = |name: &ServerName<'_>| {
            let chain = &self.chain;
            chain.verify_server_cert(certificate, between, name, ocsp, now)
        };
        for name in &self.hosts {
            match verified(name) {
                Err(error) if is_of_name(&error) => {}
                verified => return verified,
            }
        }
        // The name is looked at last: all else is good, then.
        match verified(asked) {
            Err(error) if !is_of_name(&error) => return Err(error),
            Ok(_) | Err(_) => {}
        }
        let names = peer_certificate::names_of(certificate);
        match names.iter().any(|name| self.uris.contains(name)) {
            true => Ok(ServerCertVerified::assertion()),
            false => Err(CertificateError::NotValidForName.into()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let chain = &self.chain;
        chain.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let chain = &self.chain;
        chain.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}

/// Whether all is good but the name.
fn is_of_name(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        )
    )
}
