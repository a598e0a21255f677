//! Clients who leave: each opens a stream on a connection of its own, and closes it before its end.
//!
//! Invariant: where a client leaves follows from the seed and the call's number alone.
//! Not here: whether what became of it was right (`tally`).

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::chance::Chance;
use load::{Parser, Progress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::events::Events;
use super::{FIRST_TOKEN, MODEL, NEXT_TOKEN};

/// Tokens of a stream that nobody leaves.
const STREAM_TOKENS: u64 = 50;
/// One in so many leaves before the first event.
const EARLY: u64 = 10;
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(5);

/// How a client leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// It closes its sending side, and reads what still comes.
    Reading,
    /// It closes altogether.
    AtOnce,
}

/// One client that left, and what it had received.
#[derive(Debug)]
pub(super) struct Left {
    pub(super) id: Box<str>,
    pub(super) way: Way,
    /// When it left; `None` when its stream had ended by then.
    pub(super) at: Option<Instant>,
    pub(super) status: u16,
    pub(super) events: u64,
    pub(super) text: String,
}

/// Clients at work.
pub(super) struct Leavers {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    target: SocketAddr,
    count: u64,
    seed: u64,
    next: AtomicU64,
    left: Mutex<Vec<Left>>,
}

impl Leavers {
    pub(super) fn start(target: SocketAddr, count: u64, users: u16, seed: u64) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            target,
            count,
            seed,
            next: AtomicU64::new(0),
            left: Mutex::default(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("leavers".into())
            .spawn(move || {
                runtime.block_on(async {
                    let mut all = JoinSet::new();
                    (0..users).for_each(|_| drop(all.spawn(user(Arc::clone(&theirs)))));
                    while all.join_next().await.is_some() {}
                });
            })?;
        Ok(Self { shared, thread })
    }

    pub(super) fn left(&self) -> u64 {
        let left = self
            .shared
            .left
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        left.len() as u64
    }

    pub(super) fn are_done(&self) -> bool {
        self.thread.is_finished()
    }

    pub(super) fn finish(self) -> io::Result<Vec<Left>> {
        let panicked = |_| io::Error::other("a client's thread panicked");
        self.thread.join().map_err(panicked)?;
        let mut left = self
            .shared
            .left
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *left))
    }
}

async fn user(shared: Arc<Shared>) {
    loop {
        let n = shared.next.fetch_add(1, Ordering::Relaxed);
        if n >= shared.count {
            return;
        }
        let mut chance = Chance::new(shared.seed ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let left = loop {
            match call(&shared, n, &mut chance).await {
                Ok(left) => break left,
                // No connection, so no call either.
                Err(_) => tokio::time::sleep(PAUSE).await,
            }
        };
        let mut all = shared.left.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(left);
    }
}

/// Calls and leaves. An error: there was no connection.
async fn call(shared: &Shared, n: u64, chance: &mut Chance) -> io::Result<Left> {
    let mut tcp = TcpStream::connect(shared.target).await?;
    tcp.set_nodelay(true)?;
    let way = if chance.below(2) == 0 {
        Way::Reading
    } else {
        Way::AtOnce
    };
    let is_early = chance.below(EARLY) == 0;
    let after = if is_early {
        0
    } else {
        1 + chance.below(STREAM_TOKENS - 2)
    };
    let within = if is_early { FIRST_TOKEN } else { NEXT_TOKEN };
    let wait = within.mul_f64(chance.unit());
    let mut left = Left {
        id: format!("audit-{n}").into(),
        way,
        at: None,
        status: 0,
        events: 0,
        text: String::new(),
    };
    let request = request(&left.id, chance.below(4));
    let mut reading = Reading::default();
    if tcp.write_all(&request).await.is_ok() {
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
    Ok(left)
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

/// A streamed call of one of three dialects, the first of them most often.
fn request(id: &str, dialect: u64) -> Vec<u8> {
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
    let body = format!(r#"{{"model":"{MODEL}",{said},"{cap}":{STREAM_TOKENS},"stream":true}}"#);
    let length = body.len();
    format!(
        "POST /v1/{path} HTTP/1.1\r\nhost: gate\r\nx-workload-app: audit\r\nx-request-id: {id}\r\n\
         x-engine-tokens: {STREAM_TOKENS}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
