//! Sending and hearing: HTTP/1.1 and HTTP/2, plain or over TLS, to one target or to several in turn.
//!
//! Invariant: a request is sent once. What was kept open and turns out to be closed is opened anew only where no byte of the
//! request was taken; whatever may have been read is a failure, never sent again. Redirects are not followed.
//! Not here: when to send (`run`), what an answer says (`observer`): a [`Listener`] is handed the bytes as they come.

mod failure;
mod fetch;
mod http1;
mod http2;
mod io;
mod response;
mod target;
mod tls;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

pub use failure::Failure;
pub use fetch::{Chunk, FetchError, Fetched, Request, ask, ask_and_linger, fetch};
pub use response::{Lines, Malformed, Parser, Progress, Said};
pub use target::{Target, TargetError};
pub use tls::TrustError;

use crate::source::{Head, IdHeader, Payload, RequestId};

/// A head, and the id that is written into it where there is one.
pub type HeadWithId<'a> = (&'a Head, Option<(&'a IdHeader, RequestId)>);

/// Bytes one read takes at most; all connections of a thread read into one buffer.
const BUFFER_BYTES: usize = 64 << 10;

type Buffer = Rc<RefCell<Box<[u8]>>>;

/// Where to, and how.
#[derive(Debug, Clone)]
pub struct Reach {
    /// At least one; exchanges of one line go to them in turn.
    pub targets: Vec<Target>,
    /// What is spoken.
    pub protocol: Protocol,
    /// Whose certificates are good, where a target asks for TLS.
    pub trust: Trust,
    /// What has no complete answer after this is a `timeout`; connecting is given as long again.
    pub timeout: Duration,
}

impl Reach {
    /// One target over HTTP/1.1, of which the system's authorities say who it is.
    #[must_use]
    pub fn plain(target: Target, timeout: Duration) -> Self {
        Self {
            targets: vec![target],
            protocol: Protocol::Http1,
            trust: Trust::System,
            timeout,
        }
    }
}

/// What is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// One exchange at a time on each connection; a line keeps one for each target.
    Http1,
    /// Many on each: by prior knowledge, and over TLS by ALPN.
    Http2 {
        /// Connections of each thread to each target, at least one; lines are dealt to them by number.
        connections: usize,
    },
}

/// Whose certificates are good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Those of the system's authorities.
    System,
    /// Those of the authorities in this PEM file.
    File(PathBuf),
    /// Anybody's at all: whoever stands between sees every credential that is sent.
    DangerouslyAnyone,
}

/// Watches one exchange. Nothing that it is handed outlives the call.
pub trait Listener {
    /// The first byte of the request is about to go.
    fn on_send(&mut self, now: Instant);
    /// There is no connection, and why.
    fn on_fault(&mut self, _says: &str) {}
    /// The first bytes of the answer are here.
    fn on_first_byte(&mut self, now: Instant);
    /// Body bytes of one read, and what the head before them said.
    fn on_body(&mut self, now: Instant, said: Said, bytes: &[u8]);
}

/// A whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answer {
    /// What its head said.
    pub said: Said,
    /// When its last byte was read.
    pub last_byte: Instant,
}

/// One thread's way to the targets.
pub struct Client {
    reach: Reach,
    tls: Option<tokio_rustls::TlsConnector>,
    buffer: Buffer,
    /// By target; empty where HTTP/1.1 is spoken.
    pools: Vec<http2::Pool>,
}

/// One user's place: its connections where it has any, and whose turn it is.
pub struct ConnectionSlot {
    number: usize,
    exchanges: usize,
    /// By target.
    kept: Box<[Option<http1::Connection>]>,
    /// Connections of HTTP/1.1 that were opened.
    pub opened: u64,
    /// Kept connections that had closed before anything was sent on them, and were opened anew.
    pub reopened: u64,
}

