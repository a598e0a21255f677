//! H13: response heads that are ambiguous, endless, or meant for the gate.
//!
//! Invariant: an ambiguous head is 502 and its connection is not reused.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread::{self, JoinHandle};

use super::{assert_error, call, case, one};
use crate::harness::answer::{COMPLETION, json};
use crate::harness::{Connection, Gate, Step, Upstream, post};

fn answer(case: &str) -> Vec<u8> {
    let good = json(200, COMPLETION);
    let informational = |n| b"HTTP/1.1 102 Processing\r\nx-a: b\r\n\r\n".repeat(n);
    let with = |lines: &str| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        format!("{head}{lines}\r\n{COMPLETION}").into_bytes()
    };
    let length = COMPLETION.len();
    match case {
        "good" => good,
        "8-informational" => [informational(8), good].concat(),
        "9-informational" => [informational(9), good].concat(),
        "many-informational" => [informational(10_000), good].concat(),
        "early-hints" => {
            let hints = b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".to_vec();
            [hints, good].concat()
        }
        "switched" => b"HTTP/1.1 101 Switching\r\nupgrade: websocket\r\n\r\n\x81\x01a".to_vec(),
        "length-and-chunks" => with(&format!(
            "content-length: {length}\r\ntransfer-encoding: chunked\r\n"
        )),
        "two-lengths" => with(&format!(
            "content-length: {length}\r\ncontent-length: 5\r\n"
        )),
        "same-length-twice" => with(&format!(
            "content-length: {length}\r\ncontent-length: {length}\r\n"
        )),
        "signed-length" => with(&format!("content-length: +{length}\r\n")),
        "odd-coding" => with("transfer-encoding: gzip, chunked\r\n"),
        "folded" => with(&format!("x-a: b\r\n c\r\ncontent-length: {length}\r\n")),
        "bare-newline" => {
            format!("HTTP/1.1 200 OK\ncontent-length: {length}\n\n{COMPLETION}").into()
        }
        "mebibyte" => with(&format!(
            "x-a: {}\r\ncontent-length: {length}\r\n",
            "a".repeat(1 << 20)
        )),
        "thousand-fields" => with(&format!(
            "{}content-length: {length}\r\n",
            "x-a: b\r\n".repeat(1000)
        )),
        "not-http" => b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec(),
        _ => panic!("no such case: {case}"),
    }
}

#[test]
fn ambiguous_heads_are_502_and_their_connections_are_closed() {
    let upstream = Upstream::start(|_, seen| vec![Step::Send(answer(&case(seen)))]);
    let gate = Gate::start(&one(upstream.address), &[]);
    let bad = [
        "9-informational",
        "many-informational",
        "switched",
        "length-and-chunks",
        "two-lengths",
        "signed-length",
        "odd-coding",
        "folded",
        "bare-newline",
        "mebibyte",
        "thousand-fields",
        "not-http",
    ];
    // One client connection is served by one worker, so that a connection kept by mistake would be reused.
    let mut connection = Connection::open(gate.data);
    for case in bad {
        let response = connection.call(&call(case, false));
        assert_error(&response, 502, "upstream_malformed", case);
        let response = connection.call(&call("good", false));
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, COMPLETION),
            "{case}"
        );
        let (seen, connections) = (upstream.seen(), upstream.connections());
        let last = &seen[seen.len() - 2..];
        assert_ne!(last[0].connection, last[1].connection, "{case}: used again");
        assert!(connections >= 2, "{case}");
    }
}

#[test]
fn informational_heads_are_skipped_up_to_a_bound() {
    let upstream = Upstream::start(|_, seen| vec![Step::Send(answer(&case(seen)))]);
    let gate = Gate::start(&one(upstream.address), &[]);
    for case in ["8-informational", "early-hints"] {
        let response = gate.call(&call(case, false));
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, COMPLETION),
            "{case}"
        );
        assert_eq!(response.header("link"), None);
    }
}

#[test]
fn a_repeated_content_length_is_502() {
    let upstream = Upstream::start(|_, seen| vec![Step::Send(answer(&case(seen)))]);
    let gate = Gate::start(&one(upstream.address), &[]);
    let response = gate.call(&call("same-length-twice", false));
    assert_error(&response, 502, "upstream_malformed", "same-length-twice");
}

#[test]
fn bytes_after_a_response_close_the_connection_and_are_not_forwarded() {
    let upstream = Upstream::start(|_, _| {
        let smuggled = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nBAD".to_vec();
        vec![Step::Send([json(200, COMPLETION), smuggled].concat())]
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    let mut connection = Connection::open(gate.data);
    for _ in 0..5 {
        let response = connection.call(&call("m", false));
        assert_eq!(
            (response.status, response.text().as_str()),
            (200, COMPLETION)
        );
    }
    assert_eq!(upstream.connections(), 5);
}

#[test]
fn upstream_headers_meant_for_the_gate_are_not_forwarded() {
    let upstream = Upstream::start(|_, _| {
        let lines = "set-cookie: session=1\r\nSet-Cookie: b=2\r\nwww-authenticate: Bearer\r\n\
             x-ratelimit-remaining-requests: 9\r\nx-api-key: k\r\nalt-svc: h3=\":1\"\r\n\
             strict-transport-security: max-age=9\r\nconnection: x-private\r\nx-private: p\r\n\
             server: theirs\r\nx-kept: yes\r\nopenai-organization: ours\r\n";
        let length = COMPLETION.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        let text = format!("{head}{lines}content-length: {length}\r\n\r\n{COMPLETION}");
        vec![Step::Send(text.into())]
    });
    let gate = Gate::start(&one(upstream.address), &[]);
    let response = gate.call(&call("m", false));
    assert_eq!(response.header("x-kept"), Some("yes"));
    let dropped = [
        "set-cookie",
        "www-authenticate",
        "x-ratelimit-remaining-requests",
        "x-api-key",
        "alt-svc",
        "strict-transport-security",
        "x-private",
        "server",
        "openai-organization",
    ];
    for name in dropped {
        assert_eq!(response.header(name), None, "{name}");
    }
}

/// Reads a little of each request, answers, and closes with the rest unread: a reset.
fn refusing(connections: usize) -> (SocketAddr, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    let accepted = thread::spawn(move || {
        let taken = listener.incoming().flatten().take(connections);
        taken.fold(0, |n, mut tcp| {
            tcp.read_exact(&mut [0; 1000]).expect("a request");
            let answer = json(413, r#"{"error":{"message":"too much","code":"theirs"}}"#);
            tcp.write_all(&answer)
                .expect("the gate reads while it sends");
            n + 1
        })
    });
    (address, accepted)
}

#[test]
fn an_early_answer_is_forwarded_and_its_connection_closed() {
    const CALLS: usize = 10;
    let (address, accepted) = refusing(CALLS);
    let gate = Gate::start(&one(address), &[]);
    let prompt = "x".repeat(8 << 20);
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{prompt}"}}]}}"#);
    let request = post("/v1/chat/completions", &["x-workload-app: w"], &body);
    let mut connection = Connection::open(gate.data);
    for n in 0..CALLS {
        let response = connection.call(&request);
        assert_eq!(
            (response.status, response.code().as_str()),
            (413, "theirs"),
            "call {n}"
        );
    }
    assert_eq!(
        accepted.join().expect("it ends"),
        CALLS,
        "none was used again"
    );
}
