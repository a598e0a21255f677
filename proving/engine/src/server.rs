//! The engine as a server: its socket, its connections, its thread.
//!
//! Invariant: HTTP/1.1 and HTTP/2 with prior knowledge on one port; when serving stops, every connection is cut.
//! Not here: what a request means (`route`). TLS is not served.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use crate::config::EngineConfig;
use crate::metrics::Stats;
use crate::real_time::{self, Command};
use crate::state::State;
use crate::{dcgm, listener, route};

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
        let state = self.state;
        // Ends with us, like the connections.
        let mut machine = JoinSet::new();
        if let Some(hardware) = state.config.hardware.clone() {
            let recorder = Arc::clone(&state.recorder);
            machine.spawn(real_time::run(hardware, recorder, self.work));
        }
        if let Some(exporter) = self.exporter {
            machine.spawn(dcgm::serve(exporter, state.recorder.gpus.clone()));
        }
        listener::serve(self.listener, shutdown, |stream| {
            connection(stream, Arc::clone(&state))
        })
        .await
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

/// An engine that runs on a thread of its own.
pub struct EngineHandle {
    address: SocketAddr,
    exporter: Option<SocketAddr>,
    state: Arc<State>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts an engine on its own thread with its own single-threaded runtime. Fails if the port cannot be bound.
pub fn spawn_thread(config: EngineConfig) -> io::Result<EngineHandle> {
    let engine = Engine::bind(config)?;
    let (address, exporter) = (engine.local_addr(), engine.dcgm_addr());
    let state = Arc::clone(&engine.state);
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
        exporter,
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

    /// Where the DCGM exporter's page is, if it is anywhere.
    pub fn dcgm_addr(&self) -> Option<SocketAddr> {
        self.exporter
    }

    /// Totals as of now.
    pub fn stats(&self) -> Stats {
        self.state.recorder.metrics().stats()
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
