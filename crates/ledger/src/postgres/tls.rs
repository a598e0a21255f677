//! TLS to the server, as `sslmode` asks for it.
//!
//! | `sslmode` | encrypted | whose certificate |
//! |---|---|---|
//! | `disable` | never | |
//! | `prefer`, and where none is said | if the server can | anybody's |
//! | `require` | always | anybody's, or as `verify-ca` where `sslrootcert` is said |
//! | `verify-ca` | always | one that `sslrootcert` vouches for |
//! | `verify-full` | always | the same, or one of the system's roots, and for this host |
//!
//! Invariant: what a mode asks for is had, or there is no connection. What the client library does
//! not know of the connection string (`verify-*`, `sslrootcert`) is taken out here.
//! Not here: client certificates, and channel binding, which needs a verified server to be of use.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use postgres::Config;
use postgres::config::SslMode;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::{Connect, TlsConnector};

use super::ShipError;

/// How much is asked of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// What the connection string says of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Security {
    mode: Mode,
    roots: Option<String>,
}

/// Takes `sslmode` and `sslrootcert` out of a connection string of either form.
pub(super) fn read(server: &str) -> Result<(String, Security), ShipError> {
    let mut said = Vec::new();
    let rest = if server.starts_with("postgres://") || server.starts_with("postgresql://") {
        without_query(server, &mut said)?
    } else {
        without_words(server, &mut said)?
    };
    let value = |name: &str| {
        said.iter()
            .rev()
            .find(|(n, _)| n == name)
            .map(|(_, v)| v.as_str())
    };
    let mode = match value("sslmode") {
        None | Some("prefer") => Mode::Prefer,
        Some("disable") => Mode::Disable,
        Some("require") => Mode::Require,
        Some("verify-ca") => Mode::VerifyCa,
        Some("verify-full") => Mode::VerifyFull,
        Some(_) => {
            let says = "sslmode is one of disable, prefer, require, verify-ca and verify-full";
            return Err(ShipError::Trust(says.to_owned()));
        }
    };
    let roots = value("sslrootcert")
        .filter(|file| *file != "system")
        .map(str::to_owned);
    if value("sslrootcert") == Some("system") && mode != Mode::VerifyFull {
        let says = "sslrootcert=system goes with sslmode=verify-full: anybody can have a certificate of a public root";
        return Err(ShipError::Trust(says.to_owned()));
    }
    let mode = match mode {
        // As libpq has it.
        Mode::Require if roots.is_some() => Mode::VerifyCa,
        mode => mode,
    };
    if mode == Mode::VerifyCa && roots.is_none() {
        let says = "sslmode=verify-ca needs sslrootcert, a PEM file of the roots to trust";
        return Err(ShipError::Trust(says.to_owned()));
    }
    Ok((rest, Security { mode, roots }))
}

const OURS: [&str; 2] = ["sslmode", "sslrootcert"];

fn without_query(url: &str, said: &mut Vec<(String, String)>) -> Result<String, ShipError> {
    let Some((base, query)) = url.split_once('?') else {
        return Ok(url.to_owned());
    };
    let mut kept = Vec::new();
    for pair in query.split('&') {
        match pair.split_once('=') {
            Some((name, value)) if OURS.contains(&name) => {
                said.push((name.to_owned(), decoded(value)?));
            }
            _ => kept.push(pair),
        }
    }
    if kept.is_empty() {
        return Ok(base.to_owned());
    }
    Ok(format!("{base}?{}", kept.join("&")))
}

/// A value of a query, percent signs undone.
fn decoded(value: &str) -> Result<String, ShipError> {
    let not_one = || ShipError::Config("a value in its query is not percent-encoded".to_owned());
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first != b'%' {
            bytes.push(*first);
            rest = after;
            continue;
        }
        let digits = after
            .get(..2)
            .and_then(|digits| std::str::from_utf8(digits).ok());
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(not_one)?);
        rest = after.get(2..).unwrap_or_default();
    }
    String::from_utf8(bytes).map_err(|_| not_one())
}

