//! An agent's connection: it sends a prompt and reads what is streamed back, as an SDK does.
//!
//! Invariant: a connection is kept from one call to the next, and opened anew where it was closed; every call ends in time.
//! Not here: what is said (`answer`, `history`).

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::answer::Answer;

const PATH: &str = "/v1/chat/completions";
const PATIENCE: Duration = Duration::from_secs(600);

/// One agent's.
pub(super) struct Line {
    address: SocketAddr,
    sender: Option<SendRequest<Full<Bytes>>>,
}

/// An answer, and when it came.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) answer: Answer,
    pub(super) sent: Instant,
    pub(super) first: Instant,
    pub(super) ended: Instant,
    /// Time that was spent on reading events.
    pub(super) reading: Duration,
}

impl Line {
    pub(super) const fn to(address: SocketAddr) -> Self {
        Self {
            address,
            sender: None,
        }
    }

    /// One call, to the end of its answer.
    pub(super) async fn ask(&mut self, body: Vec<u8>) -> Result<Heard, String> {
        let heard = timeout(PATIENCE, self.exchange(body)).await;
        let heard = heard.unwrap_or_else(|_| Err("no whole answer in 600 s".into()));
        if heard.is_err() {
            self.sender = None;
        }
        heard
    }

    async fn exchange(&mut self, body: Vec<u8>) -> Result<Heard, String> {
        let says = |error: hyper::Error| error.to_string();
        let request = Request::builder()
            .method(Method::POST)
            .uri(PATH)
            .header("host", self.address.to_string())
            .header("content-type", "application/json")
            .header("accept", "text/event-stream");
        let request = request.body(Full::new(Bytes::from(body)));
        let request = request.map_err(|error| error.to_string())?;
        let sender = self.open().await?;
        let sent = Instant::now();
        let response = sender.send_request(request).await.map_err(says)?;
        let status = response.status();
        let mut body = response.into_body();
        if !status.is_success() {
            let body = body.collect().await.map_err(says)?.to_bytes();
            let text = String::from_utf8_lossy(&body);
            return Err(format!("status {}: {}", status.as_u16(), text.trim()));
        }
        let (mut answer, mut first, mut reading) = (Answer::default(), None, Duration::ZERO);
        while let Some(frame) = body.frame().await {
            let came = Instant::now();
            if let Some(chunk) = frame.map_err(says)?.data_ref() {
                if answer.read(chunk)? {
                    first.get_or_insert(came);
                }
                reading += came.elapsed();
            }
        }
        let ended = Instant::now();
        if !answer.is_whole() {
            return Err("the answer ended before its end".into());
        }
        Ok(Heard {
            answer,
            sent,
            first: first.unwrap_or(ended),
            ended,
            reading,
        })
    }

    async fn open(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, String> {
        if let Some(sender) = &mut self.sender
            && sender.ready().await.is_err()
        {
            self.sender = None;
        }
        if self.sender.is_none() {
            let stream = TcpStream::connect(self.address).await;
            let stream = stream.map_err(|error| format!("{}: {error}", self.address))?;
            // Without it only latency suffers.
            let _ = stream.set_nodelay(true);
            let made = handshake(TokioIo::new(stream)).await;
            let (sender, connection) = made.map_err(|error| error.to_string())?;
            // It ends with the sender; what went wrong with it the call tells.
            tokio::task::spawn_local(async move { drop(connection.await) });
            self.sender = Some(sender);
        }
        self.sender
            .as_mut()
            .ok_or_else(|| "bug: no connection".to_owned())
    }
}
