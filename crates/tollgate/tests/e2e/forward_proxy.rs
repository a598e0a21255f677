//! Upstreams behind an HTTP proxy that the configuration or the environment names.
//!
//! Invariant: the proxy's credential is sent to the proxy only, and with TLS the proxy cannot read what is sent to
//! the upstream.
//! Not here: how `NO_PROXY` is read (unit tests of `config`).

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::fixture::call;
use crate::harness::answer::{COMPLETION, json};
use crate::harness::tls::{Authority, TlsUpstream};
use crate::harness::{Gate, Step, Upstream, chat};

/// `user:pass` in a `proxy-authorization` header.
const PAIR: &str = "Basic dXNlcjpwYXNz";

/// A proxy that tunnels every CONNECT with the right password to one upstream, whatever host it names.
struct TunnelProxy {
    address: SocketAddr,
    heads: Arc<Mutex<Vec<String>>>,
}

impl TunnelProxy {
    fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let heads = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&heads);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let all = Arc::clone(&all);
                thread::spawn(move || tunnel(client, upstream, &all));
            }
        });
        Self { address, heads }
    }

    fn heads(&self) -> Vec<String> {
        let heads = self.heads.lock();
        heads.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn tunnel(mut client: TcpStream, upstream: SocketAddr, all: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if !matches!(client.read(&mut byte), Ok(1)) {
            return;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let may = head.contains(&format!("\r\nproxy-authorization: {PAIR}\r\n"));
    all.lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(head);
    if !may {
        let refusal = b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
        return drop(client.write_all(refusal));
    }
    let server = TcpStream::connect(upstream).expect("the upstream listens");
    // In two writes and with a header: the tunnel begins after the empty line.
    for part in [
        "HTTP/1.1 200 Connection estab",
        "lished\r\nvia: 1.1 p\r\n\r\n",
    ] {
        client.write_all(part.as_bytes()).expect("the gate listens");
    }
    let (mut from, mut to) = (
        client.try_clone().expect("a second handle"),
        server.try_clone().expect("a second handle"),
    );
    thread::spawn(move || drop(std::io::copy(&mut from, &mut to)));
    let (mut from, mut to) = (server, client);
    drop(std::io::copy(&mut from, &mut to));
}

#[test]
fn tls_uses_a_connect_tunnel_and_the_password_goes_to_the_proxy_only() {
    let authority = Authority::new();
    let leaf = authority.leaf("engine.test");
    let files: [(&str, &[u8]); 3] = [
        ("ca.pem", authority.certificate.as_bytes()),
        ("right", b"user:pass\n"),
        ("wrong", b"user:canary-wrong"),
    ];
    for protocols in [&[&b"http/1.1"[..]], &[&b"h2"[..]]] {
        let upstream = TlsUpstream::start(&leaf, protocols);
        let proxy = TunnelProxy::start(upstream.address);
        let config = |secret: &str| {
            format!(
                "workers: 1\nbackends: {{ up: {{ url: https://engine.test:8443/v1, ca: ca.pem, credential: {{ inline: gate-key }}, \
                 proxy: {{ url: \"http://{}\", credential: {{ file: {secret} }} }} }} }}\n\
                 routes: [ {{ workload: w, backend: up }} ]\n",
                proxy.address
            )
        };
        let gate = Gate::start(&config("right"), &files);
        for _ in 0..2 {
            let response = gate.call(&call(&chat("m", false)));
            assert_eq!(response.status, 200, "{}", response.text());
        }
        let [head] = &proxy.heads()[..] else {
            panic!("one tunnel serves both calls: {:?}", proxy.heads())
        };
        assert!(
            head.starts_with("CONNECT engine.test:8443 HTTP/1.1\r\nhost: engine.test:8443\r\n"),
            "{head}"
        );
        assert!(!head.contains("gate-key"), "{head}");
        assert_eq!(upstream.requests(), 2);

        gate.reconfigure(&config("wrong"));
        testing::eventually("the proxy refuses", || {
            gate.call(&call(&chat("m", false))).status == 502
        });
        let refused = gate.call(&call(&chat("m", false)));
        assert_eq!(refused.code(), "upstream_proxy_error");
        for shown in [gate.log(), gate.admin("/config").text(), refused.text()] {
            assert!(!shown.contains("canary-wrong") && !shown.contains("user:pass"));
            assert!(!shown.contains("Basic "), "{shown}");
        }
    }
}

#[test]
fn plain_http_is_sent_to_the_proxy_in_absolute_form() {
    let proxy = Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))]);
    let config = "backends: { up: { url: http://engine.test/base, credential: { inline: gate-key } } }\n\
         routes: [ { workload: w, backend: up } ]\n";
    let url = format!("http://user:pass@{}", proxy.address);
    let gate = Gate::start_env(config, &[], &[("HTTP_PROXY", &url), ("http_proxy", "")]);
    let response = gate.call(&call(&chat("m", false)));
    assert_eq!(response.status, 200, "{}", response.text());
    let [seen] = &proxy.seen()[..] else {
        panic!("one request")
    };
    assert!(
        seen.head
            .starts_with("POST http://engine.test/base/chat/completions HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    assert_eq!(seen.header("host"), ["engine.test"]);
    assert_eq!(seen.header("proxy-authorization"), [PAIR]);
    assert_eq!(seen.header("authorization"), ["Bearer gate-key"]);
    assert!(!gate.log().contains("user:pass") && !gate.log().contains("dXNlcjpwYXNz"));
}

#[test]
fn hosts_in_no_proxy_and_loopback_bypass_the_proxy() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))]);
    let proxy = Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))]);
    let config = format!(
        "backends:\n  here: {{ url: http://{}/v1 }}\n  named: {{ url: http://engine.invalid/v1 }}\n\
         routes:\n  - {{ workload: w, match: {{ model: here }}, backend: here }}\n  \
         - {{ workload: w, backend: named }}\n",
        upstream.address
    );
    let url = format!("http://{}", proxy.address);
    let env = [
        ("HTTP_PROXY", url.as_str()),
        ("NO_PROXY", "x.test,.invalid"),
    ];
    let gate = Gate::start_env(&config, &[], &env);
    assert_eq!(gate.call(&call(&chat("here", false))).status, 200);
    assert_eq!(upstream.seen().len(), 1);
    let named = gate.call(&call(&chat("m", false)));
    assert_eq!(
        (named.status, named.code().as_str()),
        (502, "upstream_unresolved"),
        "looked up by the gate itself"
    );
    assert_eq!(proxy.seen().len(), 0);
}
