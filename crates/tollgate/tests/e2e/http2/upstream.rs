//! Upstreams that speak HTTP/2 with prior knowledge.
//!
//! Not here: ALPN and certificates (`connections::tls`).

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use bytes::Bytes;
use http_body_util::Full;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use testing::eventually;
use tokio::sync::Notify;

use super::{engine, stream};
use crate::fixture::call;
use crate::harness::{Connection, Gate, Response, chat};

fn gate(address: std::net::SocketAddr) -> Gate {
    let config = format!(
        "workers: 1\nbackends: {{ up: {{ url: http://{address}/v1, protocol: http2, credential: {{ inline: gate-key }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n"
    );
    Gate::start(&config, &[])
}

#[test]
fn a_call_and_a_stream_go_through() {
    let engine = engine::spawn_thread(engine::EngineConfig {
        api_key: Some("gate-key".into()),
        inspect: true,
        ..engine::EngineConfig::default()
    })
    .expect("an engine");
    let gate = gate(engine.addr());
    let mut connection = Connection::open(gate.data);
    let unary = connection.call(&call(&chat("gpt-oss-120b", false)));
    assert_eq!(unary.status, 200, "{}", unary.text());
    let streamed = connection.call(&call(&stream(30)));
    assert!(
        streamed.text().ends_with("data: [DONE]\n\n") && streamed.whole,
        "{}",
        streamed.text()
    );
    let records = gate.records(2);
    assert_eq!(
        records[0]["completion_tokens"],
        unary.json()["usage"]["completion_tokens"]
    );
    assert_eq!(records[1]["completion_tokens"], 30);
    assert!(records.iter().all(|r| r["completion_source"] == "reported"));
    let seen =
        Connection::open(engine.addr()).call(b"GET /_engine/requests HTTP/1.1\r\nhost: e\r\n\r\n");
    for request in seen.json()["requests"].as_array().expect("a list") {
        assert_eq!(request["version"], "HTTP/2.0", "{request}");
        let headers = request["headers"].as_array().expect("a list");
        let keys: Vec<_> = headers.iter().filter(|h| h[0] == "authorization").collect();
        assert_eq!(keys.len(), 1, "{request}");
        assert!(
            !headers.iter().any(|h| h[0] == "x-workload-app"),
            "{request}"
        );
    }
}

#[test]
fn a_client_disconnect_cancels_only_its_own_upstream_stream() {
    let engine = engine(20);
    let gate = gate(engine.addr());
    let mut stays = Connection::open(gate.data);
    stays.send(&call(&stream(100)));
    let mut leaves = Connection::open(gate.data);
    leaves.send(&call(&stream(5000)));
    assert!(leaves.more() && stays.more());
    drop(leaves);
    eventually("one was cancelled", || engine.stats().finished_abort == 1);
    let response = stays.response();
    assert!(response.whole && response.text().ends_with("data: [DONE]\n\n"));
    assert_eq!(engine.stats().finished_abort, 1);
}

#[test]
fn streams_beyond_the_limit_of_one_connection_are_served() {
    let engine = engine(20);
    let gate = gate(engine.addr());
    let mut clients: Vec<_> = (0..120).map(|_| Connection::open(gate.data)).collect();
    clients
        .iter_mut()
        .for_each(|client| client.send(&call(&stream(20))));
    let responses: Vec<Response> = clients.iter_mut().map(Connection::response).collect();
    for response in responses {
        assert_eq!(response.status, 200, "{}", response.text());
        assert!(response.whole && response.text().ends_with("data: [DONE]\n\n"));
    }
    assert_eq!(gate.records(120).len(), 120);
}

