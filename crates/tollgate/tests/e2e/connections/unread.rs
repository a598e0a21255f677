//! Clients that send and do not read: a write of the gate's own answer times out after `write_stall`.
//!
//! Not here: unread answers of an upstream (`connections`).

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use socket2::{Domain, Socket, Type};
use testing::{PATIENCE, eventually};

use crate::fixture::{answer, config};
use crate::harness::tls::Authority;
use crate::harness::{Gate, Step, Upstream};

const BOUNDS: &str = "bounds: { write_stall: 2s, keep_alive: 1h }\n";
/// Far more than fits into the buffers of both sockets, with the answers to it.
const BYTES: usize = 64 << 20;

/// A connection with a small receive buffer.
fn narrow(address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None).expect("a socket");
    socket
        .set_recv_buffer_size(4 << 10)
        .expect("a socket option");
    socket.connect(&address.into()).expect("something listens");
    let tcp = TcpStream::from(socket);
    tcp.set_write_timeout(Some(PATIENCE))
        .expect("a socket option");
    tcp
}

/// Sends requests without an identity until the gate ends the connection; reads nothing.
fn pipeline(mut to: impl Write) {
    let one = b"GET /v1/models HTTP/1.1\r\nhost: gate.test\r\nx-workload-app: nobody\r\n\r\n";
    let some = one.repeat(100);
    let is_cut = (0..BYTES / some.len()).any(|_| to.write_all(&some).is_err());
    assert!(is_cut, "the gate took all of it");
}

fn is_let_go(gate: &Gate) {
    let open = || gate.metric("tollgate_open_connections", &[]);
    assert_eq!(gate.records(1)[0]["code"], "workload_not_registered");
    eventually("the connection is gone", || open() < 0.5);
    let bound = ["bound=\"write_stall\""];
    let closed = gate.metric("tollgate_connections_closed_total", &bound);
    assert!((closed - 1.0).abs() < 0.1, "{closed} closed");
}

#[test]
fn c1_unread_refusals_close_their_connection() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer())]);
    let gate = Gate::start(&config(upstream.address, BOUNDS), &[]);
    let tcp = narrow(gate.data);
    pipeline(&tcp);
    is_let_go(&gate);
    drop(tcp);
}

#[test]
fn c1_unread_refusals_close_their_connection_under_tls() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer())]);
    let authority = Authority::new();
    let leaf = authority.leaf("gate.test");
    let files = [
        ("cert.pem", leaf.certificate.as_bytes()),
        ("key.pem", leaf.key.as_bytes()),
    ];
    let gate = Gate::start_tls(&config(upstream.address, BOUNDS), &files);
    let mut tls = handshake(narrow(gate.data), client_config(&authority));
    pipeline(&mut tls);
    is_let_go(&gate);
    drop(tls);
}

/// A client's side of TLS with the gate, by blocking calls.
pub(super) fn handshake(
    tcp: TcpStream,
    config: Arc<rustls::ClientConfig>,
) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
    let name = ServerName::try_from("gate.test").expect("a name");
    let client = rustls::ClientConnection::new(config, name).expect("a client");
    let mut tls = rustls::StreamOwned::new(client, tcp);
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock).expect("a handshake");
    }
    tls
}

/// A client that trusts this authority and speaks HTTP/1.1.
pub(super) fn client_config(authority: &Authority) -> Arc<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.certificate.as_bytes());
    roots.add(root.expect("PEM")).expect("a root");
    let provider = rustls::crypto::ring::default_provider();
    let config = rustls::ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}
