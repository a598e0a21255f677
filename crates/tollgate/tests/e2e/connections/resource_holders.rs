//! Many clients at once that hold connections, streams and buffers: they are disconnected, and others are served meanwhile.
//!
//! Not here: what they cost in memory, when they go, and what others wait meanwhile (`timing_costs`); each bound by itself
//! (`bounds`, `unread`, `connections`).

mod timing_costs;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use rustls::pki_types::ServerName;
use testing::{PATIENCE, eventually, nothing_happens_for, pace};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::unread::{client_config, handshake};
use crate::fixture::{IDENTITY, answer};
use crate::harness::tls::Authority;
use crate::harness::{self, Gate};

/// How many clients may be connecting at the same time.
const OPENING: usize = 100;

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

/// How many clients of a kind there are, and what the gate gives them.
#[derive(Debug, Clone, Copy)]
struct Scale {
    many: usize,
    bounds: Duration,
    /// Between two calls of the bystander.
    pause: Duration,
}

/// What happens while a row runs, for who measures.
#[derive(Debug, Clone, Copy)]
enum Event {
    /// The last of the clients has come.
    Here,
    /// The gate has disconnected all of them.
    Gone,
    /// The bystander makes a call.
    Asked,
    /// Its answer is whole.
    Answered,
}

/// Who is told of them.
type Told<'t> = &'t (dyn Fn(Event) + Sync);

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for kind in [
        Kind::SlowHead,
        Kind::SlowBody,
        Kind::Silent,
        Kind::Unread,
        Kind::Declared,
    ] {
        for tls in [false, true] {
            for known in [true, false] {
                // Some never send an identity.
                if known || !matches!(kind, Kind::SlowHead | Kind::Silent) {
                    cells.push(Cell { kind, tls, known });
                }
            }
        }
    }
    cells
}

#[test]
fn clients_that_hold_resources_are_disconnected_and_others_are_served() {
    let scale = Scale {
        many: 40,
        bounds: Duration::from_secs(2),
        pause: Duration::from_millis(50),
    };
    let runs = cells()
        .into_iter()
        .map(|cell| std::thread::spawn(move || run(cell, scale, &|_| {})));
    for one in runs.collect::<Vec<_>>() {
        one.join().expect("all are let go, and others are served");
    }
}

/// Runs a row; gives the memory in KiB that each client costs.
fn run(cell: Cell, scale: Scale, told: Told<'_>) -> i64 {
    let upstream = upstream();
    let bound = scale.bounds.as_secs();
    let config = format!(
        "backends: {{ up: {{ url: http://{upstream}/v1 }} }}\nroutes: [ {{ workload: w, backend: up }} ]\n\
         bounds: {{ head_time: {bound}s, body_idle: {bound}s, write_stall: {bound}s, keep_alive: {bound}s }}\n"
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
    let bystander = Bystander {
        data: gate.data,
        tls: cell.tls.then(|| client_config(&authority)),
        pause: scale.pause,
        served: AtomicUsize::new(0),
        over: AtomicBool::new(false),
    };
    std::thread::scope(|scope| {
        let calls = scope.spawn(|| bystander.calls(told));
        let over = Over(&bystander);
        bystander.is_served(cell, "before");
        let before_kib = gate.resident_kib();
        let (release, held) = watch::channel(());
        let (arrive, arrived) = std::sync::mpsc::channel();
        let (data, tls) = (gate.data, bystander.tls.clone());
        scope.spawn(move || hold_all(cell, scale.many, data, tls, &arrive, held));
        for here in 0..scale.many {
            let arrival = arrived.recv_timeout(PATIENCE);
            arrival.unwrap_or_else(|_| panic!("{here} of {} have come: {cell:?}", scale.many));
        }
        told(Event::Here);
        bystander.is_served(cell, "beside them");
        // None but the bystander is left.
        eventually(&format!("all are let go: {cell:?}"), || {
            let is_so = gate.metric("tollgate_open_connections", &[]) < 1.5;
            if !is_so {
                nothing_happens_for(Duration::from_millis(200));
            }
            is_so
        });
        told(Event::Gone);
        let many = i64::try_from(scale.many).expect("few");
        let each_kib = (gate.peak_kib() - before_kib) / many;
        bystander.is_served(cell, "after them");
        drop(release);
        drop(over);
        calls.join().expect("others are served");
        each_kib
    })
}

/// Ends the bystander, also where a test fails.
struct Over<'b>(&'b Bystander);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}

