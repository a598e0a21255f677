//! A thousand open streams during reloads, rotated secrets and new certificates.

use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};

use super::{reload, version};
use crate::harness::streams::{self, Streams};
use crate::harness::{Gate, chat, post};

const STREAMS: u64 = 1000;
const RELOADS: usize = 50;
const ROUNDS: usize = 5;

/// A self-signed certificate and its key, as PEM, and the certificate as it goes over the wire.
struct Certificate {
    pem: String,
    key: String,
    der: CertificateDer<'static>,
}

fn certificate() -> Certificate {
    let made = rcgen::generate_simple_self_signed(vec!["gate.test".into()]).expect("a certificate");
    let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    Certificate {
        pem,
        key,
        der: made.cert.der().clone(),
    }
}

fn trusting(certificates: &[Certificate]) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.der.clone()).expect("a root");
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

/// A call over TLS on a connection of its own: the certificate shown, and the response's status.
fn probe(gate: &Gate, trust: &Arc<ClientConfig>) -> (CertificateDer<'static>, String) {
    use std::io::{Read, Write};
    let name = ServerName::try_from("gate.test").expect("a name");
    let connection = rustls::ClientConnection::new(Arc::clone(trust), name).expect("a client");
    let tcp = std::net::TcpStream::connect(gate.data).expect("the gate listens");
    tcp.set_read_timeout(Some(testing::PATIENCE))
        .expect("a socket option");
    let mut tls = rustls::StreamOwned::new(connection, tcp);
    let headers = ["x-workload-app: w", "connection: close"];
    let request = post("/v1/chat/completions", &headers, &chat("m", false));
    tls.write_all(&request).expect("the gate reads");
    let mut response = Vec::new();
    tls.read_to_end(&mut response)
        .expect("the gate answers and closes properly");
    let shown = tls.conn.peer_certificates().expect("a certificate")[0]
        .clone()
        .into_owned();
    let response = String::from_utf8(response).expect("text");
    (
        shown,
        response.lines().next().unwrap_or_default().to_owned(),
    )
}

fn config(upstream: std::net::SocketAddr, turn: usize) -> String {
    format!(
        "backends:\n  up: {{ url: http://{upstream}/v1, credential: {{ file: key }}, timeouts: {{ idle: {}s }} }}\n  \
         other-{turn}: {{ url: http://127.0.0.1:9/v1 }}\n\
         routes:\n  - {{ name: r, workload: w, backend: up, limits: [ {{ requests: {}, per: 1m }} ] }}\n  \
         - {{ workload: passing-{turn}, backend: other-{turn} }}\n",
        60 + turn,
        100_000 + turn,
    )
}

#[test]
fn reloads_and_rotated_secrets_and_certificates_cut_none_of_a_thousand_streams() {
    rlimit::increase_nofile_limit(u64::MAX).expect("room for descriptors");
    let upstream = Streams::start(Duration::from_millis(500));
    let certificates: Vec<_> = (0..=ROUNDS).map(|_| certificate()).collect();
    let trust = trusting(&certificates);
    let files = [
        ("cert.pem", certificates[0].pem.as_bytes()),
        ("key.pem", certificates[0].key.as_bytes()),
        ("key", b"secret-0\n"),
    ];
    let gate = Gate::start_tls(&config(upstream.address, 0), &files);
    let began_with = version(&gate);
    let clients = streams::open(gate.data, Some(Arc::clone(&trust)), 0..STREAMS);
    testing::eventually("all streams are open", || {
        gate.metric("tollgate_open_streams", &[]) as u64 == STREAMS
    });
    let began = testing::Began::now();
    let mut probes = 0;
    for (round, next) in certificates.iter().enumerate().skip(1) {
        for turn in 0..RELOADS / ROUNDS {
            reload(&gate, &config(upstream.address, round * 1000 + turn));
        }

        let secret = format!("Bearer secret-{round}");
        gate.replace("key", format!("secret-{round}\n").as_bytes());
        testing::eventually("the rotated secret is in use", || {
            probes += 1;
            assert_eq!(probe(&gate, &trust).1.split(' ').nth(1), Some("200"));
            upstream.credentials().last() == Some(&secret)
        });

        gate.replace("key.pem", next.key.as_bytes());
        gate.replace("cert.pem", next.pem.as_bytes());
        testing::eventually("the new certificate is shown", || {
            probes += 1;
            probe(&gate, &trust).0 == next.der
        });
    }
    let changed_for = began.shown();
    let resident = gate.metric("process_resident_memory_bytes", &[]) / 1024.0 / 1024.0;
    assert_eq!(
        gate.metric("tollgate_open_streams", &[]) as u64,
        STREAMS,
        "none ended meanwhile"
    );
    let taken = gate.metric("tollgate_config_reloads_total", &["result=\"taken\""]) as usize;
    assert!(taken >= RELOADS + 2 * ROUNDS, "{taken} reloads were taken");
    upstream.finish();
    let received = clients.join().expect("the clients run to their end");

    assert_eq!(received.len() as u64, STREAMS);
    for stream in &received {
        stream.assert_identical(&upstream.sent(stream.n));
    }
    let records = gate.records(STREAMS as usize + probes);
    assert_eq!(
        records.len(),
        STREAMS as usize + probes,
        "one record for each exchange"
    );
    let streamed: Vec<_> = records.iter().filter(|r| r["streamed"] == true).collect();
    assert_eq!(streamed.len() as u64, STREAMS);
    for record in streamed {
        assert_eq!(record["outcome"], "completed", "{record}");
        assert_eq!(record["config"], *began_with, "{record}");
        assert_eq!(record["completion_source"], "reported", "{record}");
    }
    testing::eventually("the gauges return to 0", || {
        gate.metric("tollgate_open_streams", &[]) == 0.0
            && gate.metric("tollgate_open_exchanges", &[]) == 0.0
            && gate.metric("tollgate_open_connections", &[]) == 0.0
    });
    println!("{taken} reloads in {changed_for}, {probes} probes, {resident:.1} MiB resident");
}
