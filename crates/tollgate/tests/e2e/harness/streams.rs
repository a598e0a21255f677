//! Many concurrent event streams: an upstream that records every byte sent on each of them, and a
//! client that records every byte received.
//!
//! Streams last until the test ends them, so that everything it does meanwhile affects all of them.
//! Not here: faults (`upstream`), the real engine's streams (`engine`).

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use super::{pace, patiently};

/// The upstream; its thread ends with the test's process.
pub(crate) struct Streams {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    pace: Duration,
    finish: AtomicBool,
    sent: Mutex<HashMap<u64, Sent>>,
    credentials: Mutex<Vec<String>>,
}

/// What was sent on one stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sent {
    /// The whole body.
    pub(crate) bytes: Vec<u8>,
    /// The body without its usage event.
    pub(crate) without_usage: Vec<u8>,
    /// Whether the stream ended completely.
    pub(crate) whole: bool,
}

/// What was received on one stream.
#[derive(Debug, Clone, Default)]
pub(crate) struct Received {
    pub(crate) n: u64,
    pub(crate) head: String,
    /// The body, stripped of framing.
    pub(crate) body: Vec<u8>,
    /// Whether the body ended as its framing requires.
    pub(crate) whole: bool,
}

/// Whether the client of stream `n` asks for usage itself, which every second one does.
pub(crate) fn asks(n: u64) -> bool {
    n.is_multiple_of(2)
}

impl Streams {
    /// An upstream whose streams have an event about every `pace`.
    pub(crate) fn start(pace: Duration) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        listener.set_nonblocking(true).expect("a socket option");
        let address = listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            pace,
            finish: AtomicBool::new(false),
            sent: Mutex::default(),
            credentials: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            runtime().block_on(async move {
                let listener = TcpListener::from_std(listener).expect("a listener");
                while let Ok((tcp, _)) = listener.accept().await {
                    tokio::spawn(serve(tcp, Arc::clone(&serving)));
                }
            });
        });
        Self { address, shared }
    }

    /// Lets every stream end after its next event.
    pub(crate) fn finish(&self) {
        self.shared.finish.store(true, Ordering::SeqCst);
    }

    /// What was sent on stream `n`.
    pub(crate) fn sent(&self, n: u64) -> Sent {
        lock(&self.shared.sent).get(&n).cloned().unwrap_or_default()
    }

    /// The `authorization` of each request, in the order of arrival.
    pub(crate) fn credentials(&self) -> Vec<String> {
        lock(&self.shared.credentials).clone()
    }
}

impl Received {
    /// Asserts that these bytes are those that the upstream sent, without the usage event if it was not asked for.
    pub(crate) fn assert_identical(&self, sent: &Sent) {
        let n = self.n;
        assert!(
            self.head.starts_with("HTTP/1.1 200 "),
            "stream {n}: {}",
            self.head
        );
        assert!(sent.whole, "stream {n} was not sent to its end");
        assert!(
            self.whole,
            "stream {n} was cut after {} bytes",
            self.body.len()
        );
        let expected = if asks(n) {
            &sent.bytes
        } else {
            &sent.without_usage
        };
        assert_ne!(expected.len(), 0);
        assert!(
            self.body == *expected,
            "stream {n} differs from what was sent"
        );
    }
}

/// Clients that read their streams.
pub(crate) struct Clients {
    thread: JoinHandle<Vec<Received>>,
    begun: Arc<AtomicU64>,
}

impl Clients {
    /// Waits for the end of all streams.
    pub(crate) fn join(self) -> std::thread::Result<Vec<Received>> {
        self.thread.join()
    }

    /// Streams of whose body some has come.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }
}

/// Opens the streams `which` from one thread and reads each to its end.
pub(crate) fn open(gate: SocketAddr, tls: Option<Arc<ClientConfig>>, which: Range<u64>) -> Clients {
    let begun = Arc::<AtomicU64>::default();
    let counted = Arc::clone(&begun);
    let thread = std::thread::spawn(move || {
        runtime().block_on(async move {
            let few = Arc::new(tokio::sync::Semaphore::new(64));
            let clients: Vec<_> = which
                .map(|n| {
                    let (few, begun) = (Arc::clone(&few), Arc::clone(&counted));
                    tokio::spawn(client(gate, tls.clone(), n, few, begun))
                })
                .collect();
            let mut all = Vec::new();
            for client in clients {
                all.push(client.await.expect("a client runs to its end"));
            }
            all
        })
    });
    Clients { thread, begun }
}

async fn client(
    gate: SocketAddr,
    tls: Option<Arc<ClientConfig>>,
    n: u64,
    few: Arc<tokio::sync::Semaphore>,
    begun: Arc<AtomicU64>,
) -> Received {
    let opening = few.acquire().await.expect("it is never closed");
    let tcp = TcpStream::connect(gate).await.expect("the gate listens");
    tcp.set_nodelay(true).expect("a socket option");
    let Some(tls) = tls else {
        drop(opening);
        return talk(tcp, n, &begun).await;
    };
    let name = ServerName::try_from("gate.test").expect("a name");
    let stream = TlsConnector::from(tls)
        .connect(name, tcp)
        .await
        .expect("a handshake");
    drop(opening);
    talk(stream, n, &begun).await
}

