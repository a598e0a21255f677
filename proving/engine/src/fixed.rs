//! The cheapest honest upstream: constant answers over hand-written HTTP/1.1, to measure what a gateway costs.
//!
//! A POST gets a chat completion of about 950 bytes with usage; one whose body has `"stream":true` gets a stream
//! of equal events. Per request, `x-fixed-latency-us`, `x-fixed-events` and `x-fixed-interval-us` override the
//! configuration. Waits are rounded up to the clock's millisecond; a zero wait uses no timer.
//! With a ground truth, an answer in one piece to a call with an `x-request-id` claims tokens that follow from that id, at
//! most [`PROMPT_TOKENS`] and [`UNARY_TOKENS`], so that a mix-up shows.
//! Invariant: usage says one completion token an event (one answer, [`UNARY_TOKENS`], when it is no stream), and
//! a request body is passed over in place, never gathered.
//! Not here: models, keys, validation (the engine proper), HTTP/2.

mod body;
mod connection;
mod head;
mod reply;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::ground_truth::GroundTruth;
use crate::listener;

/// Prompt tokens that every answer claims.
pub const PROMPT_TOKENS: u64 = 100;
/// Completion tokens that an answer in one piece claims.
pub const UNARY_TOKENS: u64 = 100;

/// Settings of one fixed server.
#[derive(Clone, Debug)]
pub struct FixedConfig {
    /// Where to listen; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Wait before the answer, or before a stream's first event.
    pub latency: Duration,
    /// Content events of a stream.
    pub events: u32,
    /// Wait between two events of a stream.
    pub interval: Duration,
    /// Where to note each answer, by its call's `x-request-id`. Usage then differs from call to call.
    pub ground_truth: Option<Arc<GroundTruth>>,
}

impl Default for FixedConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            latency: Duration::ZERO,
            events: 64,
            interval: Duration::ZERO,
            ground_truth: None,
        }
    }
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedStats {
    /// Connections accepted.
    pub connections: u64,
    /// Requests read to their end.
    pub requests: u64,
    /// Those that asked for a stream.
    pub streams: u64,
    /// Bytes of request bodies, without framing.
    pub body_bytes: u64,
}

#[derive(Debug, Default)]
struct Counters {
    connections: AtomicU64,
    requests: AtomicU64,
    streams: AtomicU64,
    body_bytes: AtomicU64,
}

/// What all connections share.
struct Shared {
    config: FixedConfig,
    replies: reply::Replies,
    needles: body::Needles,
    counters: Counters,
}

/// A fixed server that runs on a thread of its own, named `engine-fixed`.
pub struct FixedHandle {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Starts a fixed server on its own thread. Fails if the port cannot be bound.
pub fn spawn_thread(config: FixedConfig) -> io::Result<FixedHandle> {
    let listener = listener::bind(config.listen)?;
    let address = listener.local_addr()?;
    let shared = Arc::new(Shared {
        config,
        replies: reply::Replies::new(),
        needles: body::Needles::new(),
        counters: Counters::default(),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (stop, stopped) = oneshot::channel();
    let serving = Arc::clone(&shared);
    let thread = std::thread::Builder::new()
        .name("engine-fixed".to_owned())
        .spawn(move || {
            let serve = listener::serve(listener, stopped, |stream| {
                serving.counters.connections.fetch_add(1, Ordering::Relaxed);
                connection::serve(stream, Arc::clone(&serving))
            });
            if let Err(error) = runtime.block_on(serve) {
                eprintln!("fixed server stopped: {error}");
            }
        })?;
    Ok(FixedHandle {
        address,
        shared,
        stop: Some(stop),
        thread: Some(thread),
    })
}

impl FixedHandle {
    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.address
    }

    /// Totals as of now.
    pub fn stats(&self) -> FixedStats {
        let counters = &self.shared.counters;
        FixedStats {
            connections: counters.connections.load(Ordering::Relaxed),
            requests: counters.requests.load(Ordering::Relaxed),
            streams: counters.streams.load(Ordering::Relaxed),
            body_bytes: counters.body_bytes.load(Ordering::Relaxed),
        }
    }

    /// Cuts every connection and waits for the thread to end. Dropping the handle does the same.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for FixedHandle {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
