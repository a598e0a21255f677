//! What a backend adds to every request: headers, members of the query, and the certificate that the gate shows.

use super::recorder::Recorder;
use super::*;
use crate::harness::tls::Authority;

#[test]
fn what_a_backend_adds_takes_the_place_of_what_the_client_sent() {
    for is_h2 in [false, true] {
        let upstream = Recorder::clear(is_h2);
        let protocol = if is_h2 { "http2" } else { "http1" };
        let config = format!(
            "backends: {{ up: {{ url: http://{}/v1, protocol: {protocol}, credential: {{ inline: {CANARY} }}, \
             headers: {{ X-Title: the gate, anthropic-beta: ours }}, query: {{ api-version: 2024-10-21 }} }} }}\n\
             routes: [ {{ workload: w, backend: up, forward_headers: [x-title, x-other, anthropic-beta] }} ]\n",
            upstream.address
        );
        let gate = Gate::start(&config, &[]);
        let headers = [
            "x-workload-app: w",
            "X-Title: theirs",
            "x-other: theirs",
            "anthropic-beta: a",
            "anthropic-beta: b",
        ];
        let path = "/v1/chat/completions?api-version=2023-05-15&beta=true&api%2Dversion=1";
        let response = gate.call(&post(path, &headers, &chat("m", false)));
        assert_eq!(response.status, 200, "{}", response.text());
        let got = upstream.got().pop().expect("it arrived");
        let all = |name: &str| {
            let values = got.headers.get_all(name).iter();
            values
                .map(|value| value.to_str().expect("text").to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(all("x-title"), ["the gate"]);
        assert_eq!(all("anthropic-beta"), ["ours"]);
        assert_eq!(all("x-other"), ["theirs"]);
        assert_eq!(all("authorization"), [format!("Bearer {CANARY}")]);
        assert_eq!(
            (&*got.path, &*got.query),
            ("/v1/chat/completions", "beta=true&api-version=2024-10-21")
        );
        assert_eq!(got.is_h2, is_h2);
        assert_silent(&gate);
    }
}

/// The certificate of a PEM text.
fn der(pem: &str) -> Option<Vec<u8>> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject;
    Some(
        CertificateDer::from_pem_slice(pem.as_bytes())
            .expect("PEM")
            .to_vec(),
    )
}

#[test]
fn each_backend_shows_its_own_certificate_and_a_new_one_at_once() {
    let (ours, clients) = (Authority::new(), Authority::new());
    let upstream = Recorder::tls(&ours.leaf("127.0.0.1"), &clients.certificate);
    let (one, two, three) = (
        clients.leaf("one"),
        clients.leaf("two"),
        clients.leaf("three"),
    );
    let backend = |name: &str| {
        format!(
            "  {name}: {{ url: https://{}/v1, ca: ca.pem, client_certificate: {{ certificate: {name}.pem, key: {name}.key }} }}\n",
            upstream.address
        )
    };
    let config = format!(
        "workers: 1\nbackends:\n{}{}  none: {{ url: https://{}/v1, ca: ca.pem }}\n\
         routes:\n  - {{ workload: one, backend: one }}\n  - {{ workload: two, backend: two }}\n  - {{ workload: none, backend: none }}\n",
        backend("one"),
        backend("two"),
        upstream.address
    );
    let files: [(&str, &str); 5] = [
        ("ca.pem", &ours.certificate),
        ("one.pem", &one.certificate),
        ("one.key", &one.key),
        ("two.pem", &two.certificate),
        ("two.key", &two.key),
    ];
    let files = files.map(|(name, text)| (name, text.as_bytes()));
    let gate = Gate::start(&config, &files);
    let call_as = |workload: &str| {
        let header = format!("x-workload-app: {workload}");
        let response = gate.call(&post("/v1/chat/completions", &[&header], &chat("m", false)));
        let got = upstream.got().pop().and_then(|got| got.certificate);
        (response.status, got)
    };
    for _ in 0..3 {
        assert_eq!(call_as("one"), (200, der(&one.certificate)));
        assert_eq!(call_as("two"), (200, der(&two.certificate)));
    }
    // Who shows none is let in by nobody.
    let calls = upstream.got().len();
    assert_ne!(call_as("none").0, 200);
    assert_eq!(upstream.got().len(), calls);
    gate.replace("one.key", three.key.as_bytes());
    gate.replace("one.pem", three.certificate.as_bytes());
    testing::eventually("the new certificate is shown", || {
        call_as("one") == (200, der(&three.certificate))
    });
    assert_eq!(call_as("two"), (200, der(&two.certificate)));
    let log = gate.log();
    assert!(!log.contains("PRIVATE KEY"), "the log holds a key");
}
