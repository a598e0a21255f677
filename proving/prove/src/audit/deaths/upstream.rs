//! An upstream that notes every call that it has whole, and dies with some of them.
//!
//! Invariant: a call counts as run when its last byte was read, whatever is said of it then; a death counts when the
//! connection had served a call before.
//! Not here: what the gate makes of it (`deaths`).

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use experiment::random::Rng;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::over_h2;

/// The upstream; its thread ends with the process.
pub(super) struct Mortal {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
}

/// What all connections share.
pub(super) struct Shared {
    seed: u64,
    connections: AtomicU64,
    deaths: AtomicU64,
    runs: Mutex<HashMap<Box<str>, u64>>,
}

/// What becomes of one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is answered.
    Answered,
    /// It is answered, and the idle connection closed a moment later.
    Last,
    /// The connection is closed in order.
    Closed,
    /// The connection is reset.
    Reset,
    /// The connection is closed in the middle of the answer's head.
    HalfHead,
}

impl Fate {
    /// One in three dies; the first call of a connection never does.
    pub(super) fn of(rng: &mut Rng, served: u64) -> Self {
        match rng.below(9) {
            _ if served == 0 => Self::Answered,
            0 => Self::Closed,
            1 => Self::Reset,
            2 => Self::HalfHead,
            3 => Self::Last,
            _ => Self::Answered,
        }
    }

    pub(super) fn is_death(self) -> bool {
        matches!(self, Self::Closed | Self::Reset | Self::HalfHead)
    }
}

pub(super) const BODY: &str =
    r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}"#;

impl Mortal {
    pub(super) fn start(seed: u64, http2: bool) -> io::Result<Self> {
        let runtime = crate::runtime::make()?;
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            seed,
            connections: AtomicU64::new(0),
            deaths: AtomicU64::new(0),
            runs: Mutex::default(),
        });
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("mortal".into())
            .spawn(move || {
                let local = tokio::task::LocalSet::new();
                local.block_on(&runtime, async {
                    while let Ok((tcp, _)) = listener.accept().await {
                        let shared = Arc::clone(&theirs);
                        let rng = shared.rng();
                        if http2 {
                            tokio::task::spawn_local(over_h2::serve(tcp, shared, rng));
                        } else {
                            tokio::task::spawn_local(serve(tcp, shared, rng));
                        }
                    }
                });
            })?;
        Ok(Self { address, shared })
    }

    /// Deaths with a call on a connection that had served another.
    pub(super) fn deaths(&self) -> u64 {
        self.shared.deaths.load(Ordering::Relaxed)
    }

    /// How often each call ran, by request id.
    pub(super) fn runs(&self) -> HashMap<Box<str>, u64> {
        let runs = self.shared.runs.lock();
        runs.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Shared {
    fn rng(&self) -> Rng {
        let n = self.connections.fetch_add(1, Ordering::Relaxed);
        Rng::new(self.seed ^ n.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// A call is there whole.
    pub(super) fn ran(&self, id: &str) {
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        *runs.entry(id.into()).or_default() += 1;
    }

    pub(super) fn died(&self) {
        self.deaths.fetch_add(1, Ordering::Relaxed);
    }
}

async fn serve(mut tcp: TcpStream, shared: Arc<Shared>, mut rng: Rng) {
    if tcp.set_nodelay(true).is_err() {
        return;
    }
    let mut input = Vec::new();
    let mut served = 0;
    while let Some(id) = call(&mut tcp, &mut input).await {
        shared.ran(&id);
        let fate = Fate::of(&mut rng, served);
        served += 1;
        tokio::time::sleep(Duration::from_micros(rng.below(3000))).await;
        if fate.is_death() {
            shared.died();
        }
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{BODY}",
            BODY.len()
        );
        let said = match fate {
            Fate::Answered | Fate::Last => answer.as_bytes(),
            Fate::HalfHead => &answer.as_bytes()[..30],
            Fate::Closed => return,
            Fate::Reset => {
                // Without this it closes in order, which is a death too.
                let _reset = rustix::net::sockopt::set_socket_linger(&tcp, Some(Duration::ZERO));
                return;
            }
        };
        if tcp.write_all(said).await.is_err() || fate == Fate::HalfHead {
            return;
        }
        if fate == Fate::Last {
            tokio::time::sleep(Duration::from_micros(rng.below(1500))).await;
            return;
        }
    }
}

/// The id of the next call, once all of it is there.
async fn call(tcp: &mut TcpStream, input: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = input.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&input[..end]).into_owned();
            let field = |name: &str| {
                let mut fields = head.lines().filter_map(|line| line.split_once(": "));
                fields.find(|(known, _)| known.eq_ignore_ascii_case(name))
            };
            let length: usize = field("content-length")?.1.parse().ok()?;
            let whole = end + 4 + length;
            if input.len() >= whole {
                input.drain(..whole);
                return Some(field("x-request-id")?.1.to_owned());
            }
        }
        let mut buffer = [0; 8192];
        match tcp.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(read) => input.extend_from_slice(&buffer[..read]),
        }
    }
}
