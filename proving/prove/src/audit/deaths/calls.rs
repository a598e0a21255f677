//! Clients that call one after the other, and note how they were answered.
//!
//! Invariant: no two calls have one id.
//! Not here: how often a call ran (`upstream`).

use std::collections::BTreeMap;
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
use tokio::time::timeout;

use super::MODEL;

const PATIENCE: Duration = Duration::from_secs(30);
/// What each call may generate.
const CAP: u64 = 16;

/// Clients at work.
pub(super) struct Callers {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    target: SocketAddr,
    next: AtomicU64,
    is_over: AtomicBool,
    answers: Mutex<BTreeMap<u16, u64>>,
}

impl Callers {
    pub(super) fn start(target: SocketAddr, users: u16) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            target,
            next: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            answers: Mutex::default(),
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
                    (0..users).for_each(|_| drop(all.spawn(user(Arc::clone(&theirs)))));
                    while all.join_next().await.is_some() {}
                });
            })?;
        Ok(Self { shared, thread })
    }

    /// Lets the calls under way end; how many answers had which status, 0 for those that had none.
    pub(super) fn finish(self) -> io::Result<BTreeMap<u16, u64>> {
        self.shared.is_over.store(true, Ordering::Relaxed);
        let panicked = |_| io::Error::other("a client's thread panicked");
        self.thread.join().map_err(panicked)?;
        let answers = self.shared.answers.lock();
        Ok(answers.unwrap_or_else(PoisonError::into_inner).clone())
    }
}

async fn user(shared: Arc<Shared>) {
    let mut kept = None;
    while !shared.is_over.load(Ordering::Relaxed) {
        let tcp = match kept.take() {
            Some(tcp) => Ok(tcp),
            None => TcpStream::connect(shared.target).await,
        };
        let Ok(mut tcp) = tcp else {
            tokio::time::sleep(Duration::from_millis(5)).await;
            continue;
        };
        let n = shared.next.fetch_add(1, Ordering::Relaxed);
        let answered = timeout(PATIENCE, call(&mut tcp, n)).await;
        let (status, is_kept) = answered.ok().flatten().unwrap_or((0, false));
        kept = is_kept.then_some(tcp);
        let mut answers = shared
            .answers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *answers.entry(status).or_default() += 1;
    }
}

/// The answer's status, and whether its connection takes another call.
async fn call(tcp: &mut TcpStream, n: u64) -> Option<(u16, bool)> {
    let body = format!(
        r#"{{"model":"{MODEL}","max_tokens":{CAP},"messages":[{{"role":"user","content":"Tell me of the sea."}}]}}"#
    );
    let length = body.len();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-workload-app: audit\r\nx-request-id: death-{n}\r\n\
         content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    tcp.write_all(request.as_bytes()).await.ok()?;
    let (mut parser, mut buffer) = (Parser::default(), [0; 4096]);
    loop {
        let read = tcp.read(&mut buffer).await.ok()?;
        if read == 0 {
            return None;
        }
        match parser.feed(&buffer[..read], &mut |_: &[u8]| {}) {
            Ok(Progress::More) => {}
            Ok(_) => return Some((parser.status(), true)),
            Err(_) => return None,
        }
    }
}
