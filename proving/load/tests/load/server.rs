//! A scripted server for tests: it runs a script for each request, with one thread per connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Returns the steps for the request of this number.
pub(crate) type Script = fn(u64) -> Vec<Step>;

/// The head of a stream of events.
pub(crate) const EVENTS: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One step of the answer to a request.
#[derive(Clone)]
pub(crate) enum Step {
    Bytes(Vec<u8>),
    Wait(Duration),
    Until(Gate),
    Close,
}

/// What answers wait for until the test has seen what it waits for itself.
#[derive(Clone, Default)]
pub(crate) struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// For all who wait, and whoever comes.
    pub(crate) fn open(&self) {
        let (is_open, opened) = &*self.0;
        *is_open.lock().expect("no panic") = true;
        opened.notify_all();
    }

    fn pass(&self) {
        let (is_open, opened) = &*self.0;
        let is_open = is_open.lock().expect("no panic");
        drop(opened.wait_while(is_open, |is_open| !*is_open));
    }
}

pub(crate) fn bytes(bytes: &[u8]) -> Step {
    Step::Bytes(bytes.to_vec())
}

pub(crate) fn wait(millis: u64) -> Step {
    Step::Wait(Duration::from_millis(millis))
}

pub(crate) fn until(gate: &Gate) -> Step {
    Step::Until(gate.clone())
}

/// Nothing more, and the connection stays.
pub(crate) fn never() -> Step {
    until(&Gate::default())
}

pub(crate) fn close() -> Step {
    Step::Close
}

pub(crate) fn whole(body: &[u8]) -> Step {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    Step::Bytes([head.as_bytes(), body].concat())
}

pub(crate) fn chunked_head() -> Step {
    bytes(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
}

pub(crate) fn chunk(data: &[u8]) -> Step {
    Step::Bytes([format!("{:x}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat())
}

pub(crate) fn last_chunk() -> Step {
    bytes(b"0\r\n\r\n")
}

/// The server; its threads end with the test process.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicU64,
    closed: AtomicU64,
    requests: AtomicU64,
}

impl Server {
    /// Answers request number `index` with the steps of `script(index)`.
    pub(crate) fn new(script: impl Fn(u64) -> Vec<Step> + Send + Sync + 'static) -> Self {
        Self::over(None, script)
    }

    /// The same, over TLS where there is a configuration.
    pub(crate) fn over(
        tls: Option<Arc<rustls::ServerConfig>>,
        script: impl Fn(u64) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let script = Arc::new(script);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let counts = Arc::new(Counts::default());
        let counting = Arc::clone(&counts);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                counting.connections.fetch_add(1, Ordering::Relaxed);
                let counts = Arc::clone(&counting);
                stream.set_nodelay(true).expect("a socket");
                let (tls, script) = (tls.clone(), Arc::clone(&script));
                std::thread::spawn(move || {
                    match tls {
                        None => serve(stream, &*script, &counts),
                        Some(config) => {
                            let tls = rustls::ServerConnection::new(config).expect("a state");
                            serve(rustls::StreamOwned::new(tls, stream), &*script, &counts);
                        }
                    }
                    counts.closed.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
        Self { address, counts }
    }

    pub(crate) fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::Relaxed)
    }

    /// Connections that have ended.
    pub(crate) fn closed(&self) -> u64 {
        self.counts.closed.load(Ordering::Relaxed)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.counts.requests.load(Ordering::Relaxed)
    }
}

/// A port that is bound and where nobody listens: it refuses connections, and nobody else can have it meanwhile.
pub(crate) struct ClosedPort {
    pub(crate) address: SocketAddr,
    _bound: tokio::net::TcpSocket,
}

impl ClosedPort {
    pub(crate) fn new() -> Self {
        let bound = tokio::net::TcpSocket::new_v4().expect("a socket");
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        bound.bind(any).expect("a port");
        Self {
            address: bound.local_addr().expect("an address"),
            _bound: bound,
        }
    }
}

/// Requests of these tests end with `{}`.
fn serve(mut stream: impl Read + Write, script: impl Fn(u64) -> Vec<Step>, counts: &Counts) {
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => seen.extend_from_slice(&buffer[..count]),
        }
        if !seen.ends_with(b"\r\n\r\n{}") {
            continue;
        }
        seen.clear();
        for step in script(counts.requests.fetch_add(1, Ordering::Relaxed)) {
            match step {
                Step::Bytes(bytes)
                    if stream
                        .write_all(&bytes)
                        .and_then(|()| stream.flush())
                        .is_err() =>
                {
                    return;
                }
                Step::Bytes(_) => {}
                Step::Wait(time) => testing::pace(time),
                Step::Until(gate) => gate.pass(),
                Step::Close => return,
            }
        }
    }
}
