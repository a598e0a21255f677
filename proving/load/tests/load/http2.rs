//! Several exchanges at once on each connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use load::client::{Protocol, Target, Trust};
use load::observer::{Measure, Observations};
use load::run::{Plan, start};
use load::source::{Fixed, Payload};
use testing::eventually;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use super::{closed, head, seen, tls, to};

struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
    /// Of bodies.
    bytes: AtomicU64,
    /// Streams open at once, at most.
    peak: AtomicU64,
    open: AtomicU64,
    /// What the first request said.
    heads: std::sync::Mutex<Vec<String>>,
    held: Semaphore,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            connections: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            open: AtomicU64::new(0),
            heads: std::sync::Mutex::default(),
            held: Semaphore::new(0),
        }
    }
}

/// Streams that the server allows on a connection.
const MOST_STREAMS: u32 = 12;

/// As many requests as there are, and as many streams at once.
const UNLIMITED: usize = usize::MAX - 1;

/// Answers each request with three tokens in frames of their own; a connection serves `serves` requests.
fn serve(tls: Option<TlsAcceptor>, serves: usize) -> (SocketAddr, Arc<Counts>) {
    let (address, counts) = serve_held(tls, serves);
    counts.held.close();
    (address, counts)
}

/// The same; all tokens but the first are held back until [`Counts::held`] is closed.
fn serve_held(tls: Option<TlsAcceptor>, serves: usize) -> (SocketAddr, Arc<Counts>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a socket");
    let counts = Arc::new(Counts::default());
    let theirs = Arc::clone(&counts);
    std::thread::spawn(move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).expect("a listener");
            while let Ok((tcp, _)) = listener.accept().await {
                tcp.set_nodelay(true).expect("a socket");
                theirs.connections.fetch_add(1, Ordering::Relaxed);
                let (counts, tls) = (Arc::clone(&theirs), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => connection(tcp, counts, serves).await,
                        Some(tls) => {
                            connection(tls.accept(tcp).await.expect("TLS"), counts, serves).await
                        }
                    }
                });
            }
        });
    });
    (address, counts)
}

async fn connection<I>(io: I, counts: Arc<Counts>, serves: usize)
where
    I: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut builder = h2::server::Builder::new();
    if serves != UNLIMITED {
        builder.max_concurrent_streams(MOST_STREAMS);
    }
    let mut connection = builder.handshake(io).await.expect("HTTP/2");
    let mut served = 0;
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        served += 1;
        if served == serves {
            connection.graceful_shutdown();
        }
        let counts = Arc::clone(&counts);
        tokio::spawn(async move {
            let said = format!("{:?} {:?}", request.uri(), request.headers());
            counts.heads.lock().expect("no panic").push(said);
            let now = counts.open.fetch_add(1, Ordering::Relaxed) + 1;
            counts.peak.fetch_max(now, Ordering::Relaxed);
            let mut body = request.into_body();
            while let Some(data) = body.data().await {
                let data = data.expect("a body");
                counts.bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
                body.flow_control()
                    .release_capacity(data.len())
                    .expect("room");
            }
            counts.requests.fetch_add(1, Ordering::Relaxed);
            let answer = http::Response::builder().header("content-type", "text/event-stream");
            let mut send = respond
                .send_response(answer.body(()).expect("a head"), false)
                .expect("a stream");
            for _ in 0..3 {
                let token = Bytes::from_static(
                    b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
                );
                send.send_data(token, false).expect("a stream");
                // There are no permits: it waits until it is closed.
                drop(counts.held.acquire().await);
            }
            counts.open.fetch_sub(1, Ordering::Relaxed);
            send.send_data(Bytes::from_static(b"data: [DONE]\n\n"), true)
                .expect("a stream");
        });
    }
}

fn over_http2(address: SocketAddr, users: usize, connections: usize) -> Plan {
    let mut plan = to(address, closed(users));
    plan.reach.protocol = Protocol::Http2 { connections };
    (plan.most, plan.warm_up) = (Some(40), Duration::ZERO);
    plan.measure = super::ENOUGH;
    plan
}

/// Lets the answers go once so many are open at once.
fn seen_together(plan: Plan, counts: &Counts, open: u64) -> Observations {
    let running = start(plan).expect("threads");
    eventually("answers at once", || running.open() == open);
    counts.held.close();
    running.finish().expect("a run").total()
}

