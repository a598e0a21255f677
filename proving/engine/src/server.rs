//! The engine as a server: its socket, its connections, its thread.
//!
//! Invariant: HTTP/1.1 and HTTP/2 with prior knowledge on one port; when serving stops, every connection is cut.
//! Not here: what a request means (`route`). TLS is not served.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::config::EngineConfig;
use crate::exporter::{self, Gauge};
use crate::faults::Storm;
use crate::generation::{Identity, fresh_id};
use crate::inspect::Inspector;
use crate::metrics::{Metrics, Stats};
use crate::model::Model;
use crate::real_time::{self, Command};
use crate::scheduler::RequestId;
use crate::{listener, route};

const MAX_STREAMS_PER_CONNECTION: u32 = 8192;
const H2_STREAM_WINDOW_BYTES: u32 = 1 << 20;
const H2_CONNECTION_WINDOW_BYTES: u32 = 16 << 20;

/// An engine that holds its port and does not yet answer.
pub struct Engine {
    listener: TcpListener,
    address: SocketAddr,
    state: Arc<State>,
    work: mpsc::UnboundedReceiver<Command>,
    exporter: Option<TcpListener>,
}

/// What all requests share.
pub(crate) struct State {
    pub(crate) config: EngineConfig,
    pub(crate) models: Vec<Model>,
    pub(crate) started_s: u64,
    /// To the simulated machine; nobody reads it where there is none.
    pub(crate) engine: mpsc::UnboundedSender<Command>,
    metrics: Mutex<Metrics>,
    inspector: Option<Mutex<Inspector>>,
    storm: Mutex<Storm>,
    gauge: Option<Mutex<Gauge>>,
    id_seed: u64,
    numbers: AtomicU64,
}

impl Engine {
    /// Reads the models' vocabularies and takes the port. Fails if either cannot be had.
    pub fn bind(config: EngineConfig) -> io::Result<Self> {
        let listener = listener::bind(config.listen)?;
        let address = listener.local_addr()?;
        let (engine, work) = mpsc::unbounded_channel();
        let state = State::new(config, engine)
            .map_err(|why| io::Error::new(io::ErrorKind::InvalidData, why))?;
        let exporter = state.config.dcgm.map(listener::bind).transpose()?;
        Ok(Self {
            listener,
            address,
            state: Arc::new(state),
            work,
            exporter,
        })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Where the DCGM exporter's page is, if it is anywhere.
    pub fn dcgm_addr(&self) -> Option<SocketAddr> {
        self.exporter
            .as_ref()
            .and_then(|listener| listener.local_addr().ok())
    }

    /// Answers until `shutdown` resolves, then cuts what is in flight. Needs a tokio runtime with I/O and time.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let mut connections = JoinSet::new();
        // Ends with us, like the connections.
        let mut machine = JoinSet::new();
        if let Some(hardware) = self.state.config.hardware.clone() {
            machine.spawn(real_time::run(hardware, Arc::clone(&self.state), self.work));
        }
        if let Some(exporter) = self.exporter {
            machine.spawn(exporter::serve(exporter, Arc::clone(&self.state)));
        }
        let mut shutdown = std::pin::pin!(shutdown);
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => return Ok(()),
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => drop(connections.spawn(connection(stream, Arc::clone(&self.state)))),
                    // Out of descriptors: let some connections end before trying again.
                    Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
                },
            }
        }
    }
}

async fn connection(stream: TcpStream, state: Arc<State>) {
    // Without it only latency suffers, and a broken socket shows itself on the first read.
    let _ = stream.set_nodelay(true);
    let service =
        hyper::service::service_fn(move |request| route::answer(Arc::clone(&state), request));
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().header_read_timeout(None);
    builder
        .http2()
        .max_concurrent_streams(MAX_STREAMS_PER_CONNECTION)
        .initial_stream_window_size(H2_STREAM_WINDOW_BYTES)
        .initial_connection_window_size(H2_CONNECTION_WINDOW_BYTES);
    // An error here is a client that left or spoke no HTTP; either way the connection is over.
    let _ = builder
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

impl State {
    fn new(config: EngineConfig, engine: mpsc::UnboundedSender<Command>) -> Result<Self, String> {
        let date = config.date.clone().unwrap_or_else(today);
        Ok(Self {
            models: Model::all(&config, &date)?,
            started_s: now_s(),
            engine,
            metrics: Mutex::new(Metrics::new(&config)),
            inspector: config.inspect.then(Mutex::default),
            storm: Mutex::default(),
            gauge: config
                .hardware
                .as_ref()
                .map(|hardware| Mutex::new(Gauge::new(hardware.gpus.clone()))),
            id_seed: config.seed ^ since_1970().as_nanos() as u64,
            numbers: AtomicU64::new(0),
            config,
        })
    }

    pub(crate) fn metrics(&self) -> MutexGuard<'_, Metrics> {
        self.metrics.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn storm(&self) -> MutexGuard<'_, Storm> {
        self.storm.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn gauge(&self) -> Option<MutexGuard<'_, Gauge>> {
        self.gauge
            .as_ref()
            .map(|g| g.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn inspector(&self) -> Option<MutexGuard<'_, Inspector>> {
        self.inspector
            .as_ref()
            .map(|i| i.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A fresh name for a sequence in the simulated machine.
    pub(crate) fn request_id(&self) -> RequestId {
        RequestId(self.numbers.fetch_add(1, Ordering::Relaxed))
    }

    /// A fresh identity for an answer of `model`.
    pub(crate) fn identity(&self, prefix: &str, model: &str) -> Identity {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        Identity {
            id: fresh_id(prefix, self.id_seed, number),
            created: now_s(),
            model: model.to_owned(),
        }
    }
}

fn now_s() -> u64 {
    since_1970().as_secs()
}

/// `YYYY-MM-DD` in UTC, by the proleptic Gregorian calendar (days to civil: Howard Hinnant, 2013).
fn today() -> String {
    let days = (now_s() / 86_400) as i64 + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    format!("{:04}-{month:02}-{day:02}", era * 400 + year + next)
}

fn since_1970() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// An engine that runs on a thread of its own.
pub struct EngineHandle {
    address: SocketAddr,
    state: Arc<State>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts an engine on its own thread with its own single-threaded runtime. Fails if the port cannot be bound.
pub fn spawn_thread(config: EngineConfig) -> io::Result<EngineHandle> {
    let engine = Engine::bind(config)?;
    let (address, state) = (engine.local_addr(), Arc::clone(&engine.state));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (stop, stopped) = oneshot::channel();
    let thread = std::thread::Builder::new()
        .name("engine".to_owned())
        .spawn(move || {
            let shutdown = async { drop(stopped.await) };
            if let Err(error) = runtime.block_on(engine.serve(shutdown)) {
                eprintln!("engine stopped: {error}");
            }
        })?;
    Ok(EngineHandle {
        address,
        state,
        stop: Some(stop),
        thread: Some(thread),
    })
}

impl EngineHandle {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Totals as of now.
    pub fn stats(&self) -> Stats {
        self.state.metrics().stats()
    }

    /// Cuts every connection and waits for the thread to end. Dropping the handle does the same.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for EngineHandle {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
