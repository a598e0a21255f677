//! A service that looks at a request and its answer while they pass, as Envoy's external processors do: one stream of messages each way for
//! each request (`envoy.service.ext_proc.v3.ExternalProcessor/Process`), in both directions at one time.
//!
//! Invariant: everything that is waited for has its bound, and so has a message. A stream that is dropped is reset: the service hears of
//! it. One connection carries all streams, and a new one is made when it is gone, or when nothing is heard on it while a question waits.
//! Not here: what a message says (`messages`), who is asked for what (`picker`).

mod added;
mod heard;
mod messages;
mod picker;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, TE};
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message;
use tokio::sync::mpsc;
use tokio::time::timeout;
use wire::grpc;

use self::heard::{Heard, Listening};
use self::messages::{ProcessingRequest, ProcessingResponse};
pub use self::picker::{EndpointPicker, PickerSettings};
use crate::dial::Dialer;
use crate::fault::Fault;
use crate::tls::Tls;
use crate::url::Url;

/// Where gRPC says how a stream ended.
const STATUS: &str = "grpc-status";
const METHOD: &str = "/envoy.service.ext_proc.v3.ExternalProcessor/Process";
/// The most of one message of the service's.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Bytes before a message: whether it is compressed, and its length.
const FRAME: usize = 5;
/// Messages that wait to be sent.
const WAITING: usize = 16;
/// A connection with streams is tried so often, and has so long to answer.
const PING_EVERY: Duration = Duration::from_secs(5);
/// The longest until there is a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(3);

/// The way to one service.
pub(crate) struct Processor {
    url: Url,
    dialer: Dialer,
    kept: Mutex<Option<Sender>>,
    heard: Heard,
}

type Sender = http2::SendRequest<Messages>;
type Head = Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>;

impl fmt::Debug for Processor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Processor")
            .field(&self.url.authority())
            .finish()
    }
}

impl Processor {
    /// One without a connection yet.
    pub(crate) fn new(url: &Url, tls: &Tls) -> Result<Self, Fault> {
        let url = url.at(METHOD).map_err(|_| Fault::Unaskable("its path"))?;
        Ok(Self::dialling(
            url,
            Dialer {
                tls: tls.speaking(&[b"h2"]),
                allow_link_local: false,
                #[cfg(test)]
                memory: None,
            },
        ))
    }

    fn dialling(url: Url, dialer: Dialer) -> Self {
        Self {
            url,
            dialer,
            kept: Mutex::default(),
            heard: Heard::default(),
        }
    }

    /// How often something was heard of the service so far.
    pub(crate) fn heard(&self) -> u64 {
        self.heard.count()
    }

    /// Begins a stream. Gives whether its connection was kept, and so may turn out to be gone.
    pub(crate) async fn open(&self) -> Result<(Stream, bool), Fault> {
        let kept = self.kept().clone().filter(|kept| !kept.is_closed());
        let was_kept = kept.is_some();
        let mut sender = match kept {
            Some(kept) => kept,
            None => self.connect().await?,
        };
        let broken = |error: hyper::Error| Fault::Broken(error.to_string());
        sender.ready().await.map_err(broken)?;
        let (to, from) = mpsc::channel(WAITING);
        let head = sender.send_request(self.request(Messages(from))?);
        let stream = Stream {
            to: Some(to),
            head: Some(Box::pin(head)),
            body: None,
            read: BytesMut::new(),
            has_status: false,
        };
        Ok((stream, was_kept))
    }

    /// The connection that was kept is not used again.
    pub(crate) fn forget(&self) {
        self.kept().take();
    }

    async fn connect(&self) -> Result<Sender, Fault> {
        let connecting = async {
            let dialled = self.dialer.dial(self.url.origin()).await?;
            let shaken = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .keep_alive_interval(PING_EVERY)
                .keep_alive_timeout(PING_EVERY)
                .handshake(TokioIo::new(Listening::to(dialled.stream, &self.heard)))
                .await;
            shaken.map_err(|error| Fault::Broken(error.to_string()))
        };
        let connected = timeout(CONNECT_WITHIN, connecting).await;
        let (sender, connection) = connected.unwrap_or(Err(Fault::Late {
            waited_for: "connection",
            within: CONNECT_WITHIN,
        }))?;
        tokio::spawn(async move { drop(connection.await) });
        *self.kept() = Some(sender.clone());
        Ok(sender)
    }

