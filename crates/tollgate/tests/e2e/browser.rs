//! Requests that a web page sends from a user's browser: refused, unless the page's origin is configured.
//!
//! Not here: hosts and origins in all their spellings (unit tests of `policy::web`).

use crate::fixture::{After, Fixture, IDENTITY, answer, config};
use crate::harness::{Connection, Gate, Response, Step, Upstream, chat, h2, post};

const APP: &str = "https://app.example";
const FROM_APP: &str = "origin: https://app.example";
const CORS: &str = "cors: { origins: [https://app.example, \"http://localhost:5173\"] }\n";

/// A chat call of the registered workload to a host, with further header lines.
fn call_to(host: &str, lines: &str) -> Vec<u8> {
    let body = chat("m", false);
    let length = body.len();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\n{IDENTITY}\r\ncontent-type: application/json\r\n{lines}content-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

fn call_with(line: &str) -> Vec<u8> {
    post("/v1/chat/completions", &[IDENTITY, line], &chat("m", false))
}

fn preflight(lines: &str) -> Vec<u8> {
    format!("OPTIONS /v1/chat/completions HTTP/1.1\r\nhost: g\r\n{lines}\r\n").into_bytes()
}

/// Every value of a header.
fn all<'r>(response: &'r Response, name: &str) -> Vec<&'r str> {
    let named = response.headers.iter().filter(|(n, _)| n == name);
    named.map(|(_, value)| value.as_str()).collect()
}

#[test]
fn a_cross_origin_request_is_refused_unless_its_origin_is_configured() {
    let fixture = Fixture::new();
    for origin in [APP, "null", "http://127.0.0.1:1975", "vscode-webview://x"] {
        let line = format!("origin: {origin}");
        let refused = fixture.refuses(
            origin,
            &call_with(&line),
            403,
            "origin_not_allowed",
            After::Kept,
        );
        assert!(
            refused.text().contains("cors.origins"),
            "{}",
            refused.text()
        );
        assert_eq!(all(&refused, "access-control-allow-origin"), [""; 0]);
    }
    let image = format!(
        "GET /v1/models HTTP/1.1\r\nhost: g\r\n{IDENTITY}\r\nsec-fetch-site: cross-site\r\nsec-fetch-mode: no-cors\r\n\r\n"
    );
    fixture.refuses(
        "an image",
        image.as_bytes(),
        403,
        "origin_not_allowed",
        After::Kept,
    );
    let asks = preflight("origin: https://app.example\r\naccess-control-request-method: POST\r\n");
    fixture.refuses("a preflight", &asks, 403, "origin_not_allowed", After::Kept);
    fixture.end();
}

#[test]
fn a_configured_origin_passes_the_preflight_and_gets_cors_headers() {
    let fixture = Fixture::with(CORS);
    let asks = "origin: https://app.example\r\naccess-control-request-method: POST\r\naccess-control-request-headers: authorization,content-type,x-workload-app\r\naccess-control-request-private-network: true\r\n";
    let allowed = Connection::open(fixture.gate.data).call(&preflight(asks));
    assert_eq!((allowed.status, allowed.body.len()), (204, 0));
    assert_eq!(all(&allowed, "access-control-allow-origin"), [APP]);
    assert!(all(&allowed, "access-control-allow-methods")[0].contains("POST"));
    assert_eq!(
        all(&allowed, "access-control-allow-headers"),
        ["authorization,content-type,x-workload-app"]
    );
    assert_eq!(
        all(&allowed, "access-control-allow-private-network"),
        ["true"]
    );
    assert_eq!(all(&allowed, "access-control-max-age"), ["600"]);
    assert_eq!(all(&allowed, "access-control-allow-credentials"), [""; 0]);
    assert!(all(&allowed, "vary").contains(&"origin"));
    assert_eq!(all(&allowed, "content-length"), [""; 0]);

    let answer = fixture.gate.call(&call_with(FROM_APP));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(all(&answer, "access-control-allow-origin"), [APP]);
    assert_eq!(all(&answer, "access-control-expose-headers"), ["*"]);
    assert_eq!(all(&answer, "vary"), ["origin"]);
    let seen = fixture.upstream.seen();
    assert_eq!(seen.len(), 1, "the preflight reached nobody");
    assert_eq!(seen[0].header("origin"), [""; 0]);

    let unknown = post("/v1/chat/completions", &[FROM_APP], &chat("m", false));
    let refused = fixture.gate.call(&unknown);
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (404, "workload_not_registered")
    );
    assert_eq!(
        all(&refused, "access-control-allow-origin"),
        [APP],
        "a page may read why"
    );

    for other in ["https://evil.example", "null", "https://app.example:8443"] {
        let refused = fixture.gate.call(&call_with(&format!("origin: {other}")));
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (403, "origin_not_allowed")
        );
        assert_eq!(all(&refused, "access-control-allow-origin"), [""; 0]);
    }
    let plain = fixture.gate.call(&call_with("x-y: z"));
    assert_eq!(all(&plain, "access-control-allow-origin"), [""; 0]);
    assert_eq!(all(&plain, "vary"), ["origin"], "a cache must know");
    let records = fixture.gate.records(7);
    assert_eq!(
        (&records[0]["status"], &records[0]["outcome"]),
        (&204.into(), &"completed".into())
    );
}

