//! Clients who leave: each calls on a connection of its own, and leaves before the end of its answer,
//! before its first byte, or before its own request is whole.
//!
//! Invariant: where a client leaves follows from the seed and the call's number alone.
//! Not here: whether what became of it was right (`tally`).

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use experiment::random::Rng;
use load::client::{Parser, Progress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::events::Events;
use super::{FIRST_TOKEN, MODEL, NEXT_TOKEN, over_h2};
use crate::audit::crowd::Crowd;

/// Events after which everybody has left.
const EVENTS_MAX: u64 = 50;
/// One in so many leaves before the first event.
const EARLY: u64 = 10;
/// One in so many leaves before its request is whole.
const UPLOADING: u64 = 20;
/// One in so many asks for an answer in one piece.
const WHOLE: u64 = 4;
/// Within this a client that waits for an answer in one piece leaves; the answer takes longer.
const WHOLE_WITHIN: Duration = Duration::from_millis(40);
/// Bytes of a request that a client which leaves while it sends has not sent.
const UNSENT: usize = 20;
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(5);

/// How a client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It closes its sending side, and reads what still comes.
    Reading,
    /// It closes altogether.
    AtOnce,
}

/// When a client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Its request is not whole yet.
    Uploading,
    /// It waits for an answer in one piece.
    Waiting,
    /// It waits for a stream, or reads one.
    Streaming,
}

impl Phase {
    fn of(rng: &mut Rng) -> Self {
        if rng.below(UPLOADING) == 0 {
            Self::Uploading
        } else if rng.below(WHOLE) == 0 {
            Self::Waiting
        } else {
            Self::Streaming
        }
    }
}

/// How clients call, the same for all of them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Manner {
    pub(super) target: SocketAddr,
    pub(super) count: u64,
    pub(super) seed: u64,
    /// They speak HTTP/2.
    pub(super) http2: bool,
    /// Tokens of an answer that nobody leaves.
    pub(super) tokens: u64,
}

/// One call as it was planned.
pub(super) struct Plan {
    pub(super) phase: Phase,
    pub(super) path: String,
    pub(super) body: String,
    pub(super) tokens: u64,
    /// Events to read before it leaves.
    pub(super) after: u64,
    /// And how long to wait then.
    pub(super) wait: Duration,
}

/// One client that left, and what it had received.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) id: Box<str>,
    pub(super) way: Way,
    /// In which phase.
    pub(super) phase: Phase,
    /// When it left; `None` when its stream had ended by then.
    pub(super) at: Option<Instant>,
    pub(super) status: u16,
    pub(super) events: u64,
    pub(super) text: String,
}

/// Clients at work.
pub(super) struct Leavers {
    shared: Arc<Shared>,
    crowd: Crowd<Left>,
}

struct Shared {
    manner: Manner,
    next: AtomicU64,
    left: AtomicU64,
}

impl Leavers {
    pub(super) fn start(manner: Manner, users: u16) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            manner,
            next: AtomicU64::new(0),
            left: AtomicU64::new(0),
        });
        let theirs = Arc::clone(&shared);
        let crowd = Crowd::start(users, move || move |_| user(Arc::clone(&theirs)))?;
        Ok(Self { shared, crowd })
    }

    pub(super) fn left(&self) -> u64 {
        self.shared.left.load(Ordering::Relaxed)
    }

    pub(super) fn are_done(&self) -> bool {
        self.crowd.is_done()
    }

    pub(super) fn finish(self) -> io::Result<Vec<Left>> {
        self.crowd.join()
    }
}

