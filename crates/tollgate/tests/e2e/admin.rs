//! The admin listener requires a bearer where one is configured, and refuses requests of web pages.
//!
//! Not here: what its pages contain (`observability`).

mod changes;
mod login;
mod unmet;

use crate::fixture::{answer, config};
use crate::harness::{Connection, Gate, Response, Step, Upstream, tollgate};

const PROBES: [&str; 4] = ["/livez", "/healthz", "/readyz", "/health"];
const PAGES: [&str; 6] = [
    "/metrics",
    "/stats/prometheus",
    "/config",
    "/api/v1/config",
    "/api/v1/limits",
    "/nothing",
];
const BEARER: &str = "admin: { bearer: { file: secrets/admin } }\n";

fn ask(gate: &Gate, path: &str, lines: &str) -> Response {
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{lines}connection: close\r\n\r\n");
    Connection::open(gate.admin).call(request.as_bytes())
}

fn gate(extra: &str) -> Gate {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer())]);
    let files: [(&str, &[u8]); 1] = [("secrets/admin", b"canary-first\n")];
    Gate::start_listening("", &config(upstream.address, extra), &files)
}

#[test]
fn admin_pages_other_than_probes_require_the_configured_bearer() {
    let gate = gate(BEARER);
    let with = |secret: &str| format!("authorization: Bearer {secret}\r\n");
    for path in PROBES {
        assert_eq!(ask(&gate, path, "").status, 200, "{path}");
    }
    for path in PAGES {
        for lines in [
            String::new(),
            with("canary-firsx"),
            with("canary-first canary-first"),
            with("canary-fir"),
            with("canary-first") + &with("canary-first"),
            "authorization: Basic canary-first\r\n".to_owned(),
            "x-api-key: canary-first\r\n".to_owned(),
        ] {
            let refused = ask(&gate, path, &lines);
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (401, "credential_required"),
                "{path} {lines}"
            );
            assert_eq!(
                refused.header("www-authenticate"),
                Some("Bearer realm=\"tollgate\"")
            );
        }
        let status = if path == "/nothing" { 404 } else { 200 };
        assert_eq!(
            ask(&gate, path, &with("canary-first")).status,
            status,
            "{path}"
        );
        assert_eq!(
            ask(&gate, path, "authorization: bearer canary-first\r\n").status,
            status
        );
    }
    for path in ["/config", "/api/v1/config"] {
        let page = ask(&gate, path, &with("canary-first")).text();
        assert!(
            !page.contains("canary") && !gate.log().contains("canary"),
            "{page}"
        );
    }

    gate.replace("secrets/admin", b"canary-second");
    testing::eventually("the new bearer counts", || {
        ask(&gate, "/metrics", &with("canary-second")).status == 200
    });
    assert_eq!(ask(&gate, "/metrics", &with("canary-first")).status, 401);
}

#[test]
fn admin_requests_of_web_pages_are_refused_whatever_their_origin() {
    let gate = gate("cors: { origins: \"*\" }\n");
    for path in PROBES.iter().chain(&PAGES) {
        for lines in [
            "origin: https://app.example\r\n",
            "origin: null\r\n",
            "sec-fetch-site: cross-site\r\n",
        ] {
            let refused = ask(&gate, path, lines);
            assert_eq!(
                (refused.status, refused.code().as_str()),
                (403, "origin_not_allowed"),
                "{path} {lines}"
            );
            assert_eq!(refused.header("access-control-allow-origin"), None);
        }
    }
    assert_eq!(
        ask(&gate, "/metrics", "sec-fetch-site: none\r\n").status,
        200
    );
}

/// The warnings of `check` for a document with these fields of `listen`.
fn warnings(listen: &str, extra: &str) -> String {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let path = dir.path().join("tollgate.yaml");
    let text = format!(
        "listen: {{ {listen} }}\nbackends: {{ b: {{ url: http://127.0.0.1:1/v1 }} }}\nroutes: [ {{ workload: w, backend: b }} ]\n{extra}"
    );
    std::fs::write(&path, text).expect("a file");
    let path = path.to_str().expect("UTF-8");
    let checked = tollgate(dir.path(), &["check", "-c", path], &[]);
    assert_eq!(checked.code, Some(0), "{}", checked.err);
    // Line breaks depend on the width of the terminal, so they are removed.
    checked.err.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn check_warns_of_listeners_that_other_machines_can_reach() {
    assert_eq!(warnings("data: 127.0.0.1:1975", ""), "");
    let open = warnings("data: 0.0.0.0:1975", "identity: { trust: anyone }\n");
    assert!(
        open.contains("identity") && open.contains("can say that it is any workload"),
        "{open}"
    );
    let admin = warnings("admin: 0.0.0.0:1976", "");
    assert!(
        admin.contains("listen.admin") && admin.contains("asks for no credential"),
        "{admin}"
    );
    let bearer = "admin: { bearer: { inline: canary-in-the-document } }\n";
    assert_eq!(warnings("admin: 0.0.0.0:1976", bearer), "");
}