    fn request(&self, messages: Messages) -> Result<Request<Messages>, Fault> {
        let origin = self.url.origin();
        let (scheme, authority) = (origin.scheme(), origin.authority());
        let request = Request::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            .uri(format!("{scheme}://{authority}{}", self.url.target()))
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .body(messages);
        request.map_err(|_| Fault::Unaskable("its host or path fits no request line"))
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, Option<Sender>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Messages that leave as they come.
pub(crate) struct Messages(mpsc::Receiver<Bytes>);

impl Body for Messages {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let message = self.0.poll_recv(cx);
        message.map(|message| message.map(|message| Ok(Frame::data(message))))
    }
}

/// One request's messages, both ways.
pub(crate) struct Stream {
    to: Option<mpsc::Sender<Bytes>>,
    head: Option<Head>,
    body: Option<Incoming>,
    /// What was read and is no whole message yet.
    read: BytesMut,
    /// The service said how it ends: one that ends without that has broken off.
    has_status: bool,
}

impl Stream {
    /// What sends its messages, apart from what reads the answers.
    pub(crate) fn sending(&self) -> Result<Sending, Fault> {
        self.to.clone().map(Sending).ok_or(Fault::Closed)
    }

    /// No more messages are sent.
    pub(crate) fn end(&mut self) {
        self.to = None;
    }

    /// The next message of the service's; `None` where it has ended the stream well.
    pub(crate) async fn next(&mut self) -> Result<Option<ProcessingResponse>, Fault> {
        if let Some(head) = self.head.take() {
            let head = head
                .await
                .map_err(|error| Fault::Broken(error.to_string()))?;
            check(&head)?;
            self.has_status = head.headers().contains_key(STATUS);
            self.body = Some(head.into_body());
        }
        loop {
            if let Some(message) = self.whole()? {
                let response = ProcessingResponse::decode(message);
                let response =
                    response.map_err(|_| Fault::Garbage("it is not a ProcessingResponse"));
                return response.map(Some);
            }
            let Some(body) = &mut self.body else {
                return Ok(None);
            };
            let Some(frame) = body.frame().await else {
                self.body = None;
                return match self.has_status {
                    true => Ok(None),
                    false => Err(Fault::Broken(
                        "the stream ended without a status".to_owned(),
                    )),
                };
            };
            let frame = frame.map_err(|error| Fault::Broken(error.to_string()))?;
            match frame.into_data() {
                Ok(data) => self.read.extend_from_slice(&data),
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        check_status(&trailers, StatusCode::OK)?;
                        self.has_status = trailers.contains_key(STATUS);
                    }
                }
            }
        }
    }

    /// The first message of what was read, where it is whole.
    fn whole(&mut self) -> Result<Option<Bytes>, Fault> {
        let Some((frame, rest)) = self.read.split_first_chunk::<FRAME>() else {
            return Ok(None);
        };
        let [compressed, length @ ..] = *frame;
        if compressed != 0 {
            return Err(Fault::Garbage("a message is compressed, unasked"));
        }
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > MESSAGE_BYTES_MAX {
            return Err(Fault::Large(MESSAGE_BYTES_MAX));
        }
        if rest.len() < length {
            return Ok(None);
        }
        self.read.advance(FRAME);
        Ok(Some(self.read.split_to(length).freeze()))
    }
}

/// Sends the messages of a stream.
pub(crate) struct Sending(mpsc::Sender<Bytes>);

impl Sending {
    /// Waits until there is room for it.
    pub(crate) async fn send(&self, message: &ProcessingRequest) -> Result<(), Fault> {
        let framed = grpc::framed(&message.encode_to_vec());
        let framed = framed.ok_or(Fault::Unaskable("a message is too long"))?;
        let sent = self.0.send(framed.into()).await;
        sent.map_err(|_| Fault::Broken("the service ended the stream".to_owned()))
    }
}

fn check(head: &Response<Incoming>) -> Result<(), Fault> {
    let status = head.status();
    if status != StatusCode::OK {
        return Err(Fault::Status {
            status: status.as_u16(),
            code: None,
        });
    }
    let kind = head.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    if !kind.is_some_and(|kind| kind.starts_with(b"application/grpc")) {
        return Err(Fault::Garbage("it is not gRPC"));
    }
    // One that refuses says so at once, with nothing to follow.
    match head.headers().contains_key(STATUS) {
        true => check_status(head.headers(), status),
        false => Ok(()),
    }
}

/// Whether gRPC's own status is good.
fn check_status(headers: &HeaderMap, status: StatusCode) -> Result<(), Fault> {
    let code = headers.get(STATUS);
    if code.is_none_or(|code| code == "0") {
        return Ok(());
    }
    let code = code.and_then(|code| code.to_str().ok()?.parse::<u16>().ok());
    Err(Fault::Status {
        status: status.as_u16(),
        code: code.map(|code| format!("gRPC status {code}")),
    })
}