/// An upstream that takes two streams on a connection, and answers none before it is told to. Gives its address, how many calls
/// have come, and what tells it.
fn of_two_streams() -> (SocketAddr, Arc<AtomicUsize>, Arc<Notify>) {
    let (came, told) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    listener.set_nonblocking(true).expect("for the runtime");
    let (counted, waited) = (Arc::clone(&came), Arc::clone(&told));
    std::thread::spawn(move || {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime
            .enable_all()
            .build()
            .expect("a runtime")
            .block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
                loop {
                    let (stream, _) = listener.accept().await.expect("a connection");
                    let (counted, waited) = (Arc::clone(&counted), Arc::clone(&waited));
                    let answer = service_fn(move |_| {
                        let told = Arc::clone(&waited).notified_owned();
                        let nth = counted.fetch_add(1, SeqCst);
                        async move {
                            // The first is answered at once: by then its connection's settings are known.
                            if nth > 0 {
                                told.await;
                            }
                            let body = Full::new(Bytes::from_static(
                                b"{\"object\":\"chat.completion\",\"choices\":[]}",
                            ));
                            let response = http::Response::builder()
                                .header("content-type", "application/json");
                            response.body(body)
                        }
                    });
                    let mut server = http2::Builder::new(TokioExecutor::new());
                    server.max_concurrent_streams(2);
                    tokio::spawn(server.serve_connection(TokioIo::new(stream), answer));
                }
            });
    });
    (address, came, told)
}

#[test]
fn a_peer_that_takes_two_streams_has_two_on_each_connection_and_none_waits() {
    let (address, came, told) = of_two_streams();
    let gate = gate(address);
    let first = gate.call(&call(&chat("m", false)));
    assert_eq!(first.status, 200, "{}", first.text());
    let mut clients = Vec::new();
    for nth in 1..=6 {
        let mut client = Connection::open(gate.data);
        client.send(&call(&chat("m", false)));
        clients.push(client);
        eventually("it is at the upstream", || came.load(SeqCst) == nth + 1);
    }
    told.notify_waiters();
    for mut client in clients {
        assert_eq!(client.response().status, 200);
    }
    eventually("there are three connections, for two calls each", || {
        gate.metric("tollgate_upstream_connections", &[]) == 3.0
    });
}

#[test]
fn a_large_body_goes_through() {
    let engine = engine(0);
    let gate = gate(engine.addr());
    let body = format!(
        r#"{{"model":"gpt-oss-120b","max_tokens":1,"messages":[{{"role":"user","content":"Hi"}}],"user":"{}"}}"#,
        "x".repeat(8 << 20)
    );
    let response = Connection::open(gate.data).call(&call(&body));
    assert_eq!(response.status, 200, "{}", response.text());
}

#[test]
fn an_upstream_that_speaks_no_http2_becomes_502() {
    let upstream = crate::harness::Upstream::start(|_, _| {
        vec![crate::harness::Step::Send(crate::fixture::answer())]
    });
    let gate = gate(upstream.address);
    let response = gate.call(&call(&chat("m", false)));
    assert_eq!(response.status, 502, "{}", response.text());
    assert_eq!(response.json()["error"]["type"], "upstream_error");
    assert_eq!(gate.records(1)[0]["outcome"], "failed");
}

#[test]
fn when_an_engine_stops_its_streams_are_cut_and_later_calls_get_a_typed_error() {
    let engine = engine(20);
    let gate = gate(engine.addr());
    let mut connection = Connection::open(gate.data);
    connection.send(&call(&stream(5000)));
    assert!(connection.more());
    eventually("it runs", || engine.stats().running == 1);
    drop(engine);
    let cut = connection.response();
    assert!(
        !cut.whole && !cut.text().contains("[DONE]"),
        "{}",
        cut.text()
    );
    let response = gate.call(&call(&chat("gpt-oss-120b", false)));
    assert_eq!(
        (response.status, response.code().as_str()),
        (502, "upstream_unreachable")
    );
    let records = gate.records(2);
    assert_eq!(
        (&records[0]["outcome"], &records[0]["code"]),
        (&"failed".into(), &"upstream_cut".into())
    );
}
