//! Many clients at once that hold connections, streams and buffers: their memory, when they are disconnected,
//! and the latency of other clients meanwhile.
//!
//! An experiment and a test: `TOLLGATE_HOLDERS=5000 cargo test -p tollgate --test e2e -- holders --nocapture` prints
//! the table of docs/security.md; without the variable there are a few of each kind, and only their end is checked.
//! Not here: each bound by itself (`bounds`, `unread`, `connections`).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustls::pki_types::ServerName;
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::unread::{client_config, handshake};
use crate::fixture::{IDENTITY, answer};
use crate::harness::Gate;
use crate::harness::tls::Authority;

const BOUNDS: &str = "bounds: { head_time: 5s, body_idle: 5s, write_stall: 5s, keep_alive: 5s }\n";
/// The bounds above, the lingering close of a refusal, and a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);
/// How many clients may be connecting at the same time.
const OPENING: usize = 100;
/// Memory that one client may cost, where there are enough clients to measure it.
const EACH_KIB: i64 = 160;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    SlowHead,
    SlowBody,
    Silent,
    Unread,
    Declared,
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
struct Cell {
    kind: Kind,
    tls: bool,
    known: bool,
}

/// The measurements of one row.
struct Outcome {
    before_kib: i64,
    peak_kib: i64,
    /// From the last client's arrival until the gate had disconnected all of them.
    gone: Option<Duration>,
    /// Latencies of another client's calls meanwhile, sorted.
    calls: Vec<Duration>,
}

