//! Clients' certificates: who is let in, and that sessions keep what was proven and no longer than its roots.
//!
//! Not here: names (`peer_certificate`), real connections (end-to-end tests).

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, date_time_ymd,
};
use rustls::crypto::ring::default_provider;
use rustls::version::{TLS12, TLS13};
use rustls::{
    ClientConfig, ClientConnection, HandshakeKind, RootCertStore, ServerConfig, ServerConnection,
    SupportedProtocolVersion,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};

use super::{Clients, TlsFault, client as trust, server};
use crate::peer_certificate;

const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];
const NOW: u64 = 1_780_000_000;

struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// What is brought, whether it is optional, and the names that are read or a part of the error.
type Row<'r> = (
    &'r str,
    Option<&'r Leaf>,
    bool,
    Result<&'r [&'r str], &'r str>,
);

struct Leaf {
    pem: String,
    key: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let issuer = Issuer::new(params, key);
        Self { pem, issuer }
    }

    fn leaf(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> Leaf {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![name.to_owned()]).expect("a name");
        change(&mut params);
        let made = params.signed_by(&key, &self.issuer).expect("a certificate");
        Leaf {
            pem: made.pem(),
            key: key.serialize_pem(),
        }
    }
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM")
}

/// A client that trusts `authority` and keeps its sessions from one connection to the next.
fn client(
    authority: &Authority,
    leaf: Option<&Leaf>,
    version: &'static SupportedProtocolVersion,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(der(&authority.pem)).expect("a root");
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[version])
        .expect("a version")
        .with_root_certificates(roots);
    let config = match leaf {
        Some(leaf) => {
            let key = PrivateKeyDer::from_pem_slice(leaf.key.as_bytes()).expect("PEM");
            let made = builder.with_client_auth_cert(vec![der(&leaf.pem)], key);
            made.expect("a certificate with its key")
        }
        None => builder.with_no_client_auth(),
    };
    Arc::new(config)
}

/// A listener of `gate.test` that trusts clients of `roots`.
fn listener(authority: &Authority, roots: &Authority, is_optional: bool) -> Arc<ServerConfig> {
    let leaf = authority.leaf("gate.test", |_| {});
    let clients = Clients::trusting(roots.pem.as_bytes(), is_optional).expect("roots");
    server(leaf.pem.as_bytes(), leaf.key.as_bytes(), Some(clients)).expect("a listener")
}

/// The server's side of a handshake, run to its end; its error where it refuses.
fn shaken(
    server: &Arc<ServerConfig>,
    client: &Arc<ClientConfig>,
) -> Result<ServerConnection, String> {
    let name = ServerName::try_from("gate.test").expect("a name");
    let mut client = ClientConnection::new(Arc::clone(client), name).expect("a client");
    let mut server = ServerConnection::new(Arc::clone(server)).expect("a server");
    for _ in 0..8 {
        let mut sent = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut sent).expect("memory");
        }
        let mut sent = &sent[..];
        while !sent.is_empty() {
            server.read_tls(&mut sent).expect("memory");
            server
                .process_new_packets()
                .map_err(|error| error.to_string())?;
        }
        let mut answered = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut answered).expect("memory");
        }
        let mut answered = &answered[..];
        while !answered.is_empty() {
            client.read_tls(&mut answered).expect("memory");
            client
                .process_new_packets()
                .map_err(|error| error.to_string())?;
        }
    }
    assert!(!server.is_handshaking() && !client.is_handshaking());
    Ok(server)
}

/// The names that a session's client has proven.
fn names(session: &ServerConnection) -> Vec<String> {
    let proven = peer_certificate::proven(session, NOW).expect("good");
    proven.map_or_else(Vec::new, |said| {
        said.names.iter().map(|n| n.to_string()).collect()
    })
}