async fn user(shared: Arc<Shared>) -> Vec<Left> {
    let mut seen = Vec::new();
    loop {
        let n = shared.next.fetch_add(1, Ordering::Relaxed);
        if n >= shared.manner.count {
            return seen;
        }
        let mut rng = Rng::new(shared.manner.seed ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let left = loop {
            match call(&shared, n, &mut rng).await {
                Ok(left) => break left,
                // No connection, so no call either.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        };
        seen.push(left);
        shared.left.fetch_add(1, Ordering::Relaxed);
    }
}

/// Calls and leaves. An error: there was no connection.
async fn call(shared: &Shared, n: u64, rng: &mut Rng) -> io::Result<Left> {
    let tcp = TcpStream::connect(shared.manner.target).await?;
    tcp.set_nodelay(true)?;
    let is_reading = rng.below(2) == 0 && !shared.manner.http2;
    let plan = plan(rng, shared.manner.tokens);
    // Who ends its side before the answer begins may wait for all of it, as `nc -N` does, and has not left.
    let is_reading = is_reading && plan.after > 0;
    let left = Left {
        id: format!("audit-{n}").into(),
        way: if is_reading && plan.phase == Phase::Streaming {
            Way::Reading
        } else {
            Way::AtOnce
        },
        phase: plan.phase,
        at: None,
        status: 0,
        events: 0,
        text: String::new(),
    };
    if shared.manner.http2 {
        return Ok(over_h2::leave(tcp, plan, left).await);
    }
    Ok(leave(tcp, &plan, left).await)
}

/// Where and how a client leaves.
fn plan(rng: &mut Rng, tokens: u64) -> Plan {
    let phase = Phase::of(rng);
    let is_early = rng.below(EARLY) == 0;
    let (after, within) = match phase {
        Phase::Uploading => (0, NEXT_TOKEN),
        Phase::Waiting => (0, WHOLE_WITHIN),
        Phase::Streaming if is_early => (0, FIRST_TOKEN),
        Phase::Streaming => (1 + rng.below(EVENTS_MAX - 2), NEXT_TOKEN),
    };
    let wait = within.mul_f64(rng.unit());
    let (path, body) = body(rng.below(4), tokens, phase != Phase::Waiting);
    Plan {
        phase,
        path,
        body,
        tokens,
        after,
        wait,
    }
}

/// Calls over HTTP/1.1 and leaves.
async fn leave(mut tcp: TcpStream, plan: &Plan, mut left: Left) -> Left {
    let request = request(&left.id, plan);
    let (way, after, wait) = (left.way, plan.after, plan.wait);
    let mut reading = Reading::default();
    if plan.phase == Phase::Uploading {
        let part = &request[..request.len() - UNSENT];
        if tcp.write_all(part).await.is_ok() {
            tokio::time::sleep(wait).await;
            left.at = Some(Instant::now());
        }
    } else if tcp.write_all(&request).await.is_ok() {
        let goes_on = timeout(PATIENCE, reading.until(&mut tcp, after)).await;
        if goes_on == Ok(true) {
            tokio::time::sleep(wait).await;
            left.at = Some(Instant::now());
            if way == Way::Reading && tcp.shutdown().await.is_ok() {
                // Its end, or that it does not come, tells nothing more.
                let _ = timeout(PATIENCE, reading.until(&mut tcp, u64::MAX)).await;
            }
        }
    }
    drop(tcp);
    left.status = reading.parser.status();
    left.events = reading.events.count;
    left.text = reading.events.text;
    left
}

#[derive(Default)]
struct Reading {
    parser: Parser,
    events: Events,
}

impl Reading {
    /// Reads until so many events came; false when the response or the connection ended before.
    async fn until(&mut self, tcp: &mut TcpStream, events: u64) -> bool {
        let mut buffer = [0; 4096];
        while self.events.count < events {
            let read = match tcp.read(&mut buffer).await {
                Ok(0) | Err(_) => return false,
                Ok(read) => read,
            };
            let come = &mut self.events;
            let progress = self
                .parser
                .feed(&buffer[..read], &mut |body: &[u8]| come.feed(body));
            if !matches!(progress, Ok(Progress::More)) {
                return false;
            }
        }
        true
    }
}

/// A call of one of three dialects, the first of them most often: its path and body.
fn body(dialect: u64, tokens: u64, stream: bool) -> (String, String) {
    let (path, said, cap) = match dialect {
        0 => (
            "completions",
            r#""prompt":"Tell me of the sea.""#,
            "max_tokens",
        ),
        1 => (
            "responses",
            r#""input":"Tell me of the sea.""#,
            "max_output_tokens",
        ),
        _ => (
            "chat/completions",
            r#""messages":[{"role":"user","content":"Tell me of the sea."}]"#,
            "max_completion_tokens",
        ),
    };
    let body = format!(r#"{{"model":"{MODEL}",{said},"{cap}":{tokens},"stream":{stream}}}"#);
    (format!("/v1/{path}"), body)
}

fn request(id: &str, plan: &Plan) -> Vec<u8> {
    let Plan {
        path, body, tokens, ..
    } = plan;
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nx-workload-app: audit\r\nx-request-id: {id}\r\n\
         x-engine-tokens: {tokens}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