impl Client {
    /// A way to the targets for the calling thread; connections are opened when they are needed.
    ///
    /// # Errors
    /// The authorities to be trusted cannot be read.
    pub fn new(reach: Reach) -> Result<Self, TrustError> {
        let needs_tls = reach.targets.iter().any(Target::is_tls);
        let is_http2 = matches!(reach.protocol, Protocol::Http2 { .. });
        let tls = needs_tls.then(|| tls::connector(&reach.trust, is_http2));
        let pools = match reach.protocol {
            Protocol::Http1 => Vec::new(),
            Protocol::Http2 { connections } => {
                let pool = |_| http2::Pool::new(connections.max(1));
                reach.targets.iter().map(pool).collect()
            }
        };
        Ok(Self {
            tls: tls.transpose()?,
            buffer: Rc::new(RefCell::new(vec![0; BUFFER_BYTES].into_boxed_slice())),
            pools,
            reach,
        })
    }

    /// A place for the user of this number.
    #[must_use]
    pub fn line(&self, number: usize) -> ConnectionSlot {
        ConnectionSlot {
            number,
            exchanges: 0,
            kept: self.reach.targets.iter().map(|_| None).collect(),
            opened: 0,
            reopened: 0,
        }
    }

    /// Sends one request and hears its answer to the end.
    ///
    /// # Errors
    /// There was no whole answer; `listener` may have heard a part of one.
    pub async fn exchange(
        &self,
        line: &mut ConnectionSlot,
        head: HeadWithId<'_>,
        payload: &Payload,
        listener: &mut impl Listener,
    ) -> Result<Answer, Failure> {
        let at = (line.number + line.exchanges) % self.reach.targets.len().max(1);
        line.exchanges = line.exchanges.wrapping_add(1);
        let Some(target) = self.reach.targets.get(at) else {
            return Err(Failure::Connect);
        };
        match self.pools.get(at) {
            Some(pool) => {
                let asked = http2::Outgoing {
                    target,
                    head,
                    payload,
                };
                // To connect, to shake hands, and for room on the connection.
                let patience = self.reach.timeout * 3;
                let ready = tokio::time::timeout(patience, pool.ready(self, line, target)).await;
                let sender = match ready.unwrap_or_else(|_| Err(io::Unconnected::late(target))) {
                    Ok(sender) => sender,
                    Err(fault) => return Err(fault.tell(listener)),
                };
                let whole = http2::exchange(sender, asked, listener);
                match tokio::time::timeout(self.reach.timeout, whole).await {
                    Ok(ended) => ended,
                    Err(_) => {
                        pool.leave(line).await;
                        Err(Failure::Timeout)
                    }
                }
            }
            None => {
                self.over_http1(line, (at, target), head, payload, listener)
                    .await
            }
        }
    }

    async fn over_http1(
        &self,
        line: &mut ConnectionSlot,
        (at, target): (usize, &Target),
        head: HeadWithId<'_>,
        payload: &Payload,
        listener: &mut impl Listener,
    ) -> Result<Answer, Failure> {
        let mut kept = line.kept.get_mut(at).and_then(Option::take);
        if let Some(connection) = &mut kept {
            match connection.exchange(target, head, payload, listener).await {
                Ok((answer, keeps)) => return Ok(line.keep(at, kept.filter(|_| keeps), answer)),
                Err(http1::Fault::Stale) => line.reopened += 1,
                Err(http1::Fault::Failed(failure)) => return Err(failure),
            }
        }
        let io = match self.connect(target).await {
            Ok(io) => io,
            Err(fault) => return Err(fault.tell(listener)),
        };
        line.opened += 1;
        let mut fresh = http1::Connection::new(io, &self.buffer, self.reach.timeout);
        match fresh.exchange(target, head, payload, listener).await {
            Ok((answer, keeps)) => Ok(line.keep(at, Some(fresh).filter(|_| keeps), answer)),
            // One that was opened just now: the target takes connections and closes them.
            Err(http1::Fault::Stale) => Err(Failure::Closed),
            Err(http1::Fault::Failed(failure)) => Err(failure),
        }
    }

    async fn connect(&self, target: &Target) -> Result<io::Io, io::Unconnected> {
        let connecting = io::Io::connect(target, self.tls.as_ref());
        let connected = tokio::time::timeout(self.reach.timeout, connecting).await;
        connected.unwrap_or_else(|_| Err(io::Unconnected::late(target)))
    }
}

impl ConnectionSlot {
    fn keep(&mut self, at: usize, connection: Option<http1::Connection>, answer: Answer) -> Answer {
        if let Some(place) = self.kept.get_mut(at) {
            *place = connection;
        }
        answer
    }
}
