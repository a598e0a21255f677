//! Users who call a gate in a closed loop, each call under a request id of its own.
//!
//! Invariant: an id is sent once: a call that came to nothing is not sent again under its name. What each came to
//! is known at the end.
//! Not here: users who leave (`aborts`).

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use load::client::{Parser, Progress};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Most tokens that a call lets the engine generate.
pub(super) const OUTPUT_CAP: u64 = 128;
/// Between two tries to connect, and after an answer that was none.
const PAUSE: Duration = Duration::from_millis(5);
/// A call that takes longer came to nothing.
const PATIENCE: Duration = Duration::from_secs(30);
const BUFFER_BYTES: usize = 16 << 10;
/// Beyond the number of any call.
const NONE: u64 = u64::MAX;

/// What a call came to: 0 for nothing, else the status of a whole answer.
pub(super) type Status = u16;

/// A call that was sent.
#[derive(Debug)]
pub(super) struct Heard {
    pub(super) id: Box<str>,
    /// Its place among all calls; on one connection they were sent in this order, each after the answer before.
    pub(super) number: u64,
    pub(super) connection: u64,
    pub(super) status: Status,
}

/// Users at work.
pub(super) struct Callers {
    shared: Arc<Shared>,
    thread: JoinHandle<io::Result<()>>,
}

struct Shared {
    target: SocketAddr,
    workload: String,
    next: AtomicU64,
    connections: AtomicU64,
    /// The number of the call that each user waits for, or [`NONE`].
    under_way: Box<[AtomicU64]>,
    answered: AtomicU64,
    /// Answers that said that the ledger is unavailable.
    unavailable: AtomicU64,
    stop: AtomicBool,
    heard: Mutex<Vec<Heard>>,
}

impl Callers {
    /// So many users of a workload begin to call; they have a thread of their own.
    pub(super) fn start(target: SocketAddr, workload: &str, users: u16) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            target,
            workload: workload.to_owned(),
            next: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            under_way: (0..users).map(|_| AtomicU64::new(NONE)).collect(),
            answered: AtomicU64::new(0),
            unavailable: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            heard: Mutex::default(),
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("callers".into())
            .spawn(move || {
                runtime.block_on(async {
                    let mut all = JoinSet::new();
                    let users = 0..usize::from(users);
                    users.for_each(|n| drop(all.spawn(user(Arc::clone(&theirs), n))));
                    while all.join_next().await.is_some() {}
                });
                Ok(())
            })?;
        Ok(Self { shared, thread })
    }

    /// Answers of status 200 so far.
    pub(super) fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Refusals for want of a ledger so far.
    pub(super) fn unavailable(&self) -> u64 {
        self.shared.unavailable.load(Ordering::Relaxed)
    }

    /// How many calls have begun.
    pub(super) fn begun(&self) -> u64 {
        self.shared.next.load(Ordering::SeqCst)
    }

    /// Whether none of the first so many calls is under way.
    pub(super) fn have_ended(&self, first: u64) -> bool {
        let all = self.shared.under_way.iter();
        all.map(|call| call.load(Ordering::SeqCst))
            .all(|call| call >= first)
    }

    /// Lets calls under way end, and gives what each came to.
    pub(super) fn finish(self) -> io::Result<Vec<Heard>> {
        self.shared.stop.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(ended) => ended?,
            Err(_) => return Err(io::Error::other("a caller's thread panicked")),
        }
        let mut heard = self
            .shared
            .heard
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::take(&mut *heard))
    }
}

async fn user(shared: Arc<Shared>, user: usize) {
    let mut heard = Vec::new();
    while !shared.stop.load(Ordering::Relaxed) {
        match TcpStream::connect(shared.target).await {
            Ok(tcp) => {
                calls(&shared, tcp, &shared.under_way[user], &mut heard).await;
                shared.under_way[user].store(NONE, Ordering::SeqCst);
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
    let mut all = shared.heard.lock().unwrap_or_else(PoisonError::into_inner);
    all.append(&mut heard);
}

/// Calls on one connection until it breaks.
async fn calls(shared: &Shared, mut tcp: TcpStream, under_way: &AtomicU64, heard: &mut Vec<Heard>) {
    // Without it only latency suffers.
    let _ = tcp.set_nodelay(true);
    let mut buffer = vec![0; BUFFER_BYTES];
    let connection = shared.connections.fetch_add(1, Ordering::Relaxed);
    while !shared.stop.load(Ordering::Relaxed) {
        // Before it has a number it waits for none that is lower than this.
        under_way.store(shared.next.load(Ordering::SeqCst), Ordering::SeqCst);
        let number = shared.next.fetch_add(1, Ordering::SeqCst);
        let id = id(&shared.workload, number);
        let request = request(&shared.workload, &id);
        let call = call(&mut tcp, &request, &mut buffer);
        let answer = tokio::time::timeout(PATIENCE, call).await.ok().flatten();
        let status = answer.as_ref().map_or(0, |answer| answer.status);
        heard.push(Heard {
            id,
            number,
            connection,
            status,
        });
        let Some(answer) = answer else {
            return;
        };
        if answer.status == 200 {
            shared.answered.fetch_add(1, Ordering::Relaxed);
        } else {
            let unavailable = u64::from(answer.says_unavailable);
            shared.unavailable.fetch_add(unavailable, Ordering::Relaxed);
            tokio::time::sleep(PAUSE).await;
        }
        if !answer.keeps {
            return;
        }
    }
}

struct Answer {
    status: Status,
    keeps: bool,
    says_unavailable: bool,
}

/// One call; `None` when it came to no whole answer.
async fn call(tcp: &mut TcpStream, request: &[u8], buffer: &mut [u8]) -> Option<Answer> {
    tcp.write_all(request).await.ok()?;
    let mut parser = Parser::new();
    let mut says_unavailable = false;
    loop {
        let read = tcp.read(buffer).await.ok().filter(|read| *read > 0)?;
        let progress = parser.feed(&buffer[..read], &mut |body: &[u8]| {
            let needle = b"ledger_unavailable";
            says_unavailable |= body.windows(needle.len()).any(|part| part == needle);
        });
        if let Progress::Done { .. } = progress.ok()? {
            return Some(Answer {
                status: parser.status(),
                keeps: parser.keep_alive(),
                says_unavailable: says_unavailable && parser.status() == 503,
            });
        }
    }
}

fn id(workload: &str, n: u64) -> Box<str> {
    format!("{workload}-{n}").into()
}

fn request(workload: &str, id: &str) -> Vec<u8> {
    let body = format!(
        r#"{{"model":"audit","max_tokens":{OUTPUT_CAP},"messages":[{{"role":"user","content":"Say one of a thousand things."}}]}}"#
    );
    let length = body.len();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-workload-app: {workload}\r\nx-request-id: {id}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
