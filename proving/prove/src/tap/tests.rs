//! Bytes pass as they are, times lie in order, and a delay on purpose is as long as was asked for.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use load::source::IdHeader;
use testing::{PATIENCE, eventually};

use crate::host::ports::Closed;

use super::{Tap, TapConfig, Unstamped, monotonic_ns, monotonic_ns_of};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nx-odd:  kept \r\ntransfer-encoding: chunked\r\n\r\n3;a=b\r\nabc\r\n0\r\n\r\n";

fn loopback() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Where [`ANSWER`] is cut.
const FIRST_BYTES: usize = 30;

/// Answers each read of one connection after the other with [`ANSWER`] in two pieces, and does this in between.
fn upstream(between: impl Fn() + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind(loopback()).expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            while let Ok(1..) = stream.read(&mut [0; 4096]) {
                let (one, other) = ANSWER.split_at(FIRST_BYTES);
                stream.write_all(one).expect("the tap");
                between();
                stream.write_all(other).expect("the tap");
            }
        }
    });
    address
}

fn tap(upstream: SocketAddr) -> (Tap, std::sync::mpsc::Receiver<super::Stamp>) {
    let id = IdHeader::new("x-request-id").expect("a name");
    let config = TapConfig {
        listen: loopback(),
        upstream,
        id,
    };
    Tap::start(config).expect("a port")
}

/// Does this between the first bytes of the answer and the others.
fn ask(stream: &mut TcpStream, id: &str, between: impl FnOnce()) -> Vec<u8> {
    let request =
        format!("POST / HTTP/1.1\r\nhost: x\r\nx-request-id: {id}\r\ncontent-length: 0\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the tap");
    let mut answer = vec![0; ANSWER.len()];
    let (one, other) = answer.split_at_mut(FIRST_BYTES);
    stream.read_exact(one).expect("the first of an answer");
    between();
    stream.read_exact(other).expect("an answer");
    answer
}

#[test]
fn answers_pass_byte_for_byte_and_each_exchange_of_a_connection_has_its_times() {
    // The other bytes of an answer go when the first have come.
    let (go, went) = channel();
    let (tap, stamps) = tap(upstream(move || went.recv().expect("the first have come")));
    let mut stream = TcpStream::connect(tap.address).expect("the tap");
    for turn in 0..3 {
        let (before, mut between) = (monotonic_ns(), 0);
        let answer = ask(&mut stream, &format!("prove-0-0-0-{turn}-7"), || {
            between = monotonic_ns();
            go.send(()).expect("the upstream waits");
        });
        assert_eq!(answer, ANSWER);
        let stamp = stamps.recv_timeout(PATIENCE).expect("a stamp");
        // The client may have its last byte before the relay's thread goes on and stamps it.
        let after = monotonic_ns();
        assert_eq!(stamp.id.turn, turn);
        let times = [
            before,
            stamp.in_ns,
            stamp.whole_in_ns,
            stamp.first_out_ns,
            between,
            stamp.last_out_ns,
            after,
        ];
        assert!(times.is_sorted(), "turn {turn}: {times:?}");
    }
    let on = || go.send(()).expect("the upstream waits");
    assert_eq!(ask(&mut stream, "somebody's", on), ANSWER);
    drop(stream);
    let unstamped = Unstamped {
        without_id: 1,
        ..Unstamped::default()
    };
    eventually(
        "the exchange without an id is counted, and none else",
        || tap.unstamped() == unstamped,
    );
}

#[test]
fn an_upstream_that_is_not_there_closes_the_connection_and_is_counted() {
    let gone = Closed::new();
    let (tap, _stamps) = tap(gone.address);
    let mut stream = TcpStream::connect(tap.address).expect("the tap");
    drop(stream.write_all(b"GET / HTTP/1.1\r\n\r\n"));
    let mut answer = Vec::new();
    // Closed or reset, and without a byte.
    drop(stream.read_to_end(&mut answer));
    assert!(answer.is_empty());
    assert_eq!(tap.unstamped().refused, 1);
}

#[test]
fn a_delay_on_purpose_comes_before_the_time_is_taken_for_every_so_many_requests() {
    let (tap, stamps) = tap(upstream(|| {}));
    let mut stream = TcpStream::connect(tap.address).expect("the tap");
    tap.delay(Duration::from_millis(5), 2);
    for turn in 0..4 {
        let before = monotonic_ns();
        ask(&mut stream, "prove-0-0-0-0-1", || {});
        let stamp = stamps.recv_timeout(PATIENCE).expect("a stamp");
        let took = stamp.in_ns - before;
        let is_delayed = turn % 2 == 0;
        assert_eq!(stamp.delay_ns, if is_delayed { 5_000_000 } else { 0 });
        assert!(took >= stamp.delay_ns, "{took}");
    }
    drop(tap);
    assert!(stamps.recv().is_err(), "nobody sends any more");
}

