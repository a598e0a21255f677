//! A scripted upstream: it sends bytes, waits, closes or resets as the test says.
//!
//! It injects faults that no real engine produces; where the simulated engine suffices, tests use that.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use super::Signal;

/// One step of the answer to a request.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Send the same bytes so many times.
    Repeat(Vec<u8>, usize),
    /// Pause at least so long.
    Sleep(Duration),
    /// Go on when the test says so.
    Until(Signal),
    /// Say nothing until the gate closes the connection, and then tell.
    Hang(Signal),
    /// Close with FIN.
    Close,
    /// Close with RST.
    Reset,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// Which connection it came on, from 0.
    pub(crate) connection: usize,
}

/// The upstream; its threads end with the test's process.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<Mutex<usize>>,
    repeated: Arc<AtomicUsize>,
}

impl Step {
    /// Silence, of which nobody wants to know when it ends.
    pub(crate) fn silence() -> Self {
        Self::Hang(Signal::default())
    }
}

impl Upstream {
    /// Answers the nth request with `script(n, &request)`; without a `Close` or `Reset` the
    /// connection is kept alive.
    pub(crate) fn start(
        script: impl Fn(usize, &Seen) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), script)
    }

    /// The same, listening at this address.
    pub(crate) fn start_at(
        address: SocketAddr,
        script: impl Fn(usize, &Seen) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).expect("nobody listens there");
        let address = listener.local_addr().expect("it is bound");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let connections = Arc::new(Mutex::new(0));
        let repeated = Arc::<AtomicUsize>::default();
        let script = Arc::new(script);
        let (to, count) = (Arc::clone(&seen), Arc::clone(&connections));
        let all_repeated = Arc::clone(&repeated);
        thread::spawn(move || {
            for tcp in listener.incoming().flatten() {
                let mut count = count.lock().unwrap_or_else(PoisonError::into_inner);
                let connection = *count;
                *count += 1;
                let (script, seen) = (Arc::clone(&script), Arc::clone(&to));
                let repeated = Arc::clone(&all_repeated);
                thread::spawn(move || serve(tcp, connection, &*script, &seen, &repeated));
            }
        });
        Self {
            address,
            seen,
            connections,
            repeated,
        }
    }

    /// Every request so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// How many requests have come so far.
    pub(crate) fn count(&self) -> usize {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .len()
    }

    /// The nth request, from 0.
    pub(crate) fn nth(&self, n: usize) -> Option<Seen> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(n).cloned()
    }

    /// How often bytes of a [`Step::Repeat`] were taken so far.
    pub(crate) fn repeated(&self) -> usize {
        self.repeated.load(Ordering::SeqCst)
    }

    /// Connections accepted so far.
    pub(crate) fn connections(&self) -> usize {
        *self
            .connections
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// All values of a header, by its lower-case name.
    pub(crate) fn header(&self, name: &str) -> Vec<String> {
        let lines = self
            .head
            .split("\r\n")
            .skip(1)
            .filter_map(|l| l.split_once(':'));
        lines
            .filter(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.trim().into())
            .collect()
    }

    /// What stands behind its method.
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).expect("a path")
    }

    /// The body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }
}

fn serve(
    mut tcp: TcpStream,
    connection: usize,
    script: &(impl Fn(usize, &Seen) -> Vec<Step> + ?Sized),
    all: &Mutex<Vec<Seen>>,
    repeated: &AtomicUsize,
) {
    drop(tcp.set_nodelay(true));
    while let Some(seen) = read(&mut tcp, connection) {
        let n = {
            let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
            all.push(seen.clone());
            all.len() - 1
        };
        for step in script(n, &seen) {
            match step {
                Step::Send(bytes) => {
                    if tcp.write_all(&bytes).is_err() {
                        return;
                    }
                }
                Step::Repeat(bytes, times) => {
                    for _ in 0..times {
                        if tcp.write_all(&bytes).is_err() {
                            return;
                        }
                        repeated.fetch_add(1, Ordering::SeqCst);
                    }
                }
                Step::Sleep(time) => testing::pace(time),
                Step::Until(signal) => {
                    if !signal.wait() {
                        return;
                    }
                }
                Step::Hang(closed) => {
                    while matches!(tcp.read(&mut [0; 1024]), Ok(1..)) {}
                    return closed.give();
                }
                Step::Close => return,
                Step::Reset => {
                    let reset = socket2::SockRef::from(&tcp).set_linger(Some(Duration::ZERO));
                    reset.expect("a socket option");
                    return;
                }
            }
        }
    }
}

/// One request with a declared length, or `None` when the peer has closed.
fn read(tcp: &mut TcpStream, connection: usize) -> Option<Seen> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16384];
    loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let mut body = bytes.split_off(end + 4);
            let mut seen = Seen {
                head,
                body: Vec::new(),
                connection,
            };
            let length = seen
                .header("content-length")
                .first()
                .map_or(Ok(0), |l| l.parse::<usize>())
                .ok()?;
            while body.len() < length {
                match tcp.read(&mut buffer) {
                    Ok(0) | Err(_) => return None,
                    Ok(n) => body.extend_from_slice(&buffer[..n]),
                }
            }
            seen.body = body;
            return Some(seen);
        }
        match tcp.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(n) => bytes.extend_from_slice(&buffer[..n]),
        }
    }
}
