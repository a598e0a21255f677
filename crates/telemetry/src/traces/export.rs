//! One batch of spans to a collector: OTLP over HTTP/1.1, or gRPC over HTTP/2.
//!
//! Invariant: one connection, kept while it is good; every wait has its bound; a certificate is
//! always verified.
//! Not here: offering a batch again, and when to give up (`traces`); which certificates are trusted (the host).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use policy::credential::UpstreamAuth;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use wire::grpc::framed;

use super::{Collector, Undelivered};

/// The most of an answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The method of gRPC.
const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// Codes of gRPC after which OTLP says to try again: CANCELLED, DEADLINE_EXCEEDED,
/// RESOURCE_EXHAUSTED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS.
const GRPC_LATER: [&str; 7] = ["1", "4", "8", "10", "11", "14", "15"];

/// A transport of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// Protobuf over HTTP/1.1.
    Http,
    /// gRPC over HTTP/2.
    Grpc,
}

/// Where a collector is, and how it is spoken to.
#[derive(Debug, Clone)]
pub struct OtlpEndpoint {
    /// Its host, without brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// `host[:port]`, as a request names it.
    pub authority: String,
    /// The path that takes spans over HTTP.
    pub path: String,
    /// How it is spoken to.
    pub protocol: OtlpProtocol,
    /// What the gate sends to be let in.
    pub auth: UpstreamAuth,
    /// Whom to trust, where it is spoken to over TLS.
    pub tls: Option<Arc<ClientConfig>>,
}

/// The way to a collector.
#[derive(Debug)]
pub struct OtlpExporter {
    endpoint: OtlpEndpoint,
    runtime: tokio::runtime::Runtime,
    connection: Option<Connection>,
    /// The last batch was not taken, and the log says so.
    is_failing: bool,
}

/// A connection that may still be good.
#[derive(Debug)]
enum Connection {
    Http(http1::SendRequest<Full<Bytes>>),
    Grpc(http2::SendRequest<Full<Bytes>>),
}

impl OtlpExporter {
    /// Connects when there is something to send.
    ///
    /// # Errors
    /// When the runtime cannot be made that waits for the collector.
    pub fn new(mut endpoint: OtlpEndpoint) -> io::Result<Self> {
        if let Some(trust) = &mut endpoint.tls {
            Arc::make_mut(trust).alpn_protocols = vec![match endpoint.protocol {
                OtlpProtocol::Http => b"http/1.1".to_vec(),
                OtlpProtocol::Grpc => b"h2".to_vec(),
            }];
        }
        Ok(Self {
            endpoint,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
            connection: None,
            is_failing: false,
        })
    }

    fn post(&mut self, request: &[u8], within: Duration) -> Result<(), Undelivered> {
        let Self {
            endpoint,
            runtime,
            connection,
            ..
        } = self;
        let known = connection.take();
        let offering = async {
            let mut connection = match known.filter(|known| !known.is_closed()) {
                Some(known) => known,
                None => connect(endpoint).await?,
            };
            connection.send(endpoint, request).await?;
            Ok(connection)
        };
        let offered = runtime.block_on(async { tokio::time::timeout(within, offering).await });
        let offered = offered.unwrap_or_else(|_| Err(later(format!("no answer in {within:?}"))));
        *connection = Some(offered?);
        Ok(())
    }
}

impl Collector for OtlpExporter {
    fn offer(&mut self, request: &[u8], within: Duration) -> Result<(), Undelivered> {
        let offered = self.post(request, within);
        let collector = &self.endpoint.authority;
        let was_failing = std::mem::replace(&mut self.is_failing, offered.is_err());
        match &offered {
            Err(undelivered) if !was_failing => {
                tracing::warn!(
                    collector,
                    see = "docs/troubleshooting.md#traces-are-not-delivered",
                    "traces are not delivered: {undelivered}"
                );
            }
            Ok(()) if was_failing => tracing::info!(collector, "traces are delivered again"),
            Ok(()) | Err(_) => {}
        }
        offered
    }
}

async fn connect(endpoint: &OtlpEndpoint) -> Result<Connection, Undelivered> {
    let tcp = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await;
    let tcp = tcp.map_err(unreachable)?;
    tcp.set_nodelay(true).map_err(unreachable)?;
    let Some(trust) = &endpoint.tls else {
        return shake_hands(endpoint.protocol, tcp).await;
    };
    let name = ServerName::try_from(endpoint.host.clone())
        .map_err(|error| Undelivered::Never(error.to_string()))?;
    let tls = TlsConnector::from(Arc::clone(trust))
        .connect(name, tcp)
        .await;
    shake_hands(endpoint.protocol, tls.map_err(unreachable)?).await
}

