//! Sends a case in its version of HTTP, on a connection that is kept alive while possible.
//!
//! Not here: which cases (`cases`).

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use hyper::body::{Frame, SizeHint};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::cases::{Case, Framing, Version};
use crate::harness::{Connection, Response, h2};

/// A body in two parts, with a declared length or without.
struct Body {
    parts: VecDeque<Bytes>,
    length: Option<u64>,
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.parts.pop_front().map(|part| Ok(Frame::data(part))))
    }

    fn is_end_stream(&self) -> bool {
        self.length == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.length
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// The outcome of a request.
pub(super) enum Answer {
    /// Refused with this error code; empty where the connection or the stream was closed.
    Refused(String),
    /// Answered by the gate itself, as a list of models is.
    Own,
    /// Answered by the engine.
    Forwarded { id: String, remaining: Option<u64> },
}

/// One client.
pub(super) struct Sender {
    address: SocketAddr,
    one: Option<Connection>,
    two: Option<SendRequest<Body>>,
    runtime: tokio::runtime::Runtime,
}

impl Sender {
    pub(super) fn new(address: SocketAddr) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        Self {
            address,
            one: None,
            two: None,
            runtime,
        }
    }

    pub(super) fn send(&mut self, case: &Case, workload: &str) -> Answer {
        let response = match case.version {
            Version::One => Some(self.send_one(case, workload)),
            Version::Two => self.send_two(case, workload),
        };
        let Some(response) = response.filter(|response| response.status != 0) else {
            return Answer::Refused(String::new());
        };
        let header = |name| response.header(name).map(str::to_owned);
        if response.status != 200 {
            let error = serde_json::from_slice::<serde_json::Value>(&response.body);
            let code = error.map(|error| error["error"]["code"].as_str().map(str::to_owned));
            return Answer::Refused(code.ok().flatten().unwrap_or_default());
        }
        assert!(response.whole, "{case:?}: {response:?}");
        match header("x-ratelimit-remaining-tokens") {
            None if case.is_of_models() => Answer::Own,
            remaining => Answer::Forwarded {
                id: header("x-request-id").expect("an id"),
                remaining: remaining.map(|n| n.parse().expect("a number")),
            },
        }
    }

    fn send_one(&mut self, case: &Case, workload: &str) -> Response {
        let mut connection = self
            .one
            .take()
            .unwrap_or_else(|| Connection::open(self.address));
        let mut head = format!(
            "{} {} HTTP/1.1\r\nhost: gate.test\r\nx-workload-app: {workload}\r\n",
            case.method, case.target
        );
        let mut rest = case.body.clone().into_bytes();
        if case.framing != Framing::Nothing {
            head.push_str("content-type: application/json\r\n");
        }
        match case.framing {
            Framing::Nothing => rest.clear(),
            Framing::Declared => head.push_str(&format!("content-length: {}\r\n", rest.len())),
            Framing::Undeclared => {
                head.push_str("transfer-encoding: chunked\r\n");
                let (start, end) = rest.split_at(rest.len() / 2);
                let chunk = |data: &[u8]| match data {
                    [] => Vec::new(),
                    _ => crate::harness::answer::chunk(data),
                };
                rest = [chunk(start), chunk(end), b"0\r\n\r\n".to_vec()].concat();
            }
        }
        head.push_str("\r\n");
        connection.send(&[head.into_bytes(), rest].concat());
        let response = if case.method == "HEAD" {
            connection.headless()
        } else {
            connection.response()
        };
        let is_kept = response.whole && response.header("connection") != Some("close");
        self.one = is_kept.then_some(connection);
        response
    }

    fn send_two(&mut self, case: &Case, workload: &str) -> Option<Response> {
        let (address, kept) = (
            self.address,
            self.two.take().filter(|sender| !sender.is_closed()),
        );
        let method = case.method.parse::<http::Method>().expect("a method");
        let uri = format!("http://gate.test{}", case.target).parse::<http::Uri>();
        // This client cannot write such a request, so it was not sent; `http_versions` writes it by hand.
        let request = Request::builder()
            .method(method)
            .uri(uri.ok()?)
            .header("x-workload-app", workload);
        let bytes = Bytes::from(case.body.clone());
        let halves = [
            bytes.slice(..bytes.len() / 2),
            bytes.slice(bytes.len() / 2..),
        ];
        let (parts, length) = match case.framing {
            Framing::Nothing => (VecDeque::new(), Some(0)),
            Framing::Declared => (VecDeque::from(halves), Some(bytes.len() as u64)),
            Framing::Undeclared => (VecDeque::from(halves), None),
        };
        let request = match case.framing {
            Framing::Nothing => request,
            Framing::Declared | Framing::Undeclared => {
                request.header("content-type", "application/json")
            }
        };
        let request = request.body(Body { parts, length }).ok()?;
        let (response, sender) = self.runtime.block_on(async {
            let mut sender = match kept {
                Some(sender) => sender,
                None => connect(address).await,
            };
            let response = match sender.send_request(request).await {
                Ok(response) => h2::whole(response).await.ok(),
                Err(_) => None,
            };
            (response, sender)
        });
        self.two = Some(sender);
        response
    }
}

async fn connect(address: SocketAddr) -> SendRequest<Body> {
    let tcp = tokio::net::TcpStream::connect(address).await;
    let tcp = tcp.expect("something listens there");
    tcp.set_nodelay(true).expect("a socket option");
    let (sender, connection) = Builder::new(TokioExecutor::new())
        .handshake(TokioIo::new(tcp))
        .await
        .expect("the preface is exchanged");
    tokio::spawn(async move { drop(connection.await) });
    sender
}
