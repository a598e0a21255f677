//! Certificates of clients: who they make a caller, who is not let in, and what a reload changes.
//!
//! Not here: every form of a certificate's names, sessions whose certificate ends (unit tests of `proxy`).

use rcgen::{ExtendedKeyUsagePurpose, date_time_ymd};
use testing::eventually;

use crate::fixture::answer;
use crate::harness::tls::{Authority, Leaf};
use crate::harness::tls_client::{H1, H2, TlsClient};
use crate::harness::{Gate, Response, Step, Upstream};

const SPIFFE: &str = "spiffe://cluster.local/ns/chat/sa/web";
const BY_CERTIFICATE: &str = "identity: { certificates: { \"spiffe://cluster.local/ns/chat/sa/web\": chat, \
     Ci.Internal: ci, \"spiffe://cluster.local/ns/batch/*\": ci } }\n";

/// A gate with client certificates, what signs its own and its clients', and the upstream behind it.
struct Scene {
    gate: Gate,
    public: Authority,
    mesh: Authority,
    upstream: Upstream,
}

impl Scene {
    /// `listen` says more of `listen.tls`, `extra` more of the document.
    fn new(listen: &str, extra: &str) -> Self {
        let (public, mesh) = (Authority::named("public"), Authority::named("mesh"));
        let upstream = Upstream::start(|_, _| vec![Step::Send(answer())]);
        let leaf = public.leaf("gate.test");
        let files = [
            ("cert.pem", leaf.certificate.as_bytes()),
            ("key.pem", leaf.key.as_bytes()),
            ("clients.pem", mesh.certificate.as_bytes()),
        ];
        let listen = format!(
            ", hosts: \"*\", tls: {{ certificate: cert.pem, key: key.pem, client_ca: clients.pem{listen} }}"
        );
        let config = format!(
            "workers: 1\nbackends: {{ up: {{ url: http://{}/v1 }} }}\n\
             routes: [ {{ workload: chat, backend: up }}, {{ workload: ci, backend: up }} ]\n{extra}",
            upstream.address
        );
        Self {
            gate: Gate::start_listening(&listen, &config, &files),
            public,
            mesh,
            upstream,
        }
    }

    fn client(&self, leaf: Option<&Leaf>) -> TlsClient {
        TlsClient::new(&self.public, leaf)
    }

    /// A client with a certificate of these names.
    fn named(&self, names: &[&str]) -> TlsClient {
        self.client(Some(&self.mesh.client_leaf(names)))
    }

    fn call(&self, client: &TlsClient, version: &[u8], headers: &[(&str, &str)]) -> Response {
        client.call(self.gate.data, version, headers).0
    }

    /// The newest of so many records.
    fn record(&self, n: usize) -> serde_json::Value {
        self.gate.records(n).pop().expect("a record")
    }

    /// How often a line of the log has this text.
    fn lines(&self, text: &str) -> usize {
        let log = self.gate.log();
        log.lines().filter(|line| line.contains(text)).count()
    }
}

/// What is brought, how it is made, and what the client and the log are told.
type Refused<'r> = (
    &'r str,
    &'r dyn Fn(&Scene) -> Option<Leaf>,
    &'r str,
    &'r str,
);

/// The status, and the code of an error.
fn seen(response: &Response) -> (u16, String) {
    let code = match response.status {
        200 => String::new(),
        _ => response.code(),
    };
    (response.status, code)
}

#[test]
fn a_name_of_the_certificate_says_the_workload_over_both_versions_of_http() {
    let scene = Scene::new("", BY_CERTIFICATE);
    let rows: &[(&[&str], &str)] = &[
        (&[SPIFFE], "chat"),
        (&["other.internal", SPIFFE], "chat"),
        (&["ci.internal"], "ci"),
        (&["CI.Internal"], "ci"),
        (&["spiffe://cluster.local/ns/batch/sa/nightly"], "ci"),
        // The first name that is known whole decides.
        (&[SPIFFE, "ci.internal"], "chat"),
        (&["ci.internal", SPIFFE], "ci"),
    ];
    let mut calls = 0;
    for (names, workload) in rows {
        let client = scene.named(names);
        for version in [H1, H2] {
            let response = scene.call(&client, version, &[]);
            calls += 1;
            assert_eq!(response.status, 200, "{names:?}: {}", response.text());
            assert_eq!(scene.record(calls)["workload"], *workload, "{names:?}");
        }
    }
    assert_eq!(scene.upstream.seen().len(), calls);
}

