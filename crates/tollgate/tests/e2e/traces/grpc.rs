//! A collector that speaks gRPC, in clear and over TLS.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_proto::tonic::trace::v1::Span;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;

use super::{call, config, decoded, upstream};
use crate::harness::Gate;
use crate::harness::tls::{Authority, Leaf};

/// The spans that it received, and the path of each request.
#[derive(Default)]
struct Received {
    spans: Vec<Span>,
    paths: Vec<String>,
}

/// A collector that answers with `codes`, one after the other, and then with 0.
fn collector(leaf: Option<&Leaf>, codes: &'static [u8]) -> (SocketAddr, Arc<Mutex<Received>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    listener.set_nonblocking(true).expect("a socket option");
    let address = listener.local_addr().expect("it is bound");
    let received = Arc::new(Mutex::new(Received::default()));
    let acceptor = leaf.map(acceptor);
    let kept = Arc::clone(&received);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async move {
            let listener = TcpListener::from_std(listener).expect("it is not blocking");
            while let Ok((tcp, _)) = listener.accept().await {
                let kept = Arc::clone(&kept);
                let service = service_fn(move |request| answer(request, Arc::clone(&kept), codes));
                let builder = http2::Builder::new(TokioExecutor::new());
                match &acceptor {
                    None => drop(builder.serve_connection(TokioIo::new(tcp), service).await),
                    Some(acceptor) => {
                        let Ok(tls) = acceptor.accept(tcp).await else {
                            continue;
                        };
                        drop(builder.serve_connection(TokioIo::new(tls), service).await);
                    }
                }
            }
        });
    });
    (address, received)
}

fn acceptor(leaf: &Leaf) -> tokio_rustls::TlsAcceptor {
    let certificate = CertificateDer::from_pem_slice(leaf.certificate.as_bytes()).expect("PEM");
    let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).expect("PEM");
    let mut config = rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("a certificate with its key");
    config.alpn_protocols = vec![b"h2".to_vec()];
    tokio_rustls::TlsAcceptor::from(Arc::new(config))
}

async fn answer(
    request: Request<Incoming>,
    received: Arc<Mutex<Received>>,
    codes: &[u8],
) -> Result<Response<BoxBody<Bytes, Infallible>>, hyper::Error> {
    let path = request.uri().path().to_owned();
    assert_eq!(request.headers()["content-type"], "application/grpc");
    assert_eq!(request.headers()["te"], "trailers");
    let body = request.into_body().collect().await?.to_bytes();
    let (frame, message) = body.split_at(5);
    assert_eq!(frame[0], 0, "not compressed");
    let length = u32::from_be_bytes([frame[1], frame[2], frame[3], frame[4]]);
    assert_eq!(usize::try_from(length).expect("it is small"), message.len());
    let code = {
        let mut received = received.lock().expect("nobody panicked");
        let code = codes.get(received.paths.len()).copied().unwrap_or(0);
        received.paths.push(path);
        if code == 0 {
            received.spans.extend(decoded(message));
        }
        code
    };
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(u16::from(code)));
    let body = Full::new(Bytes::from_static(&[0; 5]));
    let body = body
        .with_trailers(async move { Some(Ok(trailers)) })
        .boxed();
    let response = Response::builder()
        .header("content-type", "application/grpc")
        .body(body);
    Ok(response.expect("a good response"))
}

fn sent(gate: &Gate, received: &Mutex<Received>, calls: usize) {
    for _ in 0..calls {
        assert_eq!(gate.call(&call(&[])).status, 200);
    }
    testing::eventually("the spans arrive", || {
        received.lock().expect("nobody panicked").spans.len() == 2 * calls
    });
    let received = received.lock().expect("nobody panicked");
    let export = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    assert!(
        received.paths.iter().all(|path| path == export),
        "{:?}",
        received.paths
    );
}

#[test]
fn spans_are_exported_over_grpc_and_retried_when_unavailable() {
    let upstream = upstream(0);
    let (address, received) = collector(None, &[14]);
    let traces = format!("traces: {{ otlp: \"http://{address}\", protocol: grpc }}");
    let gate = Gate::start(&config(upstream.address, &traces), &[]);
    sent(&gate, &received, 5);
    assert!(received.lock().expect("nobody panicked").paths.len() >= 2);
    assert_eq!(gate.metric("tollgate_trace_failures_total", &[]), 1.0);
    assert_eq!(gate.metric("tollgate_trace_spans_lost_total", &[]), 0.0);
    // The collector has received them before the gate has its answer.
    testing::eventually("the log says so", || {
        gate.log().contains("traces are delivered again")
    });
}

#[test]
fn the_collectors_tls_certificate_is_verified() {
    let upstream = upstream(0);
    let authority = Authority::new();
    let (address, received) = collector(Some(&authority.leaf("127.0.0.1")), &[]);
    let traces =
        format!("traces: {{ otlp: \"https://{address}\", protocol: grpc, ca: roots.pem }}");
    let config = config(upstream.address, &traces);
    let trusted = authority.certificate.as_bytes();
    let gate = Gate::start(&config, &[("roots.pem", trusted)]);
    sent(&gate, &received, 3);
    drop(gate);
    let before = received.lock().expect("nobody panicked").paths.len();
    let stranger = Authority::new();
    let gate = Gate::start(&config, &[("roots.pem", stranger.certificate.as_bytes())]);
    assert_eq!(gate.call(&call(&[])).status, 200);
    testing::eventually("it is said", || {
        gate.log().contains("traces are not delivered")
    });
    assert_eq!(
        received.lock().expect("nobody panicked").paths.len(),
        before
    );
}
