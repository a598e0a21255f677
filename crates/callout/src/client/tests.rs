//! Servers on loopback and in memory that answer well, badly, late or not at all, and certificates of a root made here.

use std::io::{Read, Write};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
};
use rustls::crypto::ring::default_provider;
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::fixture::{Does, Server, Then, body_then, client, json, response, status, still, tls};
use crate::tls::Tls;

const BODY_MAX: usize = 1000;

async fn get(client: &Client, url: &Url) -> Result<Reply, Fault> {
    client.send(&Call::new(Method::GET, url, BODY_MAX)).await
}

fn quick() -> Bounds {
    Bounds {
        connect: Duration::from_millis(300),
        head: Duration::from_millis(100),
        total: Duration::from_millis(200),
        ..Bounds::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_is_sent_as_it_is_and_its_connection_serves_the_next() {
    let server = Server::start(|_| json("{}")).await;
    let (client, url) = (client(), server.url("/a/b?c=d"));
    for _ in 0..3 {
        let mut call = Call::new(Method::POST, &url, BODY_MAX);
        call.headers.insert("x-one", HeaderValue::from_static("1"));
        call.body = Bytes::from_static(b"body");
        let reply = client.send(&call).await.expect("an answer");
        assert_eq!((reply.status.as_u16(), &reply.body[..]), (200, &b"{}"[..]));
    }
    assert_eq!(server.connections(), 1);
    let seen = server.seen();
    assert_eq!((&*seen[0].method, &*seen[0].target), ("POST", "/a/b?c=d"));
    assert_eq!((seen[0].header("x-one"), seen[0].text()), ("1", "body"));
    assert_eq!(seen[0].host, url.authority());
    assert_eq!(seen[0].header("content-length"), "4");
}

#[tokio::test(start_paused = true)]
async fn a_kept_connection_that_is_gone_is_replaced_once() {
    // The second request of a connection is answered by its end.
    let asked = std::sync::Mutex::new(std::collections::HashMap::new());
    let server = Server::start(move |seen| {
        let mut asked = asked.lock().expect("no panic");
        let of_this: &mut u32 = asked.entry(seen.connection).or_default();
        *of_this += 1;
        if *of_this == 1 {
            json("{}")
        } else {
            Does::Close
        }
    })
    .await;
    let (client, url) = (client(), server.url("/"));
    for _ in 0..2 {
        assert!(get(&client, &url).await.is_ok());
    }
    assert_eq!((server.asked(), server.connections()), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn as_many_connections_are_kept_as_requests_run_at_once() {
    let wait = Duration::from_millis(20);
    let answer = move || Does::After(wait, response(200, "application/json", "{}"));
    let (server, client) = Server::in_memory(Bounds::default(), move |_| answer());
    let url = server.url("/");
    for _ in 0..3 {
        let mut calls = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let (client, url) = (client.clone(), url.clone());
            calls.spawn(async move { get(&client, &url).await.is_ok() });
        }
        assert!(calls.join_all().await.into_iter().all(|is_ok| is_ok));
    }
    assert_eq!((server.asked(), server.connections()), (150, 50));
}

#[tokio::test(start_paused = true)]
async fn a_fresh_connection_that_ends_is_no_answer_and_nothing_is_sent_again() {
    let server = Server::start(|_| Does::Close).await;
    let found = get(&client(), &server.url("/")).await;
    assert!(matches!(found, Err(Fault::Broken(_))), "{found:?}");
    assert_eq!(server.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_down_cannot_be_reached() {
    let server = Server::start(|_| json("{}")).await;
    let url = server.url("/");
    drop(server);
    let _still = still();
    tokio::task::yield_now().await;
    let found = get(&client(), &url).await;
    let Err(fault @ Fault::Unreachable { .. }) = found else {
        panic!("{found:?}");
    };
    assert!(fault.to_string().contains(&url.authority()), "{fault}");
}

#[tokio::test(start_paused = true)]
async fn every_wait_has_its_end() {
    type Answering = fn() -> Does;
    let table: [(&str, Duration, Answering); 3] = [
        ("answer", quick().head, || Does::Hang),
        ("whole answer", quick().total, || {
            Does::Answer(body_then(200, "application/json", "{", Then::Hang))
        }),
        ("answer", quick().head, || {
            Does::After(Duration::from_millis(150), response(200, "x/y", ""))
        }),
    ];
    for (what, end, answering) in table {
        let (server, client) = Server::in_memory(quick(), move |_| answering());
        let began = Instant::now();
        let found = get(&client, &server.url("/")).await;
        let Err(Fault::Late { waited_for, within }) = found else {
            panic!("{what}: {found:?}");
        };
        assert_eq!((waited_for, within), (what, end));
        assert_eq!(began.elapsed(), end);
    }
}

#[tokio::test(start_paused = true)]
async fn a_handshake_that_stalls_ends_with_the_time_to_connect() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let url = Url::parse(&format!("https://{address}/")).expect("a URL");
    let bounds = Bounds {
        connect: Duration::from_millis(50),
        ..quick()
    };
    let found = get(&Client::new(&tls(), bounds), &url).await;
    let Err(Fault::Late { waited_for, .. }) = found else {
        panic!("{found:?}");
    };
    assert_eq!(waited_for, "connection");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_too_long_is_not_read() {
    let long = "x".repeat(BODY_MAX + 1);
    let server = Server::start(move |_| json(long.clone())).await;
    let found = get(&client(), &server.url("/")).await;
    assert_eq!(found.map(|_| ()), Err(Fault::Large(BODY_MAX)));
    let fits = "x".repeat(BODY_MAX);
    let server = Server::start(move |_| json(fits.clone())).await;
    assert!(get(&client(), &server.url("/")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_whole_is_none() {
    let breaks = |_: &_| Does::Answer(body_then(200, "application/json", "{}", Then::Break));
    let (server, client) = Server::in_memory(Bounds::default(), breaks);
    let found = get(&client, &server.url("/")).await;
    assert!(matches!(found, Err(Fault::Broken(_))), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_http_is_no_answer() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let thread = std::thread::spawn(move || {
        for answer in [
            "SSH-2.0-x\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort",
        ] {
            let (mut tcp, _) = listener.accept().expect("a connection");
            let read = tcp.read(&mut [0; 4096]).expect("a request");
            assert!(read > 0);
            tcp.write_all(answer.as_bytes()).expect("a client");
        }
    });
    let _still = still();
    let url = Url::parse(&format!("http://{address}/")).expect("a URL");
    for _ in 0..2 {
        let found = get(&client(), &url).await;
        assert!(matches!(found, Err(Fault::Broken(_))), "{found:?}");
    }
    thread.join().expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn a_redirect_is_not_followed() {
    let server = Server::start(|seen| {
        let mut found = response(307, "text/plain", "");
        let location = format!("http://{}/other", seen.host);
        let location = HeaderValue::from_str(&location).expect("a value");
        found.headers_mut().insert(header::LOCATION, location);
        Does::Answer(found)
    })
    .await;
    let reply = get(&client(), &server.url("/")).await.expect("an answer");
    assert_eq!(reply.status.as_u16(), 307);
    assert_eq!(server.asked(), 1);
    let fault = reply.good(&["text/plain"], "").expect_err("no good answer");
    assert_eq!(fault.to_string(), "it answered 307");
}

#[tokio::test(start_paused = true)]
async fn addresses_that_are_refused_are_not_connected_to() {
    let one = [
        "http://169.254.169.254/",
        "http://[fe80::1]/",
        "http://[::]/",
        "http://0.0.0.0/",
    ];
    for url in one {
        let found = get(&client(), &Url::parse(url).expect(url)).await;
        assert!(
            matches!(found, Err(Fault::Address { .. })),
            "{url}: {found:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_media_type_is_asked_for() {
    let table = [
        ("application/json", true),
        ("Application/JSON; charset=utf-8", true),
        ("text/html", false),
        ("application/jsonp", false),
        ("", false),
    ];
    for (kind, is_good) in table {
        let server = Server::start(move |_| Does::Answer(response(200, kind, "{}"))).await;
        let reply = get(&client(), &server.url("/")).await.expect("an answer");
        assert_eq!(
            reply.good(&["application/json"], "").is_ok(),
            is_good,
            "{kind}"
        );
    }
    let server = Server::start(|_| status(500)).await;
    let reply = get(&client(), &server.url("/")).await.expect("an answer");
    assert!(reply.good(&["application/json"], "").is_err());
}

#[tokio::test(start_paused = true)]
async fn a_compressed_answer_is_refused() {
    let server = Server::start(|_| {
        let mut found = response(200, "application/json", "{}");
        let coding = HeaderValue::from_static("gzip");
        found.headers_mut().insert(header::CONTENT_ENCODING, coding);
        Does::Answer(found)
    })
    .await;
    let found = get(&client(), &server.url("/")).await;
    assert!(matches!(found, Err(Fault::Garbage(_))), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn http2_carries_many_requests_on_one_connection() {
    let server = Server::http2(|_| json("{}")).await;
    let bounds = Bounds {
        protocol: Protocol::Http2,
        ..Bounds::default()
    };
    let (client, url) = (Client::new(&tls(), bounds), server.url("/a?b"));
    assert!(get(&client, &url).await.is_ok());
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..20 {
        let (client, url) = (client.clone(), url.clone());
        asking.spawn(async move { get(&client, &url).await.map(|reply| reply.status) });
    }
    assert!(
        asking
            .join_all()
            .await
            .into_iter()
            .all(|found| found.is_ok())
    );
    assert_eq!((server.asked(), server.connections()), (21, 1));
    let seen = &server.seen()[0];
    assert!(seen.is_http2);
    assert_eq!((&*seen.target, &*seen.host), ("/a?b", &*url.authority()));
}

#[tokio::test(start_paused = true)]
async fn as_many_requests_run_at_once_as_may() {
    let bounds = Bounds {
        requests: 2,
        ..Bounds::default()
    };
    let wait = Duration::from_millis(20);
    let answer = move || Does::After(wait, response(200, "application/json", "{}"));
    let (server, client) = Server::in_memory(bounds, move |_| answer());
    let url = server.url("/");
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..6 {
        let (client, url) = (client.clone(), url.clone());
        asking.spawn(async move { get(&client, &url).await.is_ok() });
    }
    assert!(asking.join_all().await.into_iter().all(|is_ok| is_ok));
    assert_eq!((server.asked(), server.connections()), (6, 2));
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_is_closed() {
    let bounds = Bounds {
        idle: Duration::from_millis(30),
        ..Bounds::default()
    };
    let (server, client) = Server::in_memory(bounds, |_| json("{}"));
    let url = server.url("/");
    assert!(get(&client, &url).await.is_ok());
    tokio::time::sleep(Duration::from_millis(40)).await;
    assert!(get(&client, &url).await.is_ok());
    assert_eq!(server.connections(), 2);
}

/// A certificate and its key.
struct Leaf {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

impl Leaf {
    fn chain(&self) -> Vec<CertificateDer<'static>> {
        vec![self.certificate.clone()]
    }

    fn key(&self) -> PrivateKeyDer<'static> {
        PrivateKeyDer::try_from(self.key.clone()).expect("a key")
    }
}

struct Ca(CertifiedIssuer<'static, KeyPair>);

impl Ca {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        Self(CertifiedIssuer::self_signed(params, key).expect("a root"))
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).expect("a root");
        roots
    }

    /// Trust in it alone, with a certificate to show or none.
    fn trust(&self, shown: Option<&Leaf>) -> Tls {
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(self.roots());
        let config = match shown {
            None => config.with_no_client_auth(),
            Some(leaf) => {
                let made = config.with_client_auth_cert(leaf.chain(), leaf.key());
                made.expect("a certificate with its key")
            }
        };
        Tls::of(Arc::new(config))
    }

    fn leaf(&self, name: &str, usage: ExtendedKeyUsagePurpose) -> Leaf {
        let mut params = CertificateParams::new([name.to_owned()]).expect("a name");
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.0).expect("a certificate");
        Leaf {
            certificate: certificate.der().clone(),
            key: key.serialize_der(),
        }
    }

    /// A server's end: its name, and whether clients must show a certificate of this root.
    fn acceptor(&self, name: &str, asks_clients: bool, spoken: &[&[u8]]) -> TlsAcceptor {
        let leaf = self.leaf(name, ExtendedKeyUsagePurpose::ServerAuth);
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions");
        let builder = if asks_clients {
            let provider = Arc::new(default_provider());
            let roots = Arc::new(self.roots());
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            builder.with_client_cert_verifier(verifier.expect("a verifier"))
        } else {
            builder.with_no_client_auth()
        };
        let config = builder.with_single_cert(leaf.chain(), leaf.key());
        let mut config = config.expect("a certificate with its key");
        config.alpn_protocols = spoken.iter().map(|name| name.to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_verified_and_nothing_is_downgraded() {
    let (ca, other) = (Ca::new(), Ca::new());
    // The name of the certificate, the root that is trusted, whether it is let through.
    let table = [
        ("127.0.0.1", &ca, true),
        ("127.0.0.1", &other, false),
        ("idp.test", &ca, false),
    ];
    for (name, trusted, is_good) in table {
        let acceptor = ca.acceptor(name, false, &[b"http/1.1"]);
        let server = Server::with(|_| json("{}"), Some(acceptor), false).await;
        let trust = trusted.trust(None);
        let found = get(&Client::new(&trust, Bounds::default()), &server.url("/")).await;
        assert_eq!(found.is_ok(), is_good, "{name}: {found:?}");
        assert_eq!(server.asked(), usize::from(is_good));
    }
    let clear = Server::start(|_| json("{}")).await;
    let url = clear.text("/").replace("http://", "https://");
    let found = get(&client(), &Url::parse(&url).expect("a URL")).await;
    assert!(matches!(found, Err(Fault::Unreachable { .. })), "{found:?}");
}

#[tokio::test(start_paused = true)]
async fn a_service_can_ask_who_the_gate_is_and_prefer_http2() {
    let ca = Ca::new();
    let acceptor = ca.acceptor("127.0.0.1", true, &[b"h2", b"http/1.1"]);
    let server = Server::with(|_| json("{}"), Some(acceptor), false).await;
    let identity = ca.leaf("gate.test", ExtendedKeyUsagePurpose::ClientAuth);
    let table = [(Some(&identity), true), (None, false)];
    for (identity, is_good) in table {
        let trust = ca.trust(identity);
        let found = get(&Client::new(&trust, Bounds::default()), &server.url("/")).await;
        assert_eq!(found.is_ok(), is_good, "{found:?}");
    }
    assert!(server.seen()[0].is_http2);
}
