//! Certificates made for one test, TLS clients that trust them, and an upstream that serves them.
//!
//! Not here: assertions.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, SanType,
};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;

/// A certificate and its key, both PEM.
pub(crate) struct Leaf {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

/// A certificate authority.
pub(crate) struct Authority {
    /// Its own certificate, PEM, for others to trust.
    pub(crate) certificate: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self::of_params(CertificateParams::new(Vec::new()).expect("no names"))
    }

    /// One of this name, by which verifiers look for it.
    pub(crate) fn named(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        Self::of_params(params)
    }

    fn of_params(mut params: CertificateParams) -> Self {
        let key = KeyPair::generate().expect("a key");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        Self {
            certificate,
            issuer: Issuer::new(params, key),
        }
    }

    /// A certificate for this name or address.
    pub(crate) fn leaf(&self, name: &str) -> Leaf {
        self.signed(params(name))
    }

    /// An expired certificate for this name or address.
    pub(crate) fn expired_leaf(&self, name: &str) -> Leaf {
        let mut params = params(name);
        params.not_before = rcgen::date_time_ymd(2020, 1, 1);
        params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        self.signed(params)
    }

    /// A certificate of a client with these names, in this order: URIs where there is a colon, else DNS names.
    pub(crate) fn client_leaf(&self, names: &[&str]) -> Leaf {
        self.changed_client_leaf(names, |_| {})
    }

    /// The same, but for what `change` does to it.
    pub(crate) fn changed_client_leaf(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Leaf {
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        let name = |name: &&str| {
            let text = (*name).try_into().expect("ASCII");
            if name.contains(':') {
                SanType::URI(text)
            } else {
                SanType::DnsName(text)
            }
        };
        params.subject_alt_names = names.iter().map(name).collect();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut params);
        self.signed(params)
    }

    fn signed(&self, params: CertificateParams) -> Leaf {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Leaf {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A self-signed certificate.
pub(crate) fn self_signed(name: &str) -> Leaf {
    let key = KeyPair::generate().expect("a key");
    let certificate = params(name).self_signed(&key).expect("a certificate");
    Leaf {
        certificate: certificate.pem(),
        key: key.serialize_pem(),
    }
}

fn params(name: &str) -> CertificateParams {
    CertificateParams::new(vec![name.to_owned()]).expect("a good name")
}

/// Connects to a gate at `address` as to `name`, offering these protocols.
pub(crate) async fn connect(
    address: SocketAddr,
    name: &'static str,
    trust: &str,
    protocols: &[&[u8]],
) -> TlsStream<TcpStream> {
    connect_after(address, b"", name, trust, protocols).await
}

/// The same, with these bytes before the handshake.
pub(crate) async fn connect_after(
    address: SocketAddr,
    begins: &[u8],
    name: &'static str,
    trust: &str,
    protocols: &[&[u8]],
) -> TlsStream<TcpStream> {
    let mut roots = rustls::RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(trust.as_bytes()).expect("PEM");
    roots.add(root).expect("a root");
    let mut config = rustls::ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = protocols.iter().map(|p| p.to_vec()).collect();
    let mut tcp = TcpStream::connect(address)
        .await
        .expect("something listens there");
    tcp.write_all(begins).await.expect("the gate reads");
    let name = ServerName::try_from(name).expect("a name");
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    connector.connect(name, tcp).await.expect("a handshake")
}

/// An upstream that answers every call with `{}` over TLS, with the version of HTTP in `x-version`.
pub(crate) struct TlsUpstream {
    pub(crate) address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl TlsUpstream {
    /// Serves this certificate and offers `protocols` by ALPN.
    pub(crate) fn start(leaf: &Leaf, protocols: &[&[u8]]) -> Self {
        Self::start_slow(leaf, protocols, Duration::ZERO)
    }

    /// The same, but it pauses before it reads after each handshake, and its receive buffer is small.
    pub(crate) fn start_slow(leaf: &Leaf, protocols: &[&[u8]], pause: Duration) -> Self {
        let certificate = CertificateDer::from_pem_slice(leaf.certificate.as_bytes()).expect("PEM");
        let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).expect("PEM");
        let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .expect("a certificate with its key");
        config.alpn_protocols = protocols.iter().map(|p| p.to_vec()).collect();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        listener.set_nonblocking(true).expect("a socket option");
        if !pause.is_zero() {
            let socket = socket2::SockRef::from(&listener);
            socket
                .set_recv_buffer_size(64 << 10)
                .expect("a socket option");
        }
        let address = listener.local_addr().expect("it is bound");
        let (connections, requests) = <(Arc<AtomicUsize>, Arc<AtomicUsize>)>::default();
        let counts = (Arc::clone(&connections), Arc::clone(&requests));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime
                .expect("a runtime")
                .block_on(serve(listener, Arc::new(config), counts, pause));
        });
        Self {
            address,
            connections,
            requests,
        }
    }

    /// TCP connections so far, whether or not their handshake succeeded.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Requests so far.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

async fn serve(
    listener: std::net::TcpListener,
    config: Arc<rustls::ServerConfig>,
    (connections, requests): (Arc<AtomicUsize>, Arc<AtomicUsize>),
    pause: Duration,
) {
    let listener = TcpListener::from_std(listener).expect("it is not blocking");
    let acceptor = tokio_rustls::TlsAcceptor::from(config);
    while let Ok((tcp, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::SeqCst);
        let (acceptor, requests) = (acceptor.clone(), Arc::clone(&requests));
        tokio::spawn(async move {
            let Ok(tls) = acceptor.accept(tcp).await else {
                return;
            };
            super::pace(pause).await;
            let is_h2 = tls.get_ref().1.alpn_protocol() == Some(b"h2");
            let service = service_fn(move |request| answer(request, Arc::clone(&requests)));
            let io = TokioIo::new(tls);
            if is_h2 {
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                drop(builder.serve_connection(io, service).await);
            } else {
                let builder = hyper::server::conn::http1::Builder::new();
                drop(builder.serve_connection(io, service).await);
            }
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    requests: Arc<AtomicUsize>,
) -> Result<Response<Full<Bytes>>, hyper::Error> {
    let version = format!("{:?}", request.version());
    drop(request.into_body().collect().await?);
    requests.fetch_add(1, Ordering::SeqCst);
    let response = Response::builder()
        .header("content-type", "application/json")
        .header("x-version", version)
        .body(Full::new(Bytes::from_static(b"{}")));
    Ok(response.expect("a good response"))
}
