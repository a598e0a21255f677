//! Upstream responses that violate HTTP: H13.
//!
//! Invariant: an ambiguous response becomes 502 and its connection is never used again.
//! Not here: streams that break off, retries, slow upstreams.

use testing::eventually;

use crate::fixture::{answer, call, config};
use crate::harness::{Connection, Gate, Step, Upstream, chat};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

#[test]
fn h13_ambiguous_responses_become_502_and_the_connection_is_discarded() {
    let endless = format!("{OK}x-a: {}", "v".repeat(1 << 20));
    let rows: Vec<(&str, String)> = vec![
        (
            "9 informational heads",
            "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(9) + OK + "content-length: 2\r\n\r\n{}",
        ),
        (
            "10,000 of them",
            "HTTP/1.1 100 Continue\r\n\r\n".repeat(10_000),
        ),
        (
            "an unasked 101",
            "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: foo\r\n\r\n"
                .into(),
        ),
        (
            "two lengths",
            format!("{OK}content-length: 2\r\ncontent-length: 2\r\n\r\n{{}}"),
        ),
        (
            "length and chunks",
            format!(
                "{OK}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"
            ),
        ),
        (
            "a length in hex",
            format!("{OK}content-length: 0x2\r\n\r\n{{}}"),
        ),
        (
            "an unknown encoding",
            format!("{OK}transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
        ),
        ("a head of 1 MiB", endless),
        (
            "a bare LF",
            "HTTP/1.1 200 OK\ncontent-length: 2\n\n{}".into(),
        ),
        (
            "a folded line",
            format!("{OK}x-a: b\r\n c\r\ncontent-length: 2\r\n\r\n{{}}"),
        ),
        ("not HTTP", "<html>hello</html>\r\n\r\n".into()),
        (
            "status 99",
            "HTTP/1.1 099 What\r\ncontent-length: 0\r\n\r\n".into(),
        ),
        (
            "status 600",
            "HTTP/1.1 600 What\r\ncontent-length: 0\r\n\r\n".into(),
        ),
    ];
    let answers: Vec<Vec<u8>> = rows
        .iter()
        .map(|(_, text)| text.clone().into_bytes())
        .collect();
    // A valid answer after each malformed one prevents the ejection of the endpoint.
    let upstream = Upstream::start(move |n, _| {
        vec![Step::Send(if n % 2 == 0 {
            answers[n / 2].clone()
        } else {
            answer()
        })]
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let mut connection = Connection::open(gate.data);
    for (what, _) in &rows {
        let bad = connection.call(&call(&chat("m", false)));
        assert_eq!(
            (bad.status, bad.code().as_str()),
            (502, "upstream_malformed"),
            "{what}: {}",
            bad.text()
        );
        assert!(bad.header("x-request-id").is_some(), "{what}");
        let good = connection.call(&call(&chat("m", false)));
        assert_eq!(good.status, 200, "after {what}: {}", good.text());
    }
    let seen = upstream.seen();
    assert_eq!(seen.len(), 2 * rows.len(), "nothing was tried twice");
    for (pair, (what, _)) in seen.chunks(2).zip(&rows) {
        assert_ne!(
            pair[0].connection, pair[1].connection,
            "used again after {what}"
        );
    }
    let records = gate.records(2 * rows.len());
    for (pair, (what, _)) in records.chunks(2).zip(&rows) {
        assert_eq!(pair[0]["outcome"], "failed", "{what}: {}", pair[0]);
        assert_eq!(pair[0]["code"], "upstream_malformed", "{what}: {}", pair[0]);
    }
}

#[test]
fn h13_a_few_informational_heads_are_skipped() {
    let upstream = Upstream::start(|_, _| {
        let hints = "HTTP/1.1 103 Early Hints\r\nlink: </evil>\r\n\r\n".repeat(8);
        vec![Step::Send(hints.into_bytes()), Step::Send(answer())]
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let mut connection = Connection::open(gate.data);
    connection.send(&call(&chat("m", false)));
    assert!(connection.more());
    assert!(
        connection.unread().starts_with(b"HTTP/1.1 200 "),
        "a 1xx was forwarded"
    );
    assert_eq!(connection.response().status, 200);
}

#[test]
fn h13_bytes_after_a_response_end_the_connection() {
    for surplus in ["X", "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison"] {
        let upstream = Upstream::start(move |n, _| {
            let mut bytes = answer();
            if n == 0 {
                bytes.extend_from_slice(surplus.as_bytes());
            }
            vec![Step::Send(bytes)]
        });
        let gate = Gate::start(&config(upstream.address, ""), &[]);
        let mut connection = Connection::open(gate.data);
        for _ in 0..3 {
            let response = connection.call(&call(&chat("m", false)));
            assert_eq!(response.status, 200);
            assert!(!response.text().contains("poison"), "{}", response.text());
        }
        assert_eq!(
            upstream.connections(),
            2,
            "the poisoned connection was used again"
        );
    }
}

#[test]
fn h13_a_body_delimited_by_close_is_forwarded() {
    let upstream = Upstream::start(|_, _| {
        vec![
            Step::Send(format!("{OK}\r\n{{\"a\":1}}").into_bytes()),
            Step::Close,
        ]
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let mut connection = Connection::open(gate.data);
    for _ in 0..2 {
        let response = connection.call(&call(&chat("m", false)));
        assert_eq!(
            (response.status, response.text().as_str(), response.whole),
            (200, "{\"a\":1}", true)
        );
    }
    assert_eq!(upstream.connections(), 2);
}

#[test]
fn h13_an_early_answer_is_forwarded_and_its_connection_not_reused() {
    // Answers when it has the head and reads no further.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    let (count, counted) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for mut tcp in listener.incoming().flatten() {
            drop(std::io::Read::read(&mut tcp, &mut [0; 1024]));
            drop(std::io::Write::write_all(&mut tcp, &answer()));
            drop(count.send(tcp));
        }
    });
    let gate = Gate::start(&config(address, ""), &[]);
    let large = format!(r#"{{"model":"m","user":"{}"}}"#, "x".repeat(16 << 20));
    for _ in 0..2 {
        let mut connection = Connection::open(gate.data);
        let response = connection.call(&call(&large));
        assert_eq!(response.status, 200, "{}", response.text());
    }
    let mut connections = Vec::new();
    eventually("each call had a connection of its own", || {
        connections.extend(counted.try_iter());
        connections.len() == 2
    });
}

#[test]
fn h13_cookies_and_hop_by_hop_headers_of_an_upstream_are_not_forwarded() {
    let upstream = Upstream::start(|_, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nset-cookie: session=secret\r\n\
            keep-alive: timeout=5\r\nconnection: keep-alive, x-hop\r\nx-hop: 1\r\nalt-svc: h3=\":443\"\r\n\
            x-engine: 7\r\ncontent-length: 2\r\n\r\n{}";
        vec![Step::Send(head.as_bytes().to_vec())]
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let response = gate.call(&call(&chat("m", false)));
    assert_eq!(
        (response.status, response.header("x-engine")),
        (200, Some("7"))
    );
    for name in ["set-cookie", "keep-alive", "connection", "x-hop", "alt-svc"] {
        assert_eq!(response.header(name), None, "{name}");
    }
}