/// Words are `name = value`; a value with spaces stands in single quotes, with `\` before a quote.
fn without_words(text: &str, said: &mut Vec<(String, String)>) -> Result<String, ShipError> {
    let not_one = || ShipError::Config("it is not a list of name=value".to_owned());
    let mut kept = String::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let begun = rest;
        let (name, after) = rest.split_once('=').ok_or_else(not_one)?;
        let mut value = String::new();
        let after = after.trim_start();
        let quoted = after.starts_with('\'');
        let mut letters = after.char_indices().skip(usize::from(quoted));
        let mut end = after.len();
        let mut closed = !quoted;
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => value.push(letters.next().ok_or_else(not_one)?.1),
                '\'' if quoted => {
                    (end, closed) = (at + 1, true);
                    break;
                }
                letter if !quoted && letter.is_whitespace() => {
                    end = at;
                    break;
                }
                letter => value.push(letter),
            }
        }
        if !closed {
            return Err(not_one());
        }
        let next = after.get(end..).unwrap_or_default();
        let name = name.trim();
        if OURS.contains(&name) {
            said.push((name.to_owned(), value));
        } else {
            kept.push_str(begun.get(..begun.len() - next.len()).unwrap_or_default());
            kept.push(' ');
        }
        rest = next.trim_start();
    }
    Ok(kept.trim_end().to_owned())
}

impl Security {
    /// Tells the client library, and makes what it connects with.
    pub(super) fn apply(&self, config: &mut Config) -> Result<Connector, ShipError> {
        config.ssl_mode(match self.mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            Mode::Require | Mode::VerifyCa | Mode::VerifyFull => SslMode::Require,
        });
        let provider = Arc::new(ring::default_provider());
        let broken = |error: &dyn std::fmt::Display| ShipError::Trust(error.to_string());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| broken(&error))?;
        let verified = || -> Result<Arc<WebPkiServerVerifier>, ShipError> {
            let roots = Arc::new(roots(self.roots.as_deref())?);
            WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
                .build()
                .map_err(|error| broken(&error))
        };
        let verifier = match self.mode {
            Mode::Disable | Mode::Prefer | Mode::Require => None,
            Mode::VerifyCa | Mode::VerifyFull => Some(verified()?),
        };
        let verifier: Arc<dyn ServerCertVerifier> = match verifier {
            Some(verifier) if self.mode == Mode::VerifyFull => verifier,
            chain => Arc::new(Lenient { chain, provider }),
        };
        let mut tls = builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        tls.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(Connector {
            tls: TlsConnector::from(Arc::new(tls)),
            used: Arc::default(),
        })
    }
}

fn roots(file: Option<&str>) -> Result<RootCertStore, ShipError> {
    let mut roots = RootCertStore::empty();
    let Some(file) = file else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            let says = "the system has no root certificates: name some with sslrootcert";
            return Err(ShipError::Trust(says.to_owned()));
        }
        return Ok(roots);
    };
    let failed =
        |says: &dyn std::fmt::Display| ShipError::Trust(format!("sslrootcert {file}: {says}"));
    let pem = std::fs::read(file).map_err(|error| failed(&error))?;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|_| failed(&"not a PEM file of certificates"))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() {
        return Err(failed(&"it has no certificate"));
    }
    Ok(roots)
}

/// Looks at less than all of a certificate, because the mode says so: never at its name, and at
/// who vouches for it only where there are roots. Signatures are always verified.
#[derive(Debug)]
struct Lenient {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(certificate, between, name, ocsp, now) {
            // The name is looked at last: all else was good.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// What the client library connects with.
#[derive(Clone)]
pub(super) struct Connector {
    tls: TlsConnector,
    used: Arc<AtomicBool>,
}

impl Connector {
    /// Whether the connection made since [`Connector::forget`] is encrypted.
    pub(super) fn was_used(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn forget(&self) {
        self.used.store(false, Ordering::Relaxed);
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Connector {
    type Stream = Stream<S>;
    type TlsConnect = One;
    type Error = rustls_pki_types::InvalidDnsNameError;

    fn make_tls_connect(&mut self, host: &str) -> Result<One, Self::Error> {
        Ok(One {
            connector: self.clone(),
            // A socket of this machine has no name, and is never asked for TLS.
            name: ServerName::try_from(if host.is_empty() { "localhost" } else { host })?
                .to_owned(),
        })
    }
}

/// One handshake.
pub(super) struct One {
    connector: Connector,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for One {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Handshake<S>;

    fn connect(self, stream: S) -> Handshake<S> {
        Handshake {
            tls: self.connector.tls.connect(self.name, stream),
            used: self.connector.used,
        }
    }
}

/// The handshake under way.
pub(super) struct Handshake<S> {
    tls: Connect<S>,
    used: Arc<AtomicBool>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Future for Handshake<S> {
    type Output = io::Result<Stream<S>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let stream = std::task::ready!(Pin::new(&mut self.tls).poll(cx))?;
        self.used.store(true, Ordering::Relaxed);
        Poll::Ready(Ok(Stream(stream)))
    }
}

/// An encrypted connection.
pub(super) struct Stream<S>(tokio_rustls::client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests;