#[test]
fn a_certificate_is_verified_and_read() {
    let (gate, mesh) = (Authority::new("gate"), Authority::new("mesh"));
    let other = Authority::new("other");
    let good = mesh.leaf("web.chat", |_| {});
    let expired = mesh.leaf("web.chat", |params| {
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    let early = mesh.leaf("web.chat", |params| {
        params.not_before = date_time_ymd(3021, 1, 1);
    });
    let for_servers = mesh.leaf("web.chat", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let for_clients = mesh.leaf("web.chat", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    let an_authority = mesh.leaf("web.chat", |params| {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    });
    let foreign = other.leaf("web.chat", |_| {});
    let posing = Authority::new("mesh").leaf("web.chat", |_| {});
    let rows: &[Row<'_>] = &[
        ("good", Some(&good), false, Ok(&["web.chat"])),
        ("good, optional", Some(&good), true, Ok(&["web.chat"])),
        ("for clients", Some(&for_clients), false, Ok(&["web.chat"])),
        ("none", None, false, Err("peer sent no certificates")),
        ("none, optional", None, true, Ok(&[])),
        ("foreign", Some(&foreign), false, Err("UnknownIssuer")),
        (
            "foreign, optional",
            Some(&foreign),
            true,
            Err("UnknownIssuer"),
        ),
        ("posing", Some(&posing), true, Err("BadSignature")),
        ("expired", Some(&expired), false, Err("expired")),
        ("expired, optional", Some(&expired), true, Err("expired")),
        ("not yet good", Some(&early), false, Err("not valid yet")),
        ("for servers", Some(&for_servers), false, Err("client auth")),
        (
            "an authority",
            Some(&an_authority),
            false,
            Err("CaUsedAsEndEntity"),
        ),
    ];
    for version in VERSIONS {
        for (what, leaf, is_optional, expected) in rows {
            let listener = listener(&gate, &mesh, *is_optional);
            let got = shaken(&listener, &client(&gate, *leaf, version));
            match (got, expected) {
                (Ok(session), Ok(expected)) => assert_eq!(names(&session), *expected, "{what}"),
                (Err(says), Err(part)) => assert!(says.contains(part), "{what}: {says}"),
                (got, _) => panic!("{what}, {version:?}: {:?}", got.map(|_| "let in")),
            }
        }
    }
}

#[test]
fn a_resumed_session_keeps_the_certificate_and_never_its_roots() {
    let (gate, mesh) = (Authority::new("gate"), Authority::new("mesh"));
    let other = Authority::new("other");
    for version in VERSIONS {
        let leaf = mesh.leaf("web.chat", |_| {});
        let listener_of = |roots| listener(&gate, roots, false);
        let client = client(&gate, Some(&leaf), version);
        let before = listener_of(&mesh);
        for kind in [HandshakeKind::Full, HandshakeKind::Resumed] {
            let session = shaken(&before, &client).expect("let in");
            assert_eq!(session.handshake_kind(), Some(kind), "{version:?}");
            assert_eq!(names(&session), ["web.chat"], "{version:?} {kind:?}");
        }
        // A reload makes a listener of its own.
        let again = shaken(&listener_of(&mesh), &client).expect("let in");
        assert_eq!(
            again.handshake_kind(),
            Some(HandshakeKind::Full),
            "{version:?}"
        );
        for is_optional in [false, true] {
            let says = shaken(&listener(&gate, &other, is_optional), &client);
            let says = says.expect_err("its roots are gone");
            assert!(says.contains("UnknownIssuer"), "{version:?}: {says}");
        }
    }
}

#[test]
fn a_certificate_that_ends_while_its_session_is_kept_is_no_good_when_it_is_resumed() {
    let (gate, mesh) = (Authority::new("gate"), Authority::new("mesh"));
    for version in VERSIONS {
        let leaf = mesh.leaf("web.chat", |params| {
            params.not_after = date_time_ymd(2100, 1, 1);
        });
        let (listener, client) = (
            listener(&gate, &mesh, false),
            client(&gate, Some(&leaf), version),
        );
        drop(shaken(&listener, &client).expect("let in"));
        let session = shaken(&listener, &client).expect("resumed");
        assert_eq!(session.handshake_kind(), Some(HandshakeKind::Resumed));
        let end = 4_102_444_800;
        assert!(peer_certificate::proven(&session, end - 1).is_ok());
        let says = peer_certificate::proven(&session, end).expect_err("it has ended");
        assert!(says.contains("expired"), "{says}");
    }
}

#[test]
fn bundles_without_a_root_are_refused() {
    for bundle in [
        "",
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    ] {
        assert!(
            Clients::trusting(bundle.as_bytes(), false).is_err(),
            "{bundle}"
        );
    }
    let says = Clients::trusting(b"roots", true).expect_err("no PEM");
    assert!(matches!(says, TlsFault::Pem("certificate")), "{says}");
}

#[test]
fn what_the_gate_would_show_and_is_of_no_use_is_told_without_its_key() {
    let authority = Authority::new("root");
    let [one, other] = ["one.test", "other.test"].map(|name| authority.leaf(name, |_| {}));
    let bundle = Some(authority.pem.as_bytes());
    let shown = |key: &str| trust(bundle, Some((one.pem.as_bytes(), key.as_bytes())), &[]);
    assert!(shown(&one.key).is_ok());
    for key in [&*other.key, "-----BEGIN"] {
        assert!(shown(key).is_err_and(|fault| !fault.to_string().contains("BEGIN")));
    }
    assert!(matches!(
        trust(Some(b"no PEM"), None, &[]),
        Err(TlsFault::Pem("certificate"))
    ));
}

/// How a client that wants one of these names is served by an upstream with this certificate, in both versions of TLS.
fn checked(authority: &Authority, leaf: &Leaf, names: &[&str]) -> Result<(), String> {
    let server = server(leaf.pem.as_bytes(), leaf.key.as_bytes(), None).expect("a listener");
    let names: Vec<Box<str>> = names.iter().map(|name| (*name).into()).collect();
    let client = trust(Some(authority.pem.as_bytes()), None, &names).expect("roots");
    shaken(&server, &client).map(drop)
}

#[test]
fn an_upstream_that_is_known_by_other_names_has_one_of_them_and_is_vouched_for() {
    let (authority, other) = (Authority::new("own"), Authority::new("other"));
    let uri = |params: &mut CertificateParams| {
        let uri = "spiffe://cluster.local/ns/a/sa/b"
            .try_into()
            .expect("a URI");
        params.subject_alt_names.push(rcgen::SanType::URI(uri));
    };
    let leaf = authority.leaf("*.pods.test", uri);
    let (own, spiffe) = ("one.pods.test", "spiffe://cluster.local/ns/a/sa/b");
    for names in [
        &[own][..],
        &[spiffe],
        &["gate.test", spiffe],
        &["spiffe://x", own],
    ] {
        assert_eq!(checked(&authority, &leaf, names), Ok(()), "{names:?}");
    }
    // The name that is asked for is not enough, and neither is a part of one.
    let of_host = authority.leaf("gate.test", uri);
    assert_eq!(checked(&authority, &of_host, &["gate.test"]), Ok(()));
    for names in [
        &["other.test"][..],
        &["spiffe://cluster.local/ns/a/sa"],
        &["pods.test"],
    ] {
        let refused = checked(&authority, &of_host, names).expect_err("it is somebody else");
        assert!(
            refused.contains("BadCertificate") || refused.contains("name"),
            "{refused}"
        );
    }
    // Whoever has the name and is not vouched for.
    let false_one = other.leaf("gate.test", uri);
    for names in [&["gate.test"][..], &[spiffe]] {
        let refused = checked(&authority, &false_one, names).expect_err("nobody vouches for it");
        assert!(!refused.contains("name"), "{refused}");
    }
}