#[test]
fn origins_are_checked_over_http2_too() {
    let fixture = Fixture::with(CORS);
    h2::run(async {
        let mut client = h2::connect(fixture.gate.data).await;
        for (origin, status) in [(APP, 200), ("https://evil.example", 403), ("null", 403)] {
            let mut request = h2::post("/v1/chat/completions", chat("m", false));
            let value = origin.parse().expect("a value");
            request.headers_mut().insert("origin", value);
            let answer = client.send_request(request).await.expect("an answer");
            assert_eq!(answer.status(), status, "{origin}");
        }
    });
    assert_eq!(fixture.upstream.seen().len(), 1);
}

#[test]
fn a_wildcard_allows_every_origin_except_null() {
    let fixture = Fixture::with("cors: { origins: \"*\" }\n");
    let answer = fixture
        .gate
        .call(&call_with("origin: https://anything.example"));
    assert_eq!(answer.status, 200);
    assert_eq!(all(&answer, "access-control-allow-origin"), ["*"]);
    assert_eq!(all(&answer, "vary"), [""; 0]);
    let refused = fixture.gate.call(&call_with("origin: null"));
    assert_eq!(refused.code(), "origin_not_allowed");
}

#[test]
fn cors_headers_of_an_upstream_are_not_forwarded() {
    let upstream = Upstream::start(|_, _| {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\naccess-control-allow-origin: *\r\naccess-control-allow-credentials: true\r\ncontent-length: 2\r\n\r\n{}";
        vec![Step::Send(head.into())]
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let answer = gate.call(&call_with("x-y: z"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let words = answer
        .headers
        .iter()
        .filter(|(name, _)| name.starts_with("access-control-"));
    assert_eq!(words.count(), 0);
}

#[test]
fn a_loopback_listener_answers_only_loopback_and_listed_hosts() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer())]);
    let gate = Gate::start_listening("", &config(upstream.address, ""), &[]);
    for host in [
        "evil.example",
        "evil.example:1975",
        "127.0.0.1.evil.example",
        "10.0.0.1",
    ] {
        let refused = gate.call(&call_to(host, ""));
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (421, "host_not_allowed"),
            "{host}"
        );
        assert!(refused.text().contains("listen.hosts"));
    }
    assert_eq!(
        upstream.seen().len(),
        0,
        "a page that rebinds its name spends nothing"
    );
    let port = gate.data.port();
    for host in [
        format!("127.0.0.1:{port}"),
        "localhost".into(),
        format!("[::1]:{port}"),
    ] {
        assert_eq!(gate.call(&call_to(&host, "")).status, 200, "{host}");
    }
    h2::run(async {
        let mut client = h2::connect(gate.data).await;
        let request = h2::post("/v1/chat/completions", chat("m", false));
        let answer = client.send_request(request).await.expect("an answer");
        assert_eq!(answer.status(), 421, ":authority is gate.test");
    });
}

#[test]
fn a_listed_host_is_answered_and_a_reload_changes_the_list() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer())]);
    let hosts = ", hosts: [gate.internal]";
    let gate = Gate::start_listening(hosts, &config(upstream.address, ""), &[]);
    let status = |host: &str| gate.call(&call_to(host, "")).status;
    assert_eq!(status("Gate.Internal:443"), 200);
    assert_eq!(status("localhost"), 200);
    assert_eq!(status("other.internal"), 421);
    let head = std::fs::read_to_string(gate.path("tollgate.yaml")).expect("it was written");
    let changed = head.replace("gate.internal", "other.internal");
    gate.replace("tollgate.yaml", changed.as_bytes());
    testing::eventually("the new list", || status("other.internal") == 200);
    assert_eq!(status("gate.internal"), 421);
}
