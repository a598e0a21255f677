//! An upstream over HTTP/1.1 or HTTP/2, in clear or over TLS with clients' certificates, that keeps what it got.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::harness::answer::COMPLETION;
use crate::harness::tls::Leaf;

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Got {
    pub(super) method: String,
    pub(super) authority: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: http::HeaderMap,
    pub(super) body: Bytes,
    pub(super) is_h2: bool,
    /// The certificate of the client, where it showed one.
    pub(super) certificate: Option<Vec<u8>>,
}

pub(super) struct Recorder {
    pub(super) address: SocketAddr,
    got: Arc<Mutex<Vec<Got>>>,
}

impl Recorder {
    /// In clear.
    pub(super) fn clear(is_h2: bool) -> Self {
        Self::start(None, is_h2)
    }

    /// With this certificate, and with clients' certificates of this root.
    pub(super) fn tls(leaf: &Leaf, clients: &str) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let certificate = CertificateDer::from_pem_slice(leaf.certificate.as_bytes()).expect("PEM");
        let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).expect("PEM");
        let mut roots = rustls::RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(clients.as_bytes()).expect("PEM");
        roots.add(root).expect("a root");
        let verifier = rustls::server::WebPkiClientVerifier::builder_with_provider(
            Arc::new(roots),
            Arc::clone(&provider),
        );
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_client_cert_verifier(verifier.build().expect("a verifier"))
            .with_single_cert(vec![certificate], key)
            .expect("a certificate with its key");
        Self::start(Some(Arc::new(config)), false)
    }

    fn start(tls: Option<Arc<rustls::ServerConfig>>, is_h2: bool) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        listener.set_nonblocking(true).expect("a socket option");
        let address = listener.local_addr().expect("it is bound");
        let got = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&got);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime.expect("a runtime").block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("not blocking");
                while let Ok((tcp, _)) = listener.accept().await {
                    let (tls, kept) = (tls.clone(), Arc::clone(&kept));
                    tokio::spawn(async move {
                        let Some(tls) = tls else {
                            return serve(tcp, is_h2, None, kept).await;
                        };
                        if let Ok(tls) = tokio_rustls::TlsAcceptor::from(tls).accept(tcp).await {
                            let shown = tls.get_ref().1.peer_certificates();
                            let shown = shown.and_then(|chain| chain.first()).map(|of| of.to_vec());
                            serve(tls, false, shown, kept).await;
                        }
                    });
                }
            });
        });
        Self { address, got }
    }

    pub(super) fn got(&self) -> Vec<Got> {
        self.got
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

async fn serve<S>(stream: S, is_h2: bool, certificate: Option<Vec<u8>>, kept: Arc<Mutex<Vec<Got>>>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request: Request<Incoming>| {
        let (certificate, kept) = (certificate.clone(), Arc::clone(&kept));
        async move {
            let (head, body) = request.into_parts();
            let host = head.headers.get("host").and_then(|host| host.to_str().ok());
            let authority = head.uri.authority().map(ToString::to_string);
            let got = Got {
                method: head.method.to_string(),
                authority: authority.or(host.map(str::to_owned)).unwrap_or_default(),
                path: head.uri.path().to_owned(),
                query: head.uri.query().unwrap_or_default().to_owned(),
                is_h2: head.version == http::Version::HTTP_2,
                headers: head.headers,
                body: body.collect().await?.to_bytes(),
                certificate,
            };
            kept.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(got);
            let response = Response::builder().header("content-type", "application/json");
            let response = response.body(Full::new(Bytes::from_static(COMPLETION.as_bytes())));
            Ok::<_, hyper::Error>(response.expect("a response"))
        }
    });
    let io = TokioIo::new(stream);
    if is_h2 {
        let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        drop(builder.serve_connection(io, service).await);
    } else {
        let builder = hyper::server::conn::http1::Builder::new();
        drop(builder.serve_connection(io, service).await);
    }
}
