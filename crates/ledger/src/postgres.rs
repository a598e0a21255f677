//! Settled rows to the fleet's Postgres.
//!
//! A thread reads what comes after the last row that the server has of this ledger, and inserts it,
//! a batch to a transaction. The queue is the ledger itself: while the server is away rows wait on
//! disk and nothing else changes.
//! Invariant: idempotent by record id alone; the watermark is the server's own last row of this
//! ledger, so a batch whose answer was lost is found there, not sent twice. It counts only if this
//! ledger has that row with that hash: one that was set back and has gone on since would write other
//! rows under the same numbers. Then nothing is shipped, and so nothing is pruned for its age.
//! Not here: how the server is spoken to (`tls`).

mod table;
mod tls;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use postgres::{Client, Config};

use crate::chain::Head;
use crate::hex::hex;
use crate::intake::Ledger;
use crate::read::{ReadError, Reader};
use crate::shared::Shared;
use tls::Connector;

/// How long to wait for new rows, and after the first failure.
const PAUSE: Duration = Duration::from_millis(500);
/// How long at most after many failures.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long a server may take to let us in.
const CONNECT_FOR: Duration = Duration::from_secs(5);
/// How long a machine may be silent before its connection is given up.
const SILENT_FOR: Duration = Duration::from_secs(30);
/// How long the server may take for the last rows.
const LAST_WITHIN: Duration = Duration::from_secs(5);

/// Why rows were not shipped; they wait on disk and are tried again.
#[derive(Debug, thiserror::Error)]
pub enum ShipError {
    /// The connection string is not one.
    #[error("the Postgres connection string is not understood: {0}")]
    Config(String),
    /// The server is away or says no.
    #[error("Postgres: {0}")]
    Server(String),
    /// The ledger cannot be read.
    #[error(transparent)]
    Ledger(#[from] ReadError),
    /// The server's rows of this ledger are not this ledger's.
    #[error(
        "Postgres has another history of this ledger: its row {0} is not in it. A backup was put back, or two gates write copies of one ledger. Rows wait on disk. Stop the gate and run `tollgate usage salvage --new-name`: the ledger goes on under a new name, and all its rows are offered again"
    )]
    Forked(Head),
    /// The trust that `sslmode` asks for cannot be had.
    #[error("the Postgres connection string: {0}")]
    Trust(String),
    /// No thread for it.
    #[error("cannot start the shipper: {0}")]
    Thread(#[source] std::io::Error),
}

impl From<postgres::Error> for ShipError {
    fn from(error: postgres::Error) -> Self {
        let mut says = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            says = format!("{says}: {error}");
            cause = error.source();
        }
        Self::Server(says)
    }
}

/// How shipping goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shipping {
    /// Rows that the server took since the start.
    pub shipped: u64,
    /// The last row that the server has.
    pub up_to: i64,
    /// Tries that failed.
    pub failures: u64,
    /// Why the last try failed; empty when it did not.
    pub last_fault: String,
    /// The server has another history of this ledger: nothing is shipped.
    pub forked: bool,
    /// Whether the connection is encrypted; `None` while there is none.
    pub encrypted: Option<bool>,
}

/// The thread that ships.
#[derive(Debug)]
pub struct Shipper {
    state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    ending: AtomicBool,
    /// The end is not waited for any longer.
    given_up: AtomicBool,
    shipped: AtomicU64,
    up_to: AtomicI64,
    failures: AtomicU64,
    last_fault: Mutex<String>,
    forked: AtomicBool,
    /// 0 when there is no connection, 1 for one in clear, 2 for one that is encrypted.
    link: AtomicU64,
    ledger: Arc<Shared>,
}

impl State {
    fn fault(&self) -> MutexGuard<'_, String> {
        self.last_fault
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a connection string says.
fn understood(server: &str) -> Result<(Config, tls::Connector), ShipError> {
    let (server, security) = tls::read(server)?;
    let mut config: Config = server
        .parse()
        .map_err(|error: postgres::Error| ShipError::Config(error.to_string()))?;
    let connector = security.apply(&mut config)?;
    Ok((config, connector))
}

impl Shipper {
    /// Starts shipping the rows of `ledger` to `server`, a connection string such as
    /// `postgres://gate@db/usage?sslmode=verify-full`. The table `tollgate_usage` is made where there is none. From now
    /// on rows are not pruned for their age before they are shipped.
    ///
    /// # Errors
    /// When the string is not understood, the certificates it names cannot be read, or no thread can
    /// be started. A server that is away is not
    /// an error.
    pub fn start(ledger: &Ledger, server: &str) -> Result<Self, ShipError> {
        let (mut config, connector) = understood(server)?;
        config
            .connect_timeout(CONNECT_FOR)
            .tcp_user_timeout(SILENT_FOR)
            .keepalives_idle(SILENT_FOR)
            .application_name("tollgate");
        let shared = ledger.shared();
        shared.shipped.store(0, Ordering::Release);
        let state = Arc::new(State {
            ending: AtomicBool::new(false),
            given_up: AtomicBool::new(false),
            shipped: AtomicU64::new(0),
            up_to: AtomicI64::new(0),
            failures: AtomicU64::new(0),
            last_fault: Mutex::default(),
            forked: AtomicBool::new(false),
            link: AtomicU64::new(0),
            ledger: shared,
        });
        let (path, shared) = (ledger.path().to_owned(), Arc::clone(&state));
        let thread = thread::Builder::new()
            .name("ledger-ship".to_owned())
            .spawn(move || run(&path, &Server { config, connector }, &shared))
            .map_err(ShipError::Thread)?;
        Ok(Self {
            state,
            thread: Some(thread),
        })
    }