#[test]
fn a_moment_and_its_nanoseconds_are_of_one_clock() {
    let before = monotonic_ns();
    let moment = Instant::now();
    let after = monotonic_ns();
    let of = monotonic_ns_of(moment);
    // Both clocks are read twice, and the thread may stand still in between.
    let slack = monotonic_ns() - before + 1_000;
    assert!(
        of + slack > before && of < after + slack,
        "{before} {of} {after}"
    );
    let later = monotonic_ns_of(moment + Duration::from_secs(5));
    let slack = monotonic_ns() - before + 1_000;
    assert!(later.abs_diff(of + 5_000_000_000) < slack);
}

#[test]
fn streams_of_a_connection_of_http2_pass_side_by_side_and_each_has_its_times() {
    let engine = engine::spawn_thread(engine::EngineConfig {
        ttft: Duration::from_millis(5),
        inter_token: Duration::from_millis(2),
        ..engine::EngineConfig::default()
    });
    let engine = engine.expect("an engine");
    let (tap, stamps) = tap(engine.addr());
    let head = load::source::Head::post("/v1/chat/completions").expect("a path");
    let head = head
        .with("content-type", "application/json")
        .expect("a header");
    let body =
        r#"{"model":"gpt-oss-120b","stream":true,"messages":[{"role":"user","content":"x"}]}"#;
    let shape = load::run::Shape::Closed {
        users: 8,
        think: Duration::ZERO,
    };
    let protocol = load::client::Protocol::Http2 { connections: 1 };
    let asked = crate::overhead::ask::ask(
        (tap.address, protocol),
        (head, body.into()),
        shape,
        64,
        &stamps,
    );
    let (pairs, unpaired) = asked.expect("they are asked");
    // Each was answered, and stamped by the id in its head.
    assert_eq!(
        (pairs.len(), unpaired),
        (64, crate::overhead::Unpaired::default())
    );
    for pair in &pairs {
        // A stream of some tokens, 2 ms apart, takes as long behind the relay as before it.
        assert!(pair.upstream_ns > 5_000_000, "{pair:?}");
        assert!(pair.downstream_ns >= pair.upstream_ns, "{pair:?}");
        assert!(pair.to_upstream_ns > 0 && pair.last_back_ns > 0, "{pair:?}");
    }
    assert_eq!(tap.unstamped(), Unstamped::default());
}

#[test]
fn a_stream_that_its_client_leaves_is_cut_and_the_others_of_its_connection_go_on() {
    let engine = engine::spawn_thread(engine::EngineConfig {
        ttft: Duration::ZERO,
        inter_token: Duration::from_millis(5),
        ..engine::EngineConfig::default()
    });
    let engine = engine.expect("an engine");
    let (tap, stamps) = tap(engine.addr());
    let runtime = crate::runtime::make().expect("a runtime");
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(tap.address)
            .await
            .expect("the tap");
        let (sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
        tokio::spawn(async move { drop(connection.await) });
        let request = |id: &str| {
            http::Request::post(format!("http://{}/v1/chat/completions", tap.address))
                .header("content-type", "application/json")
                .header("x-request-id", id)
                .body(())
                .expect("a request")
        };
        let body =
            r#"{"model":"gpt-oss-120b","stream":true,"messages":[{"role":"user","content":"x"}]}"#;
        let mut sender = sender.ready().await.expect("room");
        let mut ask = |id: &str| {
            let (answer, mut to) = sender.send_request(request(id), false).expect("it is sent");
            to.send_data(bytes::Bytes::from_static(body.as_bytes()), true)
                .expect("its data");
            (answer, to)
        };
        let (left, mut to) = ask("prove-0-0-0-0-7");
        let (whole, _kept) = ask("prove-0-0-0-1-7");
        let left = left.await.expect("a head");
        assert_eq!(left.status(), 200);
        to.send_reset(h2::Reason::CANCEL);
        let mut body = whole.await.expect("a head").into_body();
        let mut bytes = 0;
        while let Some(chunk) = body.data().await {
            let chunk = chunk.expect("data");
            bytes += chunk.len();
            body.flow_control()
                .release_capacity(chunk.len())
                .expect("room");
        }
        assert!(bytes > 1_000, "{bytes}");
    });
    let stamp = stamps.recv_timeout(PATIENCE).expect("a stamp");
    assert_eq!(stamp.id.turn, 1);
    let cut = Unstamped {
        cut: 1,
        ..Unstamped::default()
    };
    eventually("what was left is counted", || tap.unstamped() == cut);
}
