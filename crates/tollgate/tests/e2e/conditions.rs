//! The log reports a condition that hinders the gate once when it begins and once when it ends.
//!
//! Not here: how often a lasting condition is logged (unit tests of `telemetry`).

use std::net::SocketAddr;
use std::time::Duration;

use testing::{eventually, nothing_happens_for, pace};

use crate::fixture::{answer, call};
use crate::harness::tls::{Authority, TlsUpstream};
use crate::harness::{Connection, Gate, Step, Upstream, chat, free_address};

/// Lines of the log that contain this text.
fn lines(gate: &Gate, text: &str) -> Vec<String> {
    let log = gate.log();
    let lines = log.lines().filter(|line| line.contains(text));
    lines.map(str::to_owned).collect()
}

/// Waits for a line of the log that contains this text, and asserts that it is the only one.
fn line(gate: &Gate, text: &str) -> String {
    eventually(text, || !lines(gate, text).is_empty());
    // The gate looks every half second for what there is to tell.
    nothing_happens_for(Duration::from_millis(700));
    let lines = lines(gate, text);
    assert_eq!(lines.len(), 1, "{lines:#?}");
    lines[0].clone()
}

fn config(host: &str, port: u16, extra: &str) -> String {
    format!(
        "workers: 3\nbackends: {{ up: {{ url: \"http://{host}:{port}/v1\", credential: {{ inline: gate-key }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n{extra}"
    )
}

fn before(address: SocketAddr) -> Gate {
    Gate::start(&config("127.0.0.1", address.port(), ""), &[])
}

fn status(gate: &Gate) -> u16 {
    gate.call(&call(&chat("m", false))).status
}

/// The number of a field.
fn field(line: &str, name: &str) -> u64 {
    let start = line.split_once(&format!("{name}=")).expect("the field").1;
    let digits = start.split(|c: char| !c.is_ascii_digit()).next();
    digits.unwrap_or_default().parse().expect("a number")
}

#[test]
fn an_endpoint_outage_and_its_recovery_are_logged_once_each() {
    let address = free_address();
    let gate = before(address);
    for _ in 0..40 {
        assert_eq!(status(&gate), 502);
    }
    let begins = line(&gate, "an endpoint fails");
    assert!(
        begins.contains("WARN") && begins.contains("endpoint=\"up\""),
        "{begins}"
    );
    assert!(begins.contains("upstream_unreachable: "), "{begins}");
    assert!(begins.contains("Connection refused"), "{begins}");
    let see = "docs/troubleshooting.md#an-endpoint-fails";
    assert!(begins.contains(see), "{begins}");
    let upstream = Upstream::start_at(address, |_, _| vec![Step::Send(answer())]);
    eventually("it answers", || {
        pace(Duration::from_millis(50));
        status(&gate) == 200
    });
    let ends = line(&gate, "the endpoint answers again");
    assert!(field(&ends, "total") >= 40, "{ends}");
    assert!(!upstream.seen().is_empty());
    assert!(!gate.log().contains("gate-key"));
}

#[test]
fn a_refused_upstream_credential_is_logged_until_it_is_accepted() {
    let upstream = Upstream::start(|n, _| {
        let refused = b"HTTP/1.1 401 No\r\ncontent-length: 14\r\n\r\nthe key is bad";
        vec![Step::Send(if n < 6 { refused.to_vec() } else { answer() })]
    });
    let gate = before(upstream.address);
    for _ in 0..6 {
        assert_eq!(status(&gate), 502);
    }
    let begins = line(&gate, "refuses the gate's credential");
    assert!(
        begins.contains("ERROR") && begins.contains("status 401"),
        "{begins}"
    );
    assert_eq!(status(&gate), 200);
    let ends = line(&gate, "takes the gate's credential again");
    assert_eq!(field(&ends, "total"), 6, "{ends}");
    for never in ["gate-key", "the key is bad"] {
        assert!(!gate.log().contains(never), "{never}");
    }
}

#[test]
fn a_name_that_does_not_resolve_is_logged_with_the_resolver_error() {
    let gate = Gate::start(&config("nowhere.invalid", 80, ""), &[]);
    let response = gate.call(&call(&chat("m", false)));
    assert_eq!(response.code(), "upstream_unresolved");
    let begins = line(&gate, "an endpoint fails");
    let detail = begins
        .split_once("upstream_unresolved: ")
        .expect("the detail")
        .1;
    assert!(detail.len() > 10, "{begins}");
    assert!(
        !response.text().contains("lookup"),
        "none of it is for clients"
    );
}

#[test]
fn an_invalid_upstream_certificate_is_logged_with_the_reason() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let upstream = TlsUpstream::start(&theirs.leaf("localhost"), &[b"http/1.1"]);
    let config = format!(
        "backends: {{ up: {{ url: \"https://localhost:{}/v1\", ca: ca.pem }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address.port()
    );
    let gate = Gate::start(&config, &[("ca.pem", ours.certificate.as_bytes())]);
    for _ in 0..5 {
        assert_eq!(status(&gate), 502);
    }
    let begins = line(&gate, "an endpoint fails");
    assert!(begins.contains("invalid peer certificate"), "{begins}");
}

#[test]
fn a_full_ledger_disk_and_its_recovery_are_logged() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer())]);
    let port = upstream.address.port();
    let gate =
        Gate::start_to_be_limited(&config("127.0.0.1", port, "ledger: { path: usage.db }\n"));
    gate.limit_files("16384");
    for _ in 0..20 {
        assert_eq!(status(&gate), 200);
    }
    let begins = line(&gate, "the ledger takes no rows");
    assert!(begins.contains("ERROR"), "{begins}");
    gate.limit_files("unlimited");
    line(&gate, "the ledger takes rows again");
}

#[test]
fn failed_client_handshakes_are_logged_with_the_reason() {
    let authority = Authority::new();
    let leaf = authority.leaf("gate.test");
    let files = [
        ("cert.pem", leaf.certificate.as_bytes()),
        ("key.pem", leaf.key.as_bytes()),
    ];
    let gate = Gate::start_tls(&config("127.0.0.1", 1, ""), &files);
    for _ in 0..3 {
        Connection::open(gate.data).call(&call(&chat("m", false)));
    }
    let begins = line(&gate, "TLS handshakes with clients fail");
    assert!(
        begins.contains("WARN") && begins.contains("detail="),
        "{begins}"
    );
}

#[test]
fn the_log_can_be_json_lines() {
    let address = free_address();
    let config = config("127.0.0.1", address.port(), "");
    let gate = Gate::start_env(&config, &[], &[("TOLLGATE_LOG_FORMAT", "json")]);
    assert_eq!(status(&gate), 502);
    eventually("the line", || !lines(&gate, "an endpoint fails").is_empty());
    for text in gate.log().lines() {
        let line: serde_json::Value = serde_json::from_str(text).expect(text);
        assert!(
            line["level"].is_string() && line["timestamp"].is_string(),
            "{text}"
        );
    }
    let text = lines(&gate, "an endpoint fails").remove(0);
    let line: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(line["message"], "an endpoint fails");
    assert_eq!(
        (&line["endpoint"], &line["level"]),
        (&"up".into(), &"WARN".into())
    );
}