#[test]
fn a_certificate_that_names_nobody_is_no_credential() {
    let scene = Scene::new("", BY_CERTIFICATE);
    let rows: &[&[&str]] = &[
        &[],
        &["other.internal"],
        &["spiffe://cluster.local/ns/batch"],
        &["spiffe://cluster.local/ns/chat/sa/web2"],
        &["x.ci.internal"],
        // Two SPIFFE IDs: which of them counts would be a choice.
        &[SPIFFE, "spiffe://cluster.local/ns/batch/sa/nightly"],
        // A DNS name that is none beside a good one.
        &["ci.internal", "ci internal"],
    ];
    for names in rows {
        let client = scene.named(names);
        for version in [H1, H2] {
            let response = scene.call(&client, version, &[]);
            let expected = (401, "credential_missing".to_owned());
            assert_eq!(seen(&response), expected, "{names:?}");
            let said = scene.call(&client, version, &[("x-workload-app", "ci")]);
            assert_eq!(seen(&said), expected, "{names:?} that says who it is");
        }
    }
    assert_eq!(scene.upstream.seen().len(), 0);
}

#[test]
fn a_header_cannot_contradict_the_certificate() {
    let scene = Scene::new("", BY_CERTIFICATE);
    let client = scene.named(&[SPIFFE]);
    for version in [H1, H2] {
        for (said, expected) in [
            ("chat", (200, "")),
            ("ci", (403, "identity_contradicted")),
            ("nobody", (403, "identity_contradicted")),
        ] {
            let response = scene.call(&client, version, &[("x-workload-app", said)]);
            let expected = (expected.0, expected.1.to_owned());
            assert_eq!(seen(&response), expected, "{said}");
        }
    }
    assert_eq!(scene.upstream.seen().len(), 2);
}

#[test]
fn an_optional_certificate_counts_where_it_is_brought_and_must_be_good() {
    let identity = "identity: [ { certificates: { ci.internal: ci } }, { from: 127.0.0.1 } ]\n";
    let scene = Scene::new(", client_certificates: optional", identity);
    let with = scene.named(&["ci.internal"]);
    let without = scene.client(None);
    let chat = [("x-workload-app", "chat")];
    for version in [H1, H2] {
        assert_eq!(scene.call(&with, version, &[]).status, 200);
        let contradicts = scene.call(&with, version, &chat);
        assert_eq!(contradicts.code(), "identity_contradicted");
        assert_eq!(scene.call(&without, version, &chat).status, 200);
        let nobody = scene.call(&without, version, &[]);
        assert_eq!(seen(&nobody), (401, "credential_missing".to_owned()));
    }
    let workloads = scene.gate.records(8).into_iter();
    let workloads = workloads.filter(|record| record["status"] == 200);
    let workloads: Vec<_> = workloads.map(|record| record["workload"].clone()).collect();
    assert_eq!(workloads, ["ci", "chat", "ci", "chat"]);
    let foreign = Authority::named("other").client_leaf(&["ci.internal"]);
    let refused = scene.client(Some(&foreign)).refused(scene.gate.data);
    assert!(refused.contains("UnknownCA"), "{refused}");
}

#[test]
fn a_header_is_believed_of_a_proxy_by_its_certificate_and_of_no_other() {
    let identity = "identity: { from_certificates: \"spiffe://cluster.local/ns/edge/sa/proxy\" }\n";
    let scene = Scene::new("", identity);
    let proxy = scene.named(&["spiffe://cluster.local/ns/edge/sa/proxy"]);
    let other = scene.named(&["spiffe://cluster.local/ns/edge/sa/other"]);
    let chat = [("x-workload-app", "chat")];
    for version in [H1, H2] {
        assert_eq!(scene.call(&proxy, version, &chat).status, 200);
        let unregistered = scene.call(&proxy, version, &[("x-workload-app", "guest")]);
        assert_eq!(unregistered.code(), "workload_not_registered");
        let response = scene.call(&other, version, &chat);
        assert_eq!(response.status, 404, "{}", response.text());
    }
    assert_eq!(scene.upstream.seen().len(), 2);
}

