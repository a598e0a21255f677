//! TLS on both sides: stalled handshakes, upstreams with invalid certificates.
//!
//! Invariant: after a TLS fault the gate never retries in clear text; the reason appears only in the log.
//! Not here: rotation of the gate's own certificate.

use std::time::Duration;

use testing::{Began, eventually};

use crate::fixture::{call, config, is_closed};
use crate::harness::tls::{self, Authority, Leaf, TlsUpstream};
use crate::harness::{Connection, Gate, Response, chat};

/// A gate before this upstream, trusting `authority` alone.
fn gate(upstream: &TlsUpstream, host: &str, authority: &Authority, lines: &str) -> Gate {
    let config = format!(
        "backends: {{ up: {{ url: \"https://{host}:{}/v1\", ca: ca.pem{lines} }} }}\n\
         routes: [ {{ workload: w, backend: up, return_headers: x-version }} ]\n",
        upstream.address.port()
    );
    Gate::start(&config, &[("ca.pem", authority.certificate.as_bytes())])
}

fn ask(gate: &Gate) -> Response {
    gate.call(&call(&chat("m", false)))
}

#[test]
fn a_valid_certificate_is_trusted_by_name_and_by_address() {
    let authority = Authority::new();
    for host in ["localhost", "127.0.0.1"] {
        let upstream = TlsUpstream::start(&authority.leaf(host), &[b"h2", b"http/1.1"]);
        let gate = gate(&upstream, host, &authority, "");
        let response = ask(&gate);
        assert_eq!(
            (response.status, response.header("x-version")),
            (200, Some("HTTP/2.0")),
            "{host}"
        );
    }
}

#[test]
fn alpn_chooses_the_version_and_http2_is_never_assumed() {
    let authority = Authority::new();
    let rows: [(&str, &[&[u8]], u16, &str); 6] = [
        ("", &[b"http/1.1"], 200, "HTTP/1.1"),
        ("", &[], 200, "HTTP/1.1"),
        (", protocol: http1", &[b"h2", b"http/1.1"], 200, "HTTP/1.1"),
        (", protocol: http2", &[b"h2", b"http/1.1"], 200, "HTTP/2.0"),
        (
            ", protocol: http2",
            &[b"http/1.1"],
            502,
            "upstream_tls_error",
        ),
        (", protocol: http2", &[], 502, "upstream_tls_error"),
    ];
    for (lines, protocols, status, says) in rows {
        let upstream = TlsUpstream::start(&authority.leaf("localhost"), protocols);
        let gate = gate(&upstream, "localhost", &authority, lines);
        let response = ask(&gate);
        let said = if status == 200 {
            response.header("x-version").unwrap_or_default().to_owned()
        } else {
            response.code()
        };
        assert_eq!(
            (response.status, said.as_str()),
            (status, says),
            "{lines} {protocols:?}: {}",
            response.text()
        );
    }
}

#[test]
fn a_long_body_reaches_an_upstream_that_reads_late() {
    let authority = Authority::new();
    for protocols in [&[&b"http/1.1"[..]], &[&b"h2"[..]]] {
        let leaf = authority.leaf("localhost");
        let upstream = TlsUpstream::start_slow(&leaf, protocols, Duration::from_millis(300));
        let gate = gate(
            &upstream,
            "localhost",
            &authority,
            ", timeouts: { first_byte: 5m }",
        );
        // More than the socket buffers of both sides hold, so that its last bytes wait in the TLS session.
        let text = "all work and no play makes a long prompt. ".repeat(200_000);
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#);
        let response = gate.call(&call(&body));
        assert_eq!(response.status, 200, "{protocols:?}: {}", response.text());
        assert_eq!(upstream.requests(), 1, "{protocols:?}");
    }
}

#[test]
fn an_invalid_certificate_becomes_502_and_nothing_is_sent() {
    let authority = Authority::new();
    let rows: [(&str, Leaf); 4] = [
        ("wrong name", authority.leaf("other.test")),
        ("expired", authority.expired_leaf("localhost")),
        ("self-signed", tls::self_signed("localhost")),
        ("another authority", Authority::new().leaf("localhost")),
    ];
    for (what, leaf) in rows {
        let upstream = TlsUpstream::start(&leaf, &[b"h2", b"http/1.1"]);
        let gate = gate(&upstream, "localhost", &authority, "");
        let response = ask(&gate);
        assert_eq!(
            (response.status, response.code().as_str()),
            (502, "upstream_tls_error"),
            "{what}"
        );
        let message = response.text().to_lowercase();
        for word in ["certificate", "expired", "localhost", "other.test"] {
            assert!(!message.contains(word), "{what}: {message}");
        }
        assert!(upstream.connections() >= 1, "{what}: nobody called");
        assert_eq!(upstream.requests(), 0, "{what}");
        eventually("the log says why", || {
            let log = gate.log();
            let line = log.lines().find(|line| line.contains("an endpoint fails"));
            line.is_some_and(|line| line.contains("upstream_tls_error: "))
        });
        let record = &gate.records(1)[0];
        assert_eq!(
            (&record["outcome"], &record["code"]),
            (&"failed".into(), &"upstream_tls_error".into()),
            "{what}"
        );
    }
}

#[test]
fn an_upstream_without_tls_is_never_called_in_clear_text() {
    let upstream = crate::harness::Upstream::start(|_, _| vec![crate::harness::Step::Close]);
    let config = format!(
        "backends: {{ up: {{ url: \"https://127.0.0.1:{}/v1\", timeouts: {{ connect: 1s }}, credential: {{ inline: canary }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address.port()
    );
    let gate = Gate::start(&config, &[]);
    let response = ask(&gate);
    let code = response.code();
    assert!(
        matches!(
            (response.status, code.as_str()),
            (502, "upstream_tls_error") | (504, "upstream_connect_timeout")
        ),
        "{code}"
    );
    assert!(
        upstream
            .seen()
            .iter()
            .all(|seen| !seen.head.contains("canary"))
    );
}

#[test]
fn a_stalled_handshake_times_out_on_both_sides() {
    // Upstream: accepts and sends nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let port = silent.local_addr().expect("it is bound").port();
    let authority = Authority::new();
    let leaf = authority.leaf("gate.test");
    let config = format!(
        "backends: {{ up: {{ url: \"https://127.0.0.1:{port}/v1\", timeouts: {{ connect: 1s }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n"
    );
    let plain = Gate::start(&config, &[]);
    let began = Began::now();
    let response = ask(&plain);
    assert_eq!(
        (response.status, response.code().as_str()),
        (504, "upstream_connect_timeout")
    );
    began.took_at_least(Duration::from_millis(900));
    // Client: connects and sends nothing, or sends clear text.
    let files = [
        ("cert.pem", leaf.certificate.as_bytes()),
        ("key.pem", leaf.key.as_bytes()),
    ];
    let served = Gate::start_tls(&config_of(&silent), &files);
    let clear = served_in_clear(&served);
    assert!(!clear.starts_with(b"HTTP/"), "answered in clear");
    let began = Began::now();
    let mut mute = Connection::open(served.data);
    assert!(!mute.more());
    began.took_at_least(Duration::from_secs(5));
    assert!(is_closed(&mut mute));
}

fn config_of(listener: &std::net::TcpListener) -> String {
    config(listener.local_addr().expect("it is bound"), "")
}

fn served_in_clear(gate: &Gate) -> Vec<u8> {
    let mut connection = Connection::open(gate.data);
    connection.send(&call(&chat("m", false)));
    while connection.more() {}
    connection.unread().to_vec()
}