#[test]
fn streams_share_a_stated_number_of_connections_and_bodies_arrive_whole() {
    let (address, counts) = serve_held(None, usize::MAX);
    let parts = [
        Bytes::from(vec![0xff; 300_000]),
        Bytes::from_static(b"no json"),
        Bytes::from(vec![1; 99]),
    ];
    let payload = Payload::new(&parts).expect("three parts");
    let bytes = payload.len();
    let mut plan = over_http2(address, 20, 2);
    let own = head().with("x-workload-app", "a").expect("a header");
    plan.source = Arc::new(Fixed::in_turn(vec![own], payload, Arc::default()).expect("a head"));
    plan.reach.targets = vec![Target::parse(&format!("http://{address}/base")).expect("a target")];
    // Several at once on each.
    let seen = seen_together(plan, &counts, 20);
    assert_eq!((seen.answered, seen.failed(), seen.outputs), (40, 0, 120));
    assert_eq!(counts.connections.load(Ordering::Relaxed), 2);
    assert_eq!(counts.bytes.load(Ordering::Relaxed), 40 * bytes);
    let heads = counts.heads.lock().expect("no panic");
    let expected = format!("http://{address}/base/v1/chat/completions");
    assert!(
        heads[0].starts_with(&expected) && heads[0].contains("\"x-workload-app\": \"a\""),
        "{}",
        heads[0]
    );
    assert!(
        heads[0].contains(&format!("\"content-length\": \"{bytes}\"")),
        "{}",
        heads[0]
    );
    assert!(seen.quantiles(Measure::BetweenTokens).is_some(), "gaps");
}

#[test]
fn a_connection_that_takes_no_more_is_followed_by_another_and_nothing_is_lost() {
    let (address, counts) = serve(None, 5);
    let seen = seen(over_http2(address, 1, 1));
    assert_eq!((seen.answered, seen.failed()), (40, 0));
    assert_eq!(
        counts.requests.load(Ordering::Relaxed),
        40,
        "each was sent once"
    );
    assert_eq!(
        counts.connections.load(Ordering::Relaxed),
        1 + seen.reopened
    );
    assert!(seen.reopened >= 7, "{}", seen.reopened);
}

#[test]
fn it_is_spoken_over_tls_to_whoever_offers_it() {
    let (config, file) = tls::of_localhost("http2", b"h2");
    let (address, counts) = serve(Some(TlsAcceptor::from(config)), usize::MAX);
    let mut plan = over_http2(address, 10, 1);
    plan.reach.trust = Trust::File(file.clone());
    plan.reach.targets = vec![Target::parse(&format!("https://{address}")).expect("a target")];
    let seen = seen(plan);
    assert_eq!((seen.answered, seen.failed()), (40, 0));
    assert_eq!(counts.connections.load(Ordering::Relaxed), 1);
    std::fs::remove_file(file).expect("a file");
}

#[test]
fn a_request_counts_as_sent_when_the_peer_allows_its_stream_and_not_before() {
    let (address, counts) = serve_held(None, usize::MAX);
    // Sixty want to be first, and twelve are allowed until those have been heard.
    let mut plan = over_http2(address, 60, 1);
    plan.most = Some(60);
    let rows = super::with_ids(&mut plan);
    let seen = seen_together(plan, &counts, u64::from(MOST_STREAMS));
    assert_eq!((seen.answered, seen.failed()), (60, 0));
    assert!(counts.peak.load(Ordering::Relaxed) <= u64::from(MOST_STREAMS));
    let mut rows: Vec<_> = rows.iter().flatten().collect();
    rows.sort_by_key(|row| row.sent_ns);
    let (first, later) = rows.split_at(MOST_STREAMS as usize);
    assert_eq!((first.len(), later.len()), (12, 48));
    let heard = first.iter().map(|row| row.body_ns.expect("a body")).max();
    assert!(
        later.iter().all(|row| row.sent_ns >= heard),
        "{heard:?} {later:?}"
    );
    // All were due at once, and whoever waited counts it as latency.
    assert!(
        rows.iter()
            .all(|row| row.intended_ns == rows[0].intended_ns)
    );
    let of = |measure| seen.quantiles(measure).expect("answers");
    let (waited, served) = (of(Measure::Latency), of(Measure::Service));
    assert!(served.max <= waited.max, "{waited:?} {served:?}");
}

#[test]
fn a_peer_that_names_no_limit_gets_all_streams_at_once() {
    let (address, counts) = serve_held(None, UNLIMITED);
    let mut plan = over_http2(address, 60, 1);
    plan.most = Some(120);
    let seen = seen_together(plan, &counts, 60);
    assert_eq!((seen.answered, seen.failed()), (120, 0));
}

#[test]
fn each_request_carries_the_id_that_its_row_has() {
    let (address, counts) = serve(None, usize::MAX);
    let mut plan = over_http2(address, 4, 1);
    let rows = super::with_ids(&mut plan);
    assert_eq!(seen(plan).failed(), 0);
    let sent: Vec<String> = counts.heads.lock().expect("no panic").clone();
    let rows: Vec<String> = rows
        .iter()
        .flatten()
        .map(|row| row.request_id().to_string())
        .collect();
    assert_eq!((rows.len(), sent.len()), (40, 40));
    for id in rows {
        let line = format!("\"x-request-id\": \"{id}\"");
        let times = sent.iter().filter(|head| head.contains(&line)).count();
        assert_eq!(times, 1, "{line} {sent:?}");
    }
}