async fn shake_hands<S>(protocol: OtlpProtocol, stream: S) -> Result<Connection, Undelivered>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(stream);
    Ok(match protocol {
        OtlpProtocol::Http => {
            let (sender, connection) = http1::handshake(stream).await.map_err(broken)?;
            tokio::spawn(async move { drop(connection.await) });
            Connection::Http(sender)
        }
        OtlpProtocol::Grpc => {
            let shaken = http2::handshake(TokioExecutor::new(), stream).await;
            let (sender, connection) = shaken.map_err(broken)?;
            tokio::spawn(async move { drop(connection.await) });
            Connection::Grpc(sender)
        }
    })
}

impl Connection {
    fn is_closed(&self) -> bool {
        match self {
            Self::Http(sender) => sender.is_closed(),
            Self::Grpc(sender) => sender.is_closed(),
        }
    }

    async fn send(&mut self, endpoint: &OtlpEndpoint, batch: &[u8]) -> Result<(), Undelivered> {
        match self {
            Self::Http(sender) => {
                let (path, kind) = (&endpoint.path, "application/x-protobuf");
                let request = message(endpoint, path, kind, batch.to_vec())?;
                sender.ready().await.map_err(broken)?;
                let answer = sender.send_request(request).await.map_err(broken)?;
                let status = answer.status();
                read(answer).await?;
                taken(status)
            }
            Self::Grpc(sender) => {
                let scheme = if endpoint.tls.is_some() {
                    "https"
                } else {
                    "http"
                };
                let target = format!("{scheme}://{}{EXPORT}", endpoint.authority);
                let body = framed(batch)
                    .ok_or_else(|| Undelivered::Never("the batch fits no frame".to_owned()))?;
                let request = message(endpoint, &target, "application/grpc", body)?;
                sender.ready().await.map_err(broken)?;
                let answer = sender.send_request(request).await.map_err(broken)?;
                taken(answer.status())?;
                let (early, late) = (code(answer.headers()), read(answer).await?);
                grpc_taken(early.or(late.as_ref().and_then(code)))
            }
        }
    }
}

fn message(
    endpoint: &OtlpEndpoint,
    target: &str,
    kind: &str,
    body: Vec<u8>,
) -> Result<Request<Full<Bytes>>, Undelivered> {
    let mut request = Request::post(target)
        .header(header::CONTENT_TYPE, kind)
        .header(
            header::USER_AGENT,
            concat!("tollgate/", env!("CARGO_PKG_VERSION")),
        );
    request = match endpoint.protocol {
        OtlpProtocol::Http => request.header(header::HOST, &endpoint.authority),
        OtlpProtocol::Grpc => request.header(header::TE, "trailers"),
    };
    if let UpstreamAuth::Header { name, value } = &endpoint.auth {
        let mut value = http::HeaderValue::from_bytes(value.expose())
            .map_err(|_| Undelivered::Never("the credential fits no header".to_owned()))?;
        value.set_sensitive(true);
        request = request.header(name.as_str(), value);
    }
    let request = request.body(Full::new(Bytes::from(body)));
    request.map_err(|error| Undelivered::Never(error.to_string()))
}

/// Reads an answer to its end, so that the connection can be used again. Gives its trailers.
async fn read(answer: Response<Incoming>) -> Result<Option<http::HeaderMap>, Undelivered> {
    let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect();
    let body = body.await.map_err(|error| later(error.to_string()))?;
    Ok(body.trailers().cloned())
}

fn taken(status: StatusCode) -> Result<(), Undelivered> {
    match status.as_u16() {
        200..=299 => Ok(()),
        429 | 502..=504 => Err(later(format!("the collector answered {status}"))),
        _ => Err(Undelivered::Never(format!(
            "the collector answered {status}"
        ))),
    }
}

fn code(headers: &http::HeaderMap) -> Option<String> {
    let code = headers.get("grpc-status")?.to_str().ok()?;
    Some(code.to_owned())
}

fn grpc_taken(code: Option<String>) -> Result<(), Undelivered> {
    match code.as_deref() {
        Some("0") => Ok(()),
        None => Err(later("the collector's answer broke off".to_owned())),
        Some(code) if GRPC_LATER.contains(&code) => {
            Err(later(format!("the collector answered gRPC status {code}")))
        }
        Some(code) => {
            let why = format!("the collector answered gRPC status {code}");
            Err(Undelivered::Never(why))
        }
    }
}

fn later(why: String) -> Undelivered {
    Undelivered::Later(why)
}

fn unreachable(error: io::Error) -> Undelivered {
    later(format!("cannot reach the collector: {error}"))
}

fn broken(error: hyper::Error) -> Undelivered {
    later(format!("the collector broke off: {error}"))
}