#[test]
fn with_a_proxy_protocol_header_the_certificate_is_still_that_of_the_tls_connection() {
    let client_address =
        "client_address: { trusted_proxies: 127.0.0.1, proxy_protocol: required }\n";
    let scene = Scene::new("", &[BY_CERTIFICATE, client_address].concat());
    let mut client = scene.named(&[SPIFFE]);
    client.begins = b"PROXY TCP4 203.0.113.9 10.0.0.1 4660 443\r\n".to_vec();
    for (n, version) in [H1, H2].into_iter().enumerate() {
        assert_eq!(scene.call(&client, version, &[]).status, 200);
        let record = scene.record(n + 1);
        assert_eq!(record["workload"], "chat");
        assert_eq!(record["client_address"], "203.0.113.9");
    }
}

#[test]
fn a_client_without_a_good_certificate_gets_an_alert_and_the_log_says_why() {
    let foreign = Authority::named("other");
    let names = [SPIFFE];
    let rows: &[Refused<'_>] = &[
        (
            "none",
            &|_| None,
            "CertificateRequired",
            "peer sent no certificates",
        ),
        (
            "of another authority",
            &|_| Some(foreign.client_leaf(&names)),
            "UnknownCA",
            "UnknownIssuer",
        ),
        (
            "expired",
            &|scene| {
                Some(scene.mesh.changed_client_leaf(&names, |params| {
                    params.not_after = date_time_ymd(2021, 1, 1);
                }))
            },
            "CertificateExpired",
            "certificate expired",
        ),
        (
            "for servers alone",
            &|scene| {
                Some(scene.mesh.changed_client_leaf(&names, |params| {
                    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
                }))
            },
            "UnsupportedCertificate",
            "client authentication",
        ),
    ];
    for (what, leaf, alert, reason) in rows {
        let scene = Scene::new("", BY_CERTIFICATE);
        let leaf = leaf(&scene);
        let client = scene.client(leaf.as_ref());
        for n in 0..20 {
            let refused = client.refused(scene.gate.data);
            assert!(refused.contains(alert), "{what}, {n}: {refused}");
        }
        let says = "TLS handshakes with clients fail";
        eventually("the log says so", || scene.lines(says) > 0);
        let log = scene.gate.log();
        let line = log.lines().find(|line| line.contains(says));
        let line = line.expect("a line");
        assert!(line.contains(reason), "{what}: {line}");
        let good = scene.named(&names);
        assert_eq!(scene.call(&good, H1, &[]).status, 200, "{what}");
        assert_eq!(scene.lines(says), 1, "{what}: a line for each");
        assert_eq!(scene.upstream.seen().len(), 1, "{what}");
        assert_eq!(scene.gate.records(1).len(), 1, "{what}");
    }
}

#[test]
fn a_session_keeps_its_certificate_and_ends_with_a_reload_of_the_roots() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let scene = Scene::new("", BY_CERTIFICATE);
        let data = scene.gate.data;
        let leaf = scene.mesh.client_leaf(&[SPIFFE]);
        let client = TlsClient::of_versions(&scene.public, Some(&leaf), &[version]);
        for (n, is_resumed) in [(1, false), (2, true), (3, true)] {
            let (response, was_resumed) = client.call(data, H1, &[]);
            assert_eq!(response.status, 200, "{version:?}: {}", response.text());
            assert_eq!(was_resumed, is_resumed, "{version:?} {n}");
            assert_eq!(scene.record(n)["workload"], "chat", "{version:?} {n}");
        }
        let reloads = || {
            let labels = ["result=\"taken\""];
            scene.gate.metric("tollgate_config_reloads_total", &labels)
        };
        let before = reloads();
        let next = Authority::named("other");
        let roots = next.certificate.as_bytes();
        scene.gate.replace("clients.pem", roots);
        eventually("the roots are taken", || reloads() > before);
        let newcomer = next.client_leaf(&[SPIFFE]);
        let newcomer = TlsClient::of_versions(&scene.public, Some(&newcomer), &[version]);
        // A worker that answers this one has taken what came before it.
        drop(scene.gate.metrics());
        let refused = client.refused(data);
        assert!(refused.contains("UnknownCA"), "{version:?}: {refused}");
        let (response, _) = newcomer.call(data, H2, &[]);
        assert_eq!(response.status, 200, "{version:?}: {}", response.text());
        // Roots that are none change nothing.
        let failed = || {
            scene
                .gate
                .metric("tollgate_config_last_reload_success", &[])
                < 1.0
        };
        scene.gate.replace("clients.pem", b"no roots");
        eventually("they are refused", failed);
        let (response, _) = newcomer.call(data, H1, &[]);
        assert_eq!(response.status, 200, "{version:?}: {}", response.text());
        assert!(scene.gate.log().contains("listen.tls.client_ca"));
    }
}
