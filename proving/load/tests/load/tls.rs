//! Whose certificates are good.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use load::client::{Failure, Target, Trust};
use load::run::{Plan, start};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::server::{self, Server};
use super::{closed, plan, seen};

/// A configuration for localhost, and a file with its certificate.
pub(crate) fn of_localhost(name: &str, protocol: &[u8]) -> (Arc<ServerConfig>, PathBuf) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(names).expect("a certificate");
    let file = std::env::temp_dir().join(format!("load-{}-{name}.pem", std::process::id()));
    std::fs::write(&file, cert.pem()).expect("a file");
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key);
    let mut config = config.expect("a configuration");
    config.alpn_protocols = vec![protocol.to_vec()];
    (Arc::new(config), file)
}

fn over_tls(server: &Server, trust: Trust) -> Plan {
    let url = format!("https://127.0.0.1:{}/base", server.address.port());
    let mut plan = plan(server, closed(2));
    plan.reach.targets = vec![Target::parse(&url).expect("a target")];
    plan.reach.trust = trust;
    (plan.most, plan.warm_up) = (Some(10), Duration::ZERO);
    plan.measure = super::ENOUGH;
    plan
}

#[test]
fn a_certificate_of_a_trusted_authority_is_good_and_no_other_unless_asked_for_loudly() {
    let (config, file) = of_localhost("good", b"http/1.1");
    let server = Server::over(Some(config), |_| vec![server::whole(b"hello")]);
    let trusted = seen(over_tls(&server, Trust::File(file.clone())));
    assert_eq!((trusted.answered, trusted.failed()), (10, 0));
    assert_eq!(server.connections(), 2, "connections are kept");
    let anyone = seen(over_tls(&server, Trust::DangerouslyAnyone));
    assert_eq!((anyone.answered, anyone.failed()), (10, 0));
    let (_, other) = of_localhost("other", b"http/1.1");
    let distrusted = seen(over_tls(&server, Trust::File(other.clone())));
    assert_eq!(distrusted.answered, 0);
    assert_eq!(
        distrusted.failures.keys().collect::<Vec<_>>(),
        [&Failure::Tls]
    );
    for file in [file, other] {
        std::fs::remove_file(file).expect("a file");
    }
}

#[test]
fn a_file_without_certificates_ends_the_run_before_it_begins() {
    let server = Server::new(|_| Vec::new());
    let says = |path: PathBuf| {
        let refused = start(over_tls(&server, Trust::File(path)));
        refused.err().expect("a refusal").to_string()
    };
    assert!(says("/nowhere/ca.pem".into()).contains("/nowhere/ca.pem"));
    let empty = std::env::temp_dir().join(format!("load-{}-empty.pem", std::process::id()));
    std::fs::write(&empty, "nothing").expect("a file");
    assert!(says(empty.clone()).contains("no certificate"));
    std::fs::remove_file(empty).expect("a file");
}