async fn talk(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    n: u64,
    begun: &AtomicU64,
) -> Received {
    let options = if asks(n) {
        r#","stream_options":{"include_usage":true}"#
    } else {
        ""
    };
    let body = format!(
        r#"{{"model":"m","stream":true,"user":"{n}"{options},"messages":[{{"role":"user","content":"Hello"}}]}}"#
    );
    let request = super::post("/v1/chat/completions", &["x-workload-app: w"], &body);
    stream.write_all(&request).await.expect("the gate reads");
    let mut raw = Vec::new();
    let mut received = Received {
        n,
        ..Received::default()
    };
    let mut has_begun = false;
    loop {
        let read = patiently("the gate says something", stream.read_buf(&mut raw)).await;
        let ended = !matches!(read, Ok(1..));
        if !has_begun && raw.windows(6).any(|w| w == b"data: ") {
            has_begun = true;
            begun.fetch_add(1, Ordering::SeqCst);
        }
        if !ended && !raw.ends_with(b"0\r\n\r\n") {
            continue;
        }
        if let Some(end) = raw.windows(4).position(|w| w == b"\r\n\r\n") {
            received.head = String::from_utf8_lossy(&raw[..end]).to_lowercase();
            received.head = received.head.replacen("http", "HTTP", 1);
            (received.body, received.whole) = unchunked(&raw[end + 4..]);
        }
        if ended || received.whole {
            return received;
        }
    }
}

/// The data of a chunked body, and whether it is complete.
fn unchunked(mut raw: &[u8]) -> (Vec<u8>, bool) {
    let mut data = Vec::new();
    loop {
        let Some(end) = raw.windows(2).position(|w| w == b"\r\n") else {
            return (data, false);
        };
        let size = std::str::from_utf8(&raw[..end]).expect("a chunk size is text");
        let size = usize::from_str_radix(size, 16).expect("a chunk size is a number");
        raw = &raw[end + 2..];
        data.extend_from_slice(&raw[..size.min(raw.len())]);
        if raw.len() < size + 2 {
            return (data, false);
        }
        raw = &raw[size + 2..];
        if size == 0 {
            assert!(raw.is_empty(), "bytes after the end of a response");
            return (data, true);
        }
    }
}

/// Answers the requests of one connection.
async fn serve(mut tcp: TcpStream, shared: Arc<Shared>) {
    drop(tcp.set_nodelay(true));
    while let Some((head, call)) = request(&mut tcp).await {
        let credential = head.lines().find_map(|l| l.strip_prefix("authorization: "));
        lock(&shared.credentials).push(credential.unwrap_or_default().to_owned());
        let n = call["user"]
            .as_str()
            .and_then(|n| n.parse::<u64>().ok())
            .unwrap_or(u64::MAX);
        let answered = if call["stream"] == true {
            let usage = call["stream_options"]["include_usage"] == true;
            stream(&mut tcp, n, usage, &shared).await
        } else {
            tcp.write_all(&answer()).await
        };
        if answered.is_err() {
            return;
        }
    }
}

fn answer() -> Vec<u8> {
    let body = r#"{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}"#;
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Sends events until `finish`, in pieces that are not aligned to events.
async fn stream(tcp: &mut TcpStream, n: u64, usage: bool, shared: &Shared) -> std::io::Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    tcp.write_all(head.as_bytes()).await?;
    let mut random = n.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random
    };
    let mut tokens = 0;
    loop {
        let finish = shared.finish.load(Ordering::SeqCst);
        let word: String = (0..next() % 60)
            .map(|_| char::from(b'a' + (next() % 26) as u8))
            .collect();
        let event = format!(
            "data: {{\"id\":\"s{n}\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{tokens} {word}\"}}}}]}}\n\n"
        );
        tokens += 1;
        let at = (next() % event.len() as u64) as usize;
        let (one, two) = event.as_bytes().split_at(at);
        for piece in [one, two] {
            send(tcp, n, piece, true, shared).await?;
        }
        if finish {
            break;
        }
        let mean = shared.pace.as_millis() as u64;
        pace(Duration::from_millis(mean / 2 + next() % (mean + 1))).await;
    }
    if usage {
        let event = format!(
            "data: {{\"id\":\"s{n}\",\"choices\":[],\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":{tokens},\"total_tokens\":{}}}}}\n\n",
            tokens + 7
        );
        send(tcp, n, event.as_bytes(), false, shared).await?;
    }
    send(tcp, n, b"data: [DONE]\n\n", true, shared).await?;
    // Before the last bytes are sent, because their receiver may look at once.
    lock(&shared.sent).entry(n).or_default().whole = true;
    tcp.write_all(b"0\r\n\r\n").await
}

async fn send(
    tcp: &mut TcpStream,
    n: u64,
    piece: &[u8],
    kept: bool,
    shared: &Shared,
) -> std::io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    {
        let mut all = lock(&shared.sent);
        let sent = all.entry(n).or_default();
        sent.bytes.extend_from_slice(piece);
        if kept {
            sent.without_usage.extend_from_slice(piece);
        }
    }
    let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
    tcp.write_all(&chunk).await
}

/// One request with a declared length: its head in lower case, and its body.
async fn request(tcp: &mut TcpStream) -> Option<(String, Value)> {
    let mut raw = Vec::new();
    loop {
        if let Some(end) = raw.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&raw[..end]).into_owned();
            let length = head.lines().find_map(|l| {
                let (name, value) = l.split_once(':')?;
                let is_length = name.eq_ignore_ascii_case("content-length");
                is_length.then(|| value.trim().parse::<usize>().ok())?
            })?;
            let mut body = raw.split_off(end + 4);
            while body.len() < length {
                tcp.read_buf(&mut body)
                    .await
                    .ok()
                    .filter(|read| *read > 0)?;
            }
            return Some((head, serde_json::from_slice(&body).ok()?));
        }
        tcp.read_buf(&mut raw).await.ok().filter(|read| *read > 0)?;
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
