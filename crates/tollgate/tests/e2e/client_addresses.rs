//! The client address in the access log: which source is trusted, and how much of the address is logged.
//!
//! Not here: every form of a list of proxies (unit tests of `policy::client`), every header of the PROXY
//! protocol (unit tests of `wire`).

use std::io::Write;
use std::time::Duration;

use testing::{Began, PATIENCE, eventually, pace};

use crate::fixture::{IDENTITY, answer, config};
use crate::harness::tls::{self, Authority};
use crate::harness::{Connection, Gate, Response, Step, Upstream, chat, h2, post};

fn upstream() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(answer())])
}

fn call(lists: &[&str]) -> Vec<u8> {
    let lists: Vec<String> = lists
        .iter()
        .map(|l| format!("x-forwarded-for: {l}"))
        .collect();
    let lines = [IDENTITY]
        .into_iter()
        .chain(lists.iter().map(String::as_str));
    post(
        "/v1/chat/completions",
        &lines.collect::<Vec<_>>(),
        &chat("m", false),
    )
}

/// The client address in the last of `n` records; empty where there is none.
fn recorded(gate: &Gate, n: usize) -> String {
    let records = gate.records(n);
    let address = records[n - 1].get("client_address");
    address.map_or_else(String::new, |a| a.as_str().expect("text").to_owned())
}

#[test]
fn the_access_log_holds_the_client_address_in_full_truncated_or_omitted() {
    let upstream = upstream();
    for (extra, expected) in [
        ("", "127.0.0.1"),
        ("client_address: { record: full }\n", "127.0.0.1"),
        ("client_address: { record: shortened }\n", "127.0.0.0"),
        ("client_address: { record: off }\n", ""),
    ] {
        let gate = Gate::start(&config(upstream.address, extra), &[]);
        assert_eq!(gate.call(&call(&[])).status, 200);
        assert_eq!(recorded(&gate, 1), expected, "{extra}");
        assert_eq!(gate.call(b"GET / HTTP/1.1\r\n\r\n").status, 400);
        assert_eq!(
            recorded(&gate, 2),
            expected,
            "a refusal of a head too: {extra}"
        );
    }
}

#[test]
fn a_forwarded_address_is_trusted_only_from_a_trusted_proxy() {
    let upstream = upstream();
    let list = ["6.6.6.6", "203.0.113.9, 10.1.1.1"];
    for (extra, expected) in [
        ("", "127.0.0.1"),
        (
            "client_address: { trusted_proxies: 10.0.0.0/8 }\n",
            "127.0.0.1",
        ),
        (
            "client_address: { trusted_proxies: [127.0.0.1] }\n",
            "10.1.1.1",
        ),
        (
            "client_address: { trusted_proxies: [127.0.0.0/8, 10.0.0.0/8] }\n",
            "203.0.113.9",
        ),
    ] {
        let gate = Gate::start(&config(upstream.address, extra), &[]);
        assert_eq!(gate.call(&call(&list)).status, 200);
        assert_eq!(recorded(&gate, 1), expected, "{extra}");
    }
    for seen in upstream.seen() {
        assert_eq!(seen.header("x-forwarded-for"), [""; 0]);
    }
}

const REQUIRED: &str = "client_address: { trusted_proxies: 127.0.0.1, proxy_protocol: required }\n";

fn version_2() -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c".to_vec();
    header.extend([198, 51, 100, 7, 10, 0, 0, 1, 0x12, 0x34, 1, 0xBB]);
    header
}

/// Opens a connection, sends these bytes first and then a call; returns the connection and the answer to the call.
fn introduced(gate: &Gate, begins: &[u8]) -> (Connection, Response) {
    let mut connection = Connection::open(gate.data);
    let response = connection.call(&[begins, &call(&[])].concat());
    (connection, response)
}

#[test]
fn a_truncated_proxy_protocol_header_does_not_block_other_connections() {
    let upstream = upstream();
    let gate = Gate::start(&config(upstream.address, REQUIRED), &[]);
    let mut ended = std::net::TcpStream::connect(gate.data).expect("connects");
    ended.write_all(b"PROXY T").expect("sends");
    ended
        .shutdown(std::net::Shutdown::Write)
        .expect("ends its side");
    let is_served = || {
        let v1 = b"PROXY TCP4 203.0.113.9 10.0.0.1 4660 443\r\n";
        let (_, response) = introduced(&gate, v1);
        assert_eq!(response.status, 200, "{}", response.text());
    };
    is_served();
    ended.set_read_timeout(Some(PATIENCE)).expect("an option");
    // By a reset where the gate had not read what came.
    let closed = testing::read(&mut ended, &mut [0]);
    let is_reset = |error: std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
    assert!(closed.map_or_else(is_reset, |read| read == 0));
    is_served();
}