/// So many clients, which hold what they hold until that is released.
fn hold_all(
    cell: Cell,
    many: usize,
    data: SocketAddr,
    tls: Option<Arc<rustls::ClientConfig>>,
    arrive: &Sender<()>,
    mut held: watch::Receiver<()>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.expect("a runtime").block_on(async move {
        let opening = Arc::new(Semaphore::new(OPENING));
        for _ in 0..many {
            let (opening, arrive) = (Arc::clone(&opening), arrive.clone());
            let (tls, held) = (tls.clone(), held.clone());
            tokio::spawn(client(cell, data, tls, opening, arrive, held));
        }
        let _until_all_is_over = held.changed().await;
    });
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
    arrive: Sender<()>,
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
    arrive: Sender<()>,
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
    // The buffers of both sockets hold all of it.
    drop(stream.write_all(begin.as_bytes()).await);
    drop(stream.flush().await);
    drop(place);
    let _gone = arrive.send(());
    let trickles = matches!(cell.kind, Kind::SlowHead | Kind::SlowBody);
    loop {
        tokio::select! {
            _ = held.changed() => return,
            () = harness::pace(Duration::from_secs(1)), if trickles => {
                if stream.write_all(b"x").await.is_err() || stream.flush().await.is_err() {
                    let _until_all_is_over = held.changed().await;
                    return;
                }
            }
        }
    }
}

/// A client of the registered workload that calls again and again.
struct Bystander {
    data: SocketAddr,
    tls: Option<Arc<rustls::ClientConfig>>,
    pause: Duration,
    served: AtomicUsize,
    over: AtomicBool,
}

impl Bystander {
    /// Waits until some more of its calls are answered.
    fn is_served(&self, cell: Cell, when: &str) {
        let before = self.served.load(Ordering::SeqCst);
        eventually(&format!("another is served {when}: {cell:?}"), || {
            self.served.load(Ordering::SeqCst) > before + 3
        });
    }

    /// Calls until it is told that all is over.
    fn calls(&self, told: Told<'_>) {
        while !self.over.load(Ordering::SeqCst) {
            // Where this process stands still for longer than a connection may be idle, it begins another.
            match &self.tls {
                Some(config) => {
                    let mut stream = handshake(self.connect(), Arc::clone(config));
                    while self.is_answered(&mut stream, told) {}
                }
                None => {
                    let mut stream = self.connect();
                    while self.is_answered(&mut stream, told) {}
                }
            }
        }
    }

    fn connect(&self) -> TcpStream {
        let tcp = TcpStream::connect(self.data).expect("the gate listens");
        tcp.set_nodelay(true).expect("a socket option");
        tcp.set_read_timeout(Some(PATIENCE))
            .expect("a socket option");
        tcp
    }

    /// Makes one call; `false` where all is over, or the connection was closed before it.
    fn is_answered(&self, stream: &mut (impl Read + Write), told: Told<'_>) -> bool {
        let body = r#"{"model":"bystander","messages":[]}"#;
        let request = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        if self.over.load(Ordering::SeqCst) {
            return false;
        }
        told(Event::Asked);
        let sent = stream.write_all(request.as_bytes());
        let mut response = Vec::new();
        while !response.ends_with(b"\"total_tokens\":4}}") {
            let mut some = [0; 4096];
            let read = testing::read(stream, &mut some).unwrap_or(0);
            if read == 0 && response.is_empty() {
                println!("closed before a call: {sent:?}");
                return false;
            }
            assert!(read > 0, "cut: {}", String::from_utf8_lossy(&response));
            response.extend_from_slice(&some[..read]);
        }
        assert!(response.starts_with(b"HTTP/1.1 200 "));
        told(Event::Answered);
        self.served.fetch_add(1, Ordering::SeqCst);
        pace(self.pause);
        true
    }
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