#[test]
fn clients_that_hold_resources_are_disconnected_and_others_are_served() {
    let asked = std::env::var("TOLLGATE_HOLDERS").ok();
    let many: usize = asked.and_then(|n| n.parse().ok()).unwrap_or(40);
    let mut failed = Vec::new();
    println!(
        "| clients | transport | workload | KiB each | gone after | calls | p50 | p99 | max |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for kind in [
        Kind::SlowHead,
        Kind::SlowBody,
        Kind::Silent,
        Kind::Unread,
        Kind::Declared,
    ] {
        for tls in [false, true] {
            for known in [true, false] {
                if !known && matches!(kind, Kind::SlowHead | Kind::Silent) {
                    continue; // These clients never send an identity.
                }
                let cell = Cell { kind, tls, known };
                let outcome = run(cell, many);
                let each = print(cell, many, &outcome);
                if outcome.gone.is_none_or(|gone| gone > DEADLINE) {
                    failed.push(format!("{cell:?}: held for {:?}", outcome.gone));
                }
                if many >= 1000 && each > EACH_KIB {
                    failed.push(format!("{cell:?}: {each} KiB each"));
                }
                if outcome.calls.is_empty() {
                    failed.push(format!("{cell:?}: nobody else was served"));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

fn print(cell: Cell, many: usize, outcome: &Outcome) -> i64 {
    let many = i64::try_from(many).expect("few");
    let each = (outcome.peak_kib - outcome.before_kib) / many;
    let calls = &outcome.calls;
    let at = |share: usize| {
        let last = calls.len().saturating_sub(1);
        calls.get(last * share / 100).copied().unwrap_or_default()
    };
    let gone = outcome.gone.map_or_else(
        || "not within 100 s".to_owned(),
        |gone| format!("{:.1} s", gone.as_secs_f64()),
    );
    println!(
        "| {many} {:?} | {} | {} | {each} | {gone} | {} | {:.1?} | {:.1?} | {:.1?} |",
        cell.kind,
        if cell.tls { "TLS" } else { "plain" },
        if cell.known { "known" } else { "unknown" },
        calls.len(),
        at(50),
        at(99),
        at(100),
    );
    each
}

fn run(cell: Cell, many: usize) -> Outcome {
    let upstream = upstream();
    let config = format!(
        "backends: {{ up: {{ url: http://{upstream}/v1 }} }}\nroutes: [ {{ workload: w, backend: up }} ]\n{BOUNDS}"
    );
    let authority = Authority::new();
    let leaf = authority.leaf("gate.test");
    let files = [
        ("cert.pem", leaf.certificate.as_bytes()),
        ("key.pem", leaf.key.as_bytes()),
    ];
    let gate = if cell.tls {
        Gate::start_tls(&config, &files)
    } else {
        Gate::start(&config, &[])
    };
    let over = Arc::new(AtomicBool::new(false));
    let bystander = bystander(gate.data, cell.tls.then_some(&authority), &over);
    std::thread::sleep(Duration::from_millis(500));
    let before_kib = resident_kib(&gate);
    let (release, held) = watch::channel(());
    let (arrive, mut arrived) = mpsc::unbounded_channel();
    let tls = cell.tls.then(|| client_config(&authority));
    let data = gate.data;
    let clients = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async move {
            let opening = Arc::new(Semaphore::new(OPENING));
            for _ in 0..many {
                let (opening, arrive) = (Arc::clone(&opening), arrive.clone());
                tokio::spawn(client(
                    cell,
                    data,
                    tls.clone(),
                    opening,
                    arrive,
                    held.clone(),
                ));
            }
            let mut held = held;
            let _until_all_is_over = held.changed().await;
        });
    });
    let mut peak_kib = before_kib;
    let mut here = 0;
    let until = Instant::now() + Duration::from_secs(120);
    while here < many {
        while arrived.try_recv().is_ok() {
            here += 1;
        }
        peak_kib = peak_kib.max(resident_kib(&gate));
        assert!(Instant::now() < until, "{here} of {many} have come");
        std::thread::sleep(Duration::from_millis(20));
    }
    let since = Instant::now();
    let mut gone = None;
    while gone.is_none() && since.elapsed() < Duration::from_secs(100) {
        peak_kib = peak_kib.max(resident_kib(&gate));
        if gate.metric("tollgate_open_connections", &[]) < 1.5 {
            gone = Some(since.elapsed());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    over.store(true, Ordering::SeqCst);
    let mut calls = bystander.join().expect("others are served");
    calls.sort_unstable();
    drop(release);
    clients.join().expect("no panic");
    Outcome {
        before_kib,
        peak_kib,
        gone,
        calls,
    }
}

/// A connection with a small receive buffer.
async fn connect(address: SocketAddr) -> Option<tokio::net::TcpStream> {
    let socket = tokio::net::TcpSocket::new_v4().ok()?;
    socket.set_recv_buffer_size(4 << 10).ok()?;
    socket.connect(address).await.ok()
}

/// Connects when a permit is free, then holds what its kind holds.
async fn client(
    cell: Cell,
    data: SocketAddr,
    tls: Option<Arc<rustls::ClientConfig>>,
    opening: Arc<Semaphore>,
    arrive: mpsc::UnboundedSender<()>,
    held: watch::Receiver<()>,
) {
    let place = opening.acquire_owned().await.expect("it stays open");
    let Some(tcp) = connect(data).await else {
        let _gone = arrive.send(());
        return;
    };
    let Some(config) = tls else {
        return hold(cell, tcp, arrive, place, held).await;
    };
    let name = ServerName::try_from("gate.test").expect("a name");
    let connector = tokio_rustls::TlsConnector::from(config);
    match connector.connect(name, tcp).await {
        Ok(tls) => hold(cell, tls, arrive, place, held).await,
        Err(_) => {
            let _gone = arrive.send(());
        }
    }
}

/// One client: sends what its kind sends, and reads nothing until the measurement ends.
async fn hold<S: AsyncRead + AsyncWrite + Unpin>(
    cell: Cell,
    mut stream: S,
    arrive: mpsc::UnboundedSender<()>,
    place: OwnedSemaphorePermit,
    mut held: watch::Receiver<()>,
) {
    let who = if cell.known {
        IDENTITY
    } else {
        "x-workload-app: nobody"
    };
    let head = |length: usize| {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{who}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    let body = r#"{"model":"m","messages":[]}"#;
    let mut begin = match cell.kind {
        Kind::SlowHead => "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n".to_owned(),
        Kind::Silent => String::new(),
        Kind::SlowBody | Kind::Declared => head(30_000_000) + "{\"x\":\"",
        Kind::Unread => head(body.len()) + body,
    };
    if cell.kind == Kind::Unread && !cell.known {
        begin = begin.repeat(400);
    }
    let some = Duration::from_millis(500);
    drop(tokio::time::timeout(some, stream.write_all(begin.as_bytes())).await);
    drop(tokio::time::timeout(some, stream.flush()).await);
    drop(place);
    let _gone = arrive.send(());
    let trickles = matches!(cell.kind, Kind::SlowHead | Kind::SlowBody);
    loop {
        tokio::select! {
            _ = held.changed() => return,
            () = tokio::time::sleep(Duration::from_secs(1)), if trickles => {
                if stream.write_all(b"x").await.is_err() || stream.flush().await.is_err() {
                    let _until_all_is_over = held.changed().await;
                    return;
                }
            }
        }
    }
}

/// Calls of the registered workload, one after the other, until the measurement ends.
fn bystander(
    data: SocketAddr,
    authority: Option<&Authority>,
    over: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<Vec<Duration>> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.connect(&data.into()).expect("the gate listens");
    let tcp = TcpStream::from(socket);
    tcp.set_nodelay(true).expect("a socket option");
    tcp.set_read_timeout(Some(Duration::from_secs(30)))
        .expect("a socket option");
    let over = Arc::clone(over);
    if let Some(authority) = authority {
        let tls = handshake(tcp, authority);
        return std::thread::spawn(move || calls(tls, &over));
    }
    std::thread::spawn(move || calls(tcp, &over))
}

fn calls(mut stream: impl Read + Write, over: &AtomicBool) -> Vec<Duration> {
    let body = r#"{"model":"bystander","messages":[]}"#;
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut took = Vec::new();
    while !over.load(Ordering::SeqCst) {
        let began = Instant::now();
        stream.write_all(request.as_bytes()).expect("it is taken");
        let mut response = Vec::new();
        while !response.ends_with(b"\"total_tokens\":4}}") {
            let mut some = [0; 4096];
            let read = stream.read(&mut some).expect("it is answered");
            assert!(read > 0, "closed: {}", String::from_utf8_lossy(&response));
            response.extend_from_slice(&some[..read]);
        }
        assert!(response.starts_with(b"HTTP/1.1 200 "));
        took.push(began.elapsed());
        std::thread::sleep(Duration::from_millis(2));
    }
    took
}

/// An upstream with a short answer for the bystander and, for everybody else, a long answer in a content
/// coding that the gate does not decode.
fn upstream() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    listener.set_nonblocking(true).expect("a socket option");
    let address = listener.local_addr().expect("it is bound");
    let long = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: x-none\r\ncontent-length: 400000\r\n\r\n{}",
        "z".repeat(400_000)
    );
    let (long, short) = (
        Arc::<[u8]>::from(long.into_bytes()),
        Arc::<[u8]>::from(answer()),
    );
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime").block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it is not blocking");
            while let Ok((mut tcp, _)) = listener.accept().await {
                let (long, short) = (Arc::clone(&long), Arc::clone(&short));
                tokio::spawn(async move {
                    let mut request = vec![0; 8 << 10];
                    while let Ok(read @ 1..) = tcp.read(&mut request).await {
                        let is_short = request[..read].windows(9).any(|w| w == b"bystander");
                        let answer = if is_short { &short } else { &long };
                        if tcp.write_all(answer).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
    });
    address
}

fn resident_kib(gate: &Gate) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gate.id())).expect("it runs");
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    let kib = line.expect("Linux says so").trim().trim_end_matches(" kB");
    kib.parse().expect("a number")
}