#[test]
fn a_proxy_protocol_header_from_a_trusted_proxy_sets_the_client_address() {
    let upstream = upstream();
    let gate = Gate::start(&config(upstream.address, REQUIRED), &[]);
    let v1 = b"PROXY TCP4 203.0.113.9 10.0.0.1 4660 443\r\n";
    let (mut kept, response) = introduced(&gate, v1);
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(recorded(&gate, 1), "203.0.113.9");
    assert_eq!(kept.call(&call(&[])).status, 200);
    assert_eq!(
        recorded(&gate, 2),
        "203.0.113.9",
        "for all of the connection"
    );
    assert_eq!(introduced(&gate, &version_2()).1.status, 200);
    assert_eq!(recorded(&gate, 3), "198.51.100.7");
    assert_eq!(introduced(&gate, b"PROXY UNKNOWN\r\n").1.status, 200);
    assert_eq!(recorded(&gate, 4), "127.0.0.1");

    let mut slow = Connection::open(gate.data);
    for byte in version_2() {
        slow.send(&[byte]);
        pace(Duration::from_millis(5));
    }
    assert_eq!(slow.call(&call(&[])).status, 200);
    assert_eq!(recorded(&gate, 5), "198.51.100.7", "a byte at a time");
}

#[test]
fn the_proxy_protocol_header_is_read_before_the_tls_handshake() {
    let upstream = upstream();
    let authority = Authority::new();
    let leaf = authority.leaf("gate.test");
    let files = [
        ("cert.pem", leaf.certificate.as_bytes()),
        ("key.pem", leaf.key.as_bytes()),
    ];
    let gate = Gate::start_tls(&config(upstream.address, REQUIRED), &files);
    h2::run(async {
        let begins = version_2();
        let stream = tls::connect_after(
            gate.data,
            &begins,
            "gate.test",
            &authority.certificate,
            &[b"h2"],
        );
        let mut client = h2::client(stream.await).await;
        let request = h2::post("/v1/chat/completions", chat("m", false));
        let answer = client.send_request(request).await.expect("an answer");
        assert_eq!(answer.status(), 200);
    });
    assert_eq!(recorded(&gate, 1), "198.51.100.7");
}

#[test]
fn a_required_proxy_protocol_header_is_required_of_trusted_proxies_only() {
    let upstream = upstream();
    let brief = [REQUIRED, "bounds: { head_time: 1s }\n"].concat();
    let gate = Gate::start(&config(upstream.address, &brief), &[]);
    for begins in [
        "",
        "PROXY TCP4 nonsense\r\n",
        "PROXY TCP4 1.2.3.4 5.6.7.8 1 99999\r\n",
    ] {
        let response = introduced(&gate, begins.as_bytes()).1;
        assert_eq!(response.status, 0, "{begins:?}: closed without a word");
    }
    let began = Began::now();
    let mut silent = Connection::open(gate.data);
    silent.send(b"PROXY TCP4 203.0");
    assert!(!silent.more(), "still open");
    began.took_at_least(Duration::from_millis(900));
    assert_eq!(upstream.seen().len(), 0);

    let elsewhere = REQUIRED.replace("127.0.0.1", "10.0.0.0/8");
    let gate = Gate::start(&config(upstream.address, &elsewhere), &[]);
    assert_eq!(gate.call(&call(&[])).status, 200, "no proxy of ours");
    let posing = introduced(&gate, b"PROXY TCP4 203.0.113.9 10.0.0.1 4660 443\r\n").1;
    assert_eq!(posing.status, 400, "whoever is not trusted cannot say so");
    assert_eq!(recorded(&gate, 2), "127.0.0.1");
}

#[test]
fn the_connection_limit_of_a_client_applies_behind_a_proxy() {
    let upstream = upstream();
    let bounds = "bounds: { source_connections: 2 }\n";
    let more = [REQUIRED, bounds].concat();
    let gate = Gate::start(&config(upstream.address, &more), &[]);
    let from = |address: &str| {
        let begins = format!("PROXY TCP4 {address} 10.0.0.1 4660 443\r\n");
        introduced(&gate, begins.as_bytes())
    };
    let kept = [from("203.0.113.9"), from("203.0.113.9")];
    for (_, response) in &kept {
        assert_eq!(response.status, 200, "{}", response.text());
    }
    let (_, beyond) = from("203.0.113.9");
    assert_eq!((beyond.status, beyond.code().as_str()), (503, "overloaded"));
    assert_eq!(from("203.0.113.10").1.status, 200, "another client");
    let closed = gate.metric(
        "tollgate_connections_closed_total",
        &["bound=\"source_connections\""],
    );
    assert!((closed - 1.0).abs() < 0.1, "{closed}");
    drop(kept);
    eventually("there is room again", || {
        from("203.0.113.9").1.status == 200
    });
}
