//! A gate in this process, for what can only be tried through its connections, with an upstream that says what it
//! is told to say.
//!
//! Invariant: everything is on loopback; one gate for all inputs.
//! Not here: what is sent (`gate_http1`, `gate_http2`, `gate_upstream`).

use std::any::Any;
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use config::{Sources, parse_document};
use policy::disconnect::DisconnectOutcome;
use policy::record::{AttemptRecord, Closed, Gauge, Record, Sink};
use policy::revision::Revision;
use policy::snapshot::Snapshot;
use proxy::gate::{Gate, Options, Ports, RuntimeConfig};

/// Longest wait for anything: beyond it something hangs.
const PATIENCE: Duration = Duration::from_secs(120);
/// Most bytes of an answer that are read.
const ANSWER_BYTES: usize = 1 << 20;

/// A gate that runs for as long as the process.
pub(crate) struct Running {
    data: SocketAddr,
    answer: Mutex<Answer>,
    /// What reached the upstream and should not have.
    wrong: Mutex<Vec<String>>,
    /// One input at a time.
    turn: Mutex<()>,
}

struct Answer {
    bytes: Vec<u8>,
    /// The upstream closes after it.
    closes: bool,
}

struct Nothing;

impl Sources for Nothing {
    fn read(&self, _: &Path, _: usize) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn var(&self, _: &str) -> Option<String> {
        None
    }
}

impl Sink for Nothing {
    fn exchange(&mut self, _: &Snapshot, _: &Record) {}
    fn attempt(&mut self, _: &Snapshot, _: &AttemptRecord) {}
    fn abandoned(&mut self, _: DisconnectOutcome) {}
    fn closed(&mut self, _: Closed) {}
    fn gauge(&mut self, _: Gauge, _: i64) {}
    fn tick(&mut self) {}
    fn copy(&self) -> Box<dyn Any + Send> {
        Box::new(())
    }
}

/// What the gate answers when it has a bug.
const BUG: &[u8] = b"internal_error";
/// A good answer to a chat call.
const COMPLETION: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 92\r\n\r\n\
    {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1,\"total_tokens\":4},\"id\":\"c\"}\r\n";

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The gate, started once.
pub(crate) fn running() -> &'static Running {
    static RUNNING: OnceLock<Running> = OnceLock::new();
    RUNNING.get_or_init(|| {
        let engine = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let upstream = engine.local_addr().expect("it is bound");
        thread::spawn(move || {
            for tcp in engine.incoming().flatten() {
                thread::spawn(move || serve(tcp));
            }
        });
        Running {
            data: start(upstream),
            answer: Mutex::new(Answer {
                bytes: COMPLETION.into(),
                closes: false,
            }),
            wrong: Mutex::default(),
            turn: Mutex::default(),
        }
    })
}

fn start(upstream: SocketAddr) -> SocketAddr {
    let document = format!(
        "bounds: {{ body: 64KiB, head: 8KiB, body_idle: 1s, head_time: 1s, keep_alive: 2s, write_stall: 1s }}\n\
         backends: {{ up: {{ url: http://{upstream}/base, credential: {{ inline: gate-key }}, timeouts: {{ first_byte: 1s, idle: 1s }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n"
    );
    let path = Path::new("tollgate.yaml");
    let loaded = parse_document(path, document.as_bytes(), &Nothing);
    let publication = RuntimeConfig {
        revision: Arc::new(Revision::first(loaded.expect("it is good").snapshot)),
        acceptor: None,
        acceptors: Vec::new(),
        connectors: HashMap::new(),
    };
    let options = Options {
        stack_bytes: 2 << 20,
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        workers: 1,
        room: 1000,
        sampling: None,
    };
    let ports = |_| Ports {
        sink: Box::new(Nothing),
        ledger: None,
        counting: None,
    };
    let gate = Gate::start(&options, &publication, ports);
    let gate = gate.expect("a gate");
    let data = gate.address();
    // It runs for as long as the process.
    std::mem::forget(gate);
    data
}

/// Reads requests strictly and answers as told.
fn serve(mut tcp: TcpStream) {
    drop(tcp.set_nodelay(true));
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            match tcp.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(read) => bytes.extend_from_slice(&buffer[..read]),
            }
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let running = running();
        let length = judged(&head).unwrap_or_else(|says| {
            held(&running.wrong).push(format!("{says}: {head:?}"));
            0
        });
        let mut body = bytes.split_off(end + 4);
        while body.len() < length {
            match tcp.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(read) => body.extend_from_slice(&buffer[..read]),
            }
        }
        bytes = body.split_off(length);
        let (answer, closes) = {
            let answer = held(&running.answer);
            (answer.bytes.clone(), answer.closes)
        };
        if tcp.write_all(&answer).is_err() || closes {
            return;
        }
    }
}

/// The length of a request's body, or what is wrong with its head.
fn judged(head: &str) -> Result<usize, &'static str> {
    let mut lines = head.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let parts: Vec<&str> = line.split(' ').collect();
    let [_, target, "HTTP/1.1"] = parts[..] else {
        return Err("a request line of other than three parts");
    };
    if !target.starts_with("/base/") || target.contains("/../") {
        return Err("a target that is not below the base path");
    }
    let fields: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    let all = |name: &str| -> Vec<&str> {
        let of = fields.iter().filter(|(n, _)| n.eq_ignore_ascii_case(name));
        of.map(|(_, value)| *value).collect()
    };
    if all("authorization") != ["Bearer gate-key"] {
        return Err("not exactly the gate's credential");
    }
    if [
        "x-workload-app",
        "transfer-encoding",
        "x-api-key",
        "connection",
        "cookie",
    ]
    .iter()
    .any(|name| !all(name).is_empty())
    {
        return Err("a field that must not be forwarded");
    }
    match all("content-length")[..] {
        [] => Ok(0),
        [length] => length.parse().map_err(|_| "a length that is no number"),
        _ => Err("several lengths"),
    }
}

impl Running {
    /// Has the upstream answer every request with this from now on, or as usual.
    pub(crate) fn answers(&self, bytes: Option<&[u8]>) {
        *held(&self.answer) = Answer {
            bytes: bytes.map_or_else(|| COMPLETION.into(), <[u8]>::to_vec),
            closes: bytes.is_some(),
        };
    }

    /// One input at a time, for as long as this is held.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        held(&self.turn)
    }

    /// Sends these bytes on a connection of their own, ends the client's side, and reads all that comes.
    pub(crate) fn said(&self, bytes: &[u8]) -> Vec<u8> {
        let mut tcp = TcpStream::connect(self.data).expect("the gate listens");
        drop(tcp.set_nodelay(true));
        tcp.set_read_timeout(Some(PATIENCE))
            .expect("a socket option");
        tcp.set_write_timeout(Some(PATIENCE))
            .expect("a socket option");
        // It may have answered and closed before it has all.
        drop(tcp.write_all(bytes));
        drop(tcp.shutdown(Shutdown::Write));
        let mut answer = Vec::new();
        let mut buffer = [0; 16 << 10];
        while answer.len() < ANSWER_BYTES {
            match tcp.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => answer.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    panic!("the gate neither answers nor closes")
                }
                Err(_) => break,
            }
        }
        let is_in = |text: &[u8]| text.windows(BUG.len()).any(|window| window == BUG);
        let theirs = is_in(bytes) || is_in(&held(&self.answer).bytes);
        let text = String::from_utf8_lossy(&answer);
        assert!(theirs || !is_in(&answer), "{text}");
        let wrong = std::mem::take(&mut *held(&self.wrong));
        assert!(wrong.is_empty(), "{wrong:#?}");
        answer
    }
}