    /// Whether it could be started with this server; nothing is begun.
    ///
    /// # Errors
    /// As [`Self::start`], but for the thread.
    pub fn check(server: &str) -> Result<(), ShipError> {
        understood(server).map(drop)
    }

    /// How it goes.
    #[must_use]
    pub fn shipping(&self) -> Shipping {
        Shipping {
            shipped: self.state.shipped.load(Ordering::Relaxed),
            up_to: self.state.up_to.load(Ordering::Relaxed),
            failures: self.state.failures.load(Ordering::Relaxed),
            last_fault: self.state.fault().clone(),
            forked: self.state.forked.load(Ordering::Relaxed),
            encrypted: match self.state.link.load(Ordering::Relaxed) {
                0 => None,
                link => Some(link == 2),
            },
        }
    }

    /// Ships what is left and no more. A server that is away or does not answer within five seconds
    /// gets it after the next start.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        self.state.ending.store(true, Ordering::Release);
        let Some(thread) = self.thread.take() else {
            return;
        };
        thread.thread().unpark();
        let until = Instant::now() + LAST_WITHIN;
        while !thread.is_finished() {
            if Instant::now() > until {
                // It hangs in a call that has no timeout, and ends with the process.
                self.state.given_up.store(true, Ordering::Release);
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
        debug_assert!(thread.join().is_ok(), "the shipper panicked");
    }
}

impl Drop for Shipper {
    fn drop(&mut self) {
        self.end();
    }
}

/// How the server is reached.
struct Server {
    config: Config,
    connector: Connector,
}

fn run(path: &Path, server: &Server, state: &State) {
    let mut link = None;
    let mut pause = PAUSE;
    while !state.given_up.load(Ordering::Acquire) {
        // Before the rows are read, so that none is missed that was there when the end began.
        let is_ending = state.ending.load(Ordering::Acquire);
        if is_ending && !state.fault().is_empty() {
            return;
        }
        match ship(path, server, &mut link, state) {
            Ok(true) => continue,
            Ok(false) => pause = PAUSE,
            Err(error) => {
                link = None;
                state.link.store(0, Ordering::Relaxed);
                // Until a connection finds it otherwise.
                if matches!(error, ShipError::Forked(_)) {
                    state.forked.store(true, Ordering::Relaxed);
                }
                // Before it is counted: who sees the failure sees why.
                *state.fault() = error.to_string();
                state.failures.fetch_add(1, Ordering::Relaxed);
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
        if is_ending {
            return;
        }
        thread::park_timeout(pause);
    }
}

/// A connection to the server and to the ledger, and how far the first has come with the second.
struct Link {
    client: Client,
    reader: Reader,
    ledger: String,
    up_to: i64,
}

/// Ships a batch; whether there may be more.
fn ship(
    path: &Path,
    server: &Server,
    link: &mut Option<Link>,
    state: &State,
) -> Result<bool, ShipError> {
    let link = match link {
        Some(link) => link,
        None => {
            let made = connect(path, server, &state.ledger)?;
            let encrypted = server.connector.was_used();
            state
                .link
                .store(1 + u64::from(encrypted), Ordering::Relaxed);
            state.forked.store(false, Ordering::Relaxed);
            link.insert(made)
        }
    };
    let rows = link.reader.after(link.up_to, table::BATCH)?;
    if let Some(last) = rows.last() {
        let inserted = table::insert(&mut link.client, &link.ledger, &rows)?;
        link.up_to = last.seq;
        state.shipped.fetch_add(inserted, Ordering::Relaxed);
    }
    state.fault().clear();
    state.up_to.store(link.up_to, Ordering::Relaxed);
    state.ledger.shipped.store(link.up_to, Ordering::Release);
    Ok(rows.len() == table::BATCH)
}

fn connect(path: &Path, server: &Server, ledger: &Shared) -> Result<Link, ShipError> {
    let reader = ledger.reader(path)?;
    let (id, _) = reader.origin()?;
    let ledger = hex(&id);
    server.connector.forget();
    let mut client = server.config.connect(server.connector.clone())?;
    table::create(&mut client)?;
    let mut up_to = 0;
    if let Some(last) = table::watermark(&mut client, &ledger)? {
        // One that was pruned cannot be held against anything; what is after it is sent.
        if reader.has(last)? == Some(false) {
            return Err(ShipError::Forked(last));
        }
        up_to = last.seq;
    }
    Ok(Link {
        client,
        reader,
        ledger,
        up_to,
    })
}
