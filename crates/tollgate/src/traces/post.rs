//! One batch of spans to a collector: OTLP over HTTP/1.1, or gRPC over HTTP/2.
//!
//! Invariant: one connection, kept while it is good; every wait has its bound; a certificate is
//! always verified.
//! Not here: offering a batch again (`telemetry`).

use std::io;
use std::sync::Arc;
use std::time::Duration;

use config::OtlpProtocol;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use policy::credential::Injection;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use telemetry::{Collector, Undelivered};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The most of an answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// The method of gRPC.
const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
/// Codes of gRPC after which OTLP says to try again: CANCELLED, DEADLINE_EXCEEDED,
/// RESOURCE_EXHAUSTED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS.
const GRPC_LATER: [&str; 7] = ["1", "4", "8", "10", "11", "14", "15"];

/// The way to a collector.
pub(super) struct Post {
    settings: config::Traces,
    trust: Option<Arc<ClientConfig>>,
    runtime: tokio::runtime::Runtime,
    line: Option<Line>,
    /// The last batch was not taken, and the log says so.
    is_failing: bool,
}

/// A connection that may still be good.
enum Line {
    Http(http1::SendRequest<Full<Bytes>>),
    Grpc(http2::SendRequest<Full<Bytes>>),
}

impl Post {
    pub(super) fn new(settings: &config::Traces) -> Result<Self, String> {
        let trust = settings.tls.then(|| trust(settings)).transpose()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| format!("cannot send traces: {error}"))?;
        Ok(Self {
            settings: settings.clone(),
            trust,
            runtime,
            line: None,
            is_failing: false,
        })
    }
}

impl Collector for Post {
    fn offer(&mut self, request: &[u8], within: Duration) -> Result<(), Undelivered> {
        let offered = self.post(request, within);
        let collector = &self.settings.authority;
        let was_failing = std::mem::replace(&mut self.is_failing, offered.is_err());
        match &offered {
            Err(undelivered) if !was_failing => {
                tracing::warn!(collector, "traces are not delivered: {undelivered}");
            }
            Ok(()) if was_failing => tracing::info!(collector, "traces are delivered again"),
            Ok(()) | Err(_) => {}
        }
        offered
    }
}

impl Post {
    fn post(&mut self, request: &[u8], within: Duration) -> Result<(), Undelivered> {
        let Self {
            settings,
            trust,
            runtime,
            line,
            ..
        } = self;
        let known = line.take();
        let offering = async {
            let mut line = match known.filter(|line| !line.is_closed()) {
                Some(line) => line,
                None => connect(settings, trust.as_ref()).await?,
            };
            line.send(settings, request).await?;
            Ok(line)
        };
        let offered = runtime.block_on(async { tokio::time::timeout(within, offering).await });
        let offered = offered.unwrap_or_else(|_| Err(later(format!("no answer in {within:?}"))));
        *line = Some(offered?);
        Ok(())
    }
}

fn trust(settings: &config::Traces) -> Result<Arc<ClientConfig>, String> {
    let trust = proxy::tls::client(settings.ca_pem.as_deref())
        .map_err(|fault| format!("traces.ca: {fault}"))?;
    let mut trust = ClientConfig::clone(&trust);
    trust.alpn_protocols = vec![match settings.protocol {
        OtlpProtocol::Http => b"http/1.1".to_vec(),
        OtlpProtocol::Grpc => b"h2".to_vec(),
    }];
    Ok(Arc::new(trust))
}

async fn connect(
    settings: &config::Traces,
    trust: Option<&Arc<ClientConfig>>,
) -> Result<Line, Undelivered> {
    let tcp = TcpStream::connect((settings.host.as_str(), settings.port)).await;
    let tcp = tcp.map_err(unreachable)?;
    tcp.set_nodelay(true).map_err(unreachable)?;
    let Some(trust) = trust else {
        return shake_hands(settings.protocol, tcp).await;
    };
    let name = ServerName::try_from(settings.host.clone())
        .map_err(|error| Undelivered::Never(error.to_string()))?;
    let tls = TlsConnector::from(Arc::clone(trust))
        .connect(name, tcp)
        .await;
    shake_hands(settings.protocol, tls.map_err(unreachable)?).await
}

async fn shake_hands<S>(protocol: OtlpProtocol, stream: S) -> Result<Line, Undelivered>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let stream = TokioIo::new(stream);
    Ok(match protocol {
        OtlpProtocol::Http => {
            let (line, connection) = http1::handshake(stream).await.map_err(broken)?;
            tokio::spawn(async move { drop(connection.await) });
            Line::Http(line)
        }
        OtlpProtocol::Grpc => {
            let shaken = http2::handshake(TokioExecutor::new(), stream).await;
            let (line, connection) = shaken.map_err(broken)?;
            tokio::spawn(async move { drop(connection.await) });
            Line::Grpc(line)
        }
    })
}

impl Line {
    fn is_closed(&self) -> bool {
        match self {
            Self::Http(line) => line.is_closed(),
            Self::Grpc(line) => line.is_closed(),
        }
    }

    async fn send(&mut self, settings: &config::Traces, batch: &[u8]) -> Result<(), Undelivered> {
        match self {
            Self::Http(line) => {
                let (path, kind) = (&settings.path, "application/x-protobuf");
                let request = message(settings, path, kind, batch.to_vec())?;
                line.ready().await.map_err(broken)?;
                let answer = line.send_request(request).await.map_err(broken)?;
                let status = answer.status();
                read(answer).await?;
                taken(status)
            }
            Self::Grpc(line) => {
                let scheme = if settings.tls { "https" } else { "http" };
                let target = format!("{scheme}://{}{EXPORT}", settings.authority);
                let request = message(settings, &target, "application/grpc", framed(batch))?;
                line.ready().await.map_err(broken)?;
                let answer = line.send_request(request).await.map_err(broken)?;
                taken(answer.status())?;
                let (early, late) = (code(answer.headers()), read(answer).await?);
                grpc_taken(early.or(late.as_ref().and_then(code)))
            }
        }
    }
}

fn message(
    settings: &config::Traces,
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
    request = match settings.protocol {
        OtlpProtocol::Http => request.header(header::HOST, &settings.authority),
        OtlpProtocol::Grpc => request.header(header::TE, "trailers"),
    };
    if let Injection::Header { name, value } = &settings.injection {
        let mut value = http::HeaderValue::from_bytes(value.expose())
            .map_err(|_| Undelivered::Never("the credential fits no header".to_owned()))?;
        value.set_sensitive(true);
        request = request.header(name.as_str(), value);
    }
    let request = request.body(Full::new(Bytes::from(body)));
    request.map_err(|error| Undelivered::Never(error.to_string()))
}

/// A message as gRPC frames it: not compressed, and its length.
fn framed(batch: &[u8]) -> Vec<u8> {
    let length = u32::try_from(batch.len()).unwrap_or(u32::MAX);
    [&[0], &length.to_be_bytes()[..], batch].concat()
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
