//! Clients that call a gate over TLS with a certificate of their own, in either version of HTTP.
//!
//! Invariant: a client keeps its sessions from one connection to the next, as real ones do.
//! Not here: certificates (`tls`), assertions.

use std::error::Error;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::tls::{Authority, Leaf};
use super::{Response, chat, h2};

/// Versions of HTTP, as ALPN names them.
pub(crate) const H1: &[u8] = b"http/1.1";
pub(crate) const H2: &[u8] = b"h2";

/// A client of the gate `gate.test`.
pub(crate) struct TlsClient {
    config: ClientConfig,
    /// Sent before the handshake.
    pub(crate) begins: Vec<u8>,
}

impl TlsClient {
    /// Trusts `authority`, and has this certificate.
    pub(crate) fn new(authority: &Authority, leaf: Option<&Leaf>) -> Self {
        let versions = [&rustls::version::TLS12, &rustls::version::TLS13];
        Self::of_versions(authority, leaf, &versions)
    }

    /// The same, speaking these versions of TLS.
    pub(crate) fn of_versions(
        authority: &Authority,
        leaf: Option<&Leaf>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Self {
        let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM");
        let mut roots = RootCertStore::empty();
        roots.add(der(&authority.certificate)).expect("a root");
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(versions)
            .expect("versions")
            .with_root_certificates(roots);
        let config = match leaf {
            Some(leaf) => {
                let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).expect("PEM");
                builder
                    .with_client_auth_cert(vec![der(&leaf.certificate)], key)
                    .expect("a certificate with its key")
            }
            None => builder.with_no_client_auth(),
        };
        Self {
            config,
            begins: Vec::new(),
        }
    }

    /// This version of HTTP over this connection, for clients that wait.
    pub(crate) fn over(
        &self,
        tcp: std::net::TcpStream,
        version: &[u8],
    ) -> StreamOwned<ClientConnection, std::net::TcpStream> {
        let mut config = self.config.clone();
        config.alpn_protocols = vec![version.to_vec()];
        let name = ServerName::try_from("gate.test").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name);
        StreamOwned::new(connection.expect("a good name"), tcp)
    }

    async fn connect(
        &self,
        address: SocketAddr,
        version: &[u8],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut tcp = TcpStream::connect(address).await?;
        tcp.set_nodelay(true)?;
        tcp.write_all(&self.begins).await?;
        let mut config = self.config.clone();
        config.alpn_protocols = vec![version.to_vec()];
        let name = ServerName::try_from("gate.test").expect("a name");
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let tls = connector.connect(name, tcp).await?;
        assert_eq!(tls.get_ref().1.alpn_protocol(), Some(version));
        Ok(tls)
    }

    /// One chat call with these headers on a connection of its own, over this version of HTTP; and whether its session
    /// is an earlier one's.
    pub(crate) fn call(
        &self,
        address: SocketAddr,
        version: &[u8],
        headers: &[(&str, &str)],
    ) -> (Response, bool) {
        h2::run(async {
            let tls = self.connect(address, version).await.expect("a handshake");
            let kind = tls.get_ref().1.handshake_kind();
            let is_h2 = version == H2;
            let path = "/v1/chat/completions";
            let mut request = Request::post(if is_h2 {
                format!("https://gate.test{path}")
            } else {
                path.to_owned()
            })
            .header("content-type", "application/json");
            if !is_h2 {
                request = request.header("host", "gate.test");
            }
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let body = Full::new(Bytes::from(chat("m", false)));
            let request = request.body(body).expect("a good request");
            let answer = if is_h2 {
                h2::client(tls).await.send_request(request).await
            } else {
                let (mut sender, connection) =
                    hyper::client::conn::http1::handshake(TokioIo::new(tls))
                        .await
                        .expect("nothing is sent yet");
                tokio::spawn(async move { drop(connection.await) });
                sender.send_request(request).await
            };
            let answer = h2::whole(answer.expect("an answer")).await;
            (
                answer.expect("a whole answer"),
                kind == Some(HandshakeKind::Resumed),
            )
        })
    }

    /// What ends a connection that the gate refuses, with all of its causes. A request is sent first, in parts, as
    /// clients do that cannot know of the refusal yet.
    pub(crate) fn refused(&self, address: SocketAddr) -> String {
        h2::run(async {
            let refused = async {
                let mut tls = self.connect(address, H1).await?;
                for part in ["GET /v1/models HTTP/1.1\r\n", "host: gate.test\r\n", "\r\n"] {
                    tls.write_all(part.as_bytes()).await?;
                    tls.flush().await?;
                    super::pace(Duration::from_millis(5)).await;
                }
                let mut all = Vec::new();
                tls.read_to_end(&mut all).await?;
                Ok::<_, std::io::Error>(String::from_utf8_lossy(&all).into_owned())
            };
            let error = refused.await.expect_err("it is not let in");
            let mut says = error.to_string();
            let mut cause = error.source();
            while let Some(error) = cause {
                write!(says, ": {error}").expect("memory");
                cause = error.source();
            }
            says
        })
    }
}
