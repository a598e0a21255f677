//! Upstreams that record what arrives: real servers on loopback or elsewhere that demand their credential, answer as
//! OpenAI does, and can be told to break, fail, hang or be down.
//!
//! Invariant: what arrived is kept as it was, a head before its body and a body as far as it came, and so is every byte of
//! an answer before it is sent; both are bounded. What an answer says of its tokens differs from call to call, so that none can be made up.
//! Not here: what had to arrive (`check`), the texts of answers (`reply`).

mod reply;
mod serve;
#[cfg(test)]
mod tests;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::suite::{Behaviour, Upstream};

/// Calls that are kept, bytes of one's body, and bytes of all bodies; whoever calls after that is told so.
const CALLS_MAX: usize = 20_000;
const BODY_BYTES_MAX: usize = 4 << 20;
const BYTES_MAX: usize = 256 << 20;
/// How long a listener may take to open or close.
const PATIENCE: Duration = Duration::from_secs(5);

/// One call as it arrived, and what it got.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) peer: SocketAddr,
    pub(super) method: String,
    /// With its query.
    pub(super) path: String,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    /// As far as it came.
    pub(super) body: Vec<u8>,
    /// The body came to its end.
    pub(super) is_whole: bool,
    /// The body was longer than what is kept.
    pub(super) is_cut: bool,
    pub(super) sent: Vec<u8>,
    /// When the last piece was handed to the connection.
    pub(super) last_sent: Option<Instant>,
    pub(super) usage: Option<Usage>,
}

/// What an answer says of its tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) prompt: u64,
    pub(super) completion: u64,
}

/// What the server and its owner share.
#[derive(Debug)]
struct Book {
    credential: Vec<u8>,
    refuses: http::StatusCode,
    does: Behaviour,
    calls: Vec<Seen>,
    /// Of all bodies.
    bytes: usize,
    /// Every byte of each connection, whether or not it was of a call.
    wires: Vec<(SocketAddr, Vec<u8>)>,
    wire_bytes: usize,
}

type Shared = Arc<Mutex<Book>>;

fn open(shared: &Shared) -> MutexGuard<'_, Book> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the server's thread is told.
enum Command {
    /// Listens, or does not and cuts all connections; then says how that went.
    Listen(bool, SyncSender<io::Result<()>>),
}

/// A recording upstream on a thread of its own; dropped, it is gone.
pub(crate) struct Recorder {
    address: SocketAddr,
    shared: Shared,
    commands: Option<mpsc::UnboundedSender<Command>>,
    thread: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Listens at an address.
    pub(crate) fn start(upstream: &Upstream, address: SocketAddr) -> io::Result<Self> {
        let shared = Arc::new(Mutex::new(Book {
            credential: upstream.credential.clone().into_bytes(),
            refuses: upstream.refuses,
            does: Behaviour::Answer,
            calls: Vec::new(),
            bytes: 0,
            wires: Vec::new(),
            wire_bytes: 0,
        }));
        let runtime = crate::runtime::make()?;
        let (commands, told) = mpsc::unbounded_channel();
        let book = Arc::clone(&shared);
        let listener = runtime.block_on(tokio::net::TcpListener::bind(address))?;
        let address = listener.local_addr()?;
        let thread = std::thread::Builder::new()
            .name(format!("upstream-{}", upstream.name))
            .spawn(move || runtime.block_on(serve::serve(listener, told, &book)))?;
        Ok(Self {
            address,
            shared,
            commands: Some(commands),
            thread: Some(thread),
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it does from now on.
    pub(super) fn set(&self, does: Behaviour) -> io::Result<()> {
        let before = std::mem::replace(&mut open(&self.shared).does, does);
        match (before, does) {
            (Behaviour::Down, Behaviour::Down) => Ok(()),
            (_, Behaviour::Down) => self.listen(false),
            (Behaviour::Down, _) => self.listen(true),
            _ => Ok(()),
        }
    }

    fn listen(&self, is_open: bool) -> io::Result<()> {
        let gone = || io::Error::other("bug: the upstream's thread is gone");
        let (done, heard) = sync_channel(1);
        let commands = self.commands.as_ref().ok_or_else(gone)?;
        commands
            .send(Command::Listen(is_open, done))
            .map_err(|_| gone())?;
        match heard.recv_timeout(PATIENCE) {
            Ok(done) => done,
            Err(RecvTimeoutError::Timeout) => Err(io::ErrorKind::TimedOut.into()),
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        }
    }

    /// How many calls are kept.
    pub(super) fn count(&self) -> usize {
        open(&self.shared).calls.len()
    }

    /// The calls since there were so many.
    pub(super) fn since(&self, count: usize) -> Vec<Seen> {
        let book = open(&self.shared);
        book.calls.get(count..).unwrap_or_default().to_vec()
    }

    /// Whether no further call could be kept.
    pub(super) fn is_full(&self) -> bool {
        let book = open(&self.shared);
        book.calls.len() >= CALLS_MAX || book.bytes >= BYTES_MAX || book.wire_bytes >= BYTES_MAX
    }

    /// How many bytes each connection has brought.
    pub(super) fn wires(&self) -> Vec<usize> {
        let book = open(&self.shared);
        book.wires.iter().map(|(_, bytes)| bytes.len()).collect()
    }

    /// What each has brought since it had brought so many, and what new ones have.
    pub(super) fn wires_since(&self, before: &[usize]) -> Vec<(SocketAddr, Vec<u8>)> {
        let book = open(&self.shared);
        let wires = book.wires.iter().enumerate();
        let new = wires.map(|(at, (peer, bytes))| {
            let from = before.get(at).copied().unwrap_or(0);
            (*peer, bytes.get(from..).unwrap_or_default().to_vec())
        });
        new.filter(|(_, bytes)| !bytes.is_empty()).collect()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        drop(self.commands.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
