//! Calls of plain HTTP, to services that serve no model: matched by path, method, host and headers, behind the same door.
//!
//! Invariant: a refused call never reaches a service; none of them reaches a backend that serves models.
//! Not here: which rule takes which call (unit tests of `policy::plain`), calls that a route lists (`operations`).

mod listeners;
mod pages;
mod websocket;

use std::path::Path;
use std::process::Command;

use crate::harness::answer::{chunk, whole};
use crate::harness::{Connection, Gate, Step, Upstream, chat, post, tollgate};

/// A service whose answers say what their path asks for; else it gives back the body.
fn service() -> Upstream {
    Upstream::start(|_, seen| {
        let path = seen.head.split(' ').nth(1).unwrap_or_default();
        let status = |line: &str, fields: &str| {
            let text = format!("HTTP/1.1 {line}\r\n{fields}\r\n");
            vec![Step::Send(text.into_bytes())]
        };
        match path.split('?').next().unwrap_or_default() {
            "/status/204" => status("204 No Content", ""),
            "/status/304" => status("304 Not Modified", "etag: \"e\"\r\n"),
            "/status/302" => status("302 Found", "location: /next\r\ncontent-length: 0\r\n"),
            "/status/401" => status(
                "401 Unauthorized",
                "www-authenticate: Basic\r\nset-cookie: a=b\r\ncontent-length: 0\r\n",
            ),
            "/status/404" => vec![Step::Send(whole(404, "text/html", b"<p>no</p>"))],
            "/early" => {
                let early = b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n".to_vec();
                vec![
                    Step::Send(early),
                    Step::Send(whole(200, "text/plain", b"late")),
                ]
            }
            "/chunks" => {
                let head =
                    b"HTTP/1.1 200 OK\r\ntrailer: x-sum\r\ntransfer-encoding: chunked\r\n\r\n";
                let end = b"0\r\nx-sum: 1\r\n\r\n".to_vec();
                let sends = [head.to_vec(), chunk(b"one "), chunk(b"two"), end];
                sends.map(Step::Send).to_vec()
            }
            _ if seen.head.starts_with("HEAD ") => {
                status("200 OK", "content-length: 5\r\nx-service: yes\r\n")
            }
            _ => vec![Step::Send(whole(
                200,
                "application/octet-stream",
                &seen.body,
            ))],
        }
    })
}

fn config(service: &Upstream, engine: &Upstream) -> String {
    format!(
        "backends:\n  engine: {{ url: http://{}/v1 }}\n  web: {{ serves: http, url: http://{} }}\n\
         routes:\n  - {{ workload: w, backend: engine }}\n  \
         - {{ name: all, workload: w, match: {{ path: \"/*\" }}, backend: web }}\n  \
         - {{ name: echo, workload: w, match: {{ path: /echo, method: GET }}, backend: web, \
         limits: [ {{ requests: 2, per: 366d }} ] }}\n  \
         - {{ name: canary, workload: w, match: {{ path: /echo, host: \"*.example\", headers: {{ x-canary: \"yes\" }} }}, backend: web }}\n",
        engine.address, service.address
    )
}

fn engine() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(crate::harness::answer::json(200, "{}"))])
}

fn get(target: &str, fields: &[&str]) -> Vec<u8> {
    request("GET", target, fields)
}

fn request(method: &str, target: &str, fields: &[&str]) -> Vec<u8> {
    let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    format!("{method} {target} HTTP/1.1\r\nhost: g\r\nx-workload-app: w\r\n{fields}\r\n").into()
}

#[test]
fn get_echo_passes_with_an_identity_and_within_its_limit_of_requests() {
    let (service, engine) = (service(), engine());
    let gate = Gate::start(&config(&service, &engine), &[]);
    let curl = |more: &[&str]| {
        let url = format!("http://{}/echo?a=b&token=c", gate.data);
        let fixed = ["-sS", "-m", "20", "-i", "-H", "x-api-key: mine", &url];
        let out = Command::new("curl").args(fixed).args(more).output();
        String::from_utf8(out.expect("curl runs").stdout).expect("text")
    };
    let anonymous = curl(&[]);
    assert!(anonymous.starts_with("HTTP/1.1 404"), "{anonymous}");
    assert!(anonymous.contains("workload_not_registered"), "{anonymous}");
    assert!(service.seen().is_empty());
    let who = ["-H", "x-workload-app: w"];
    let answer = curl(&who);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(
        answer.contains("x-ratelimit-remaining-requests: 1"),
        "{answer}"
    );
    let seen = service.seen().pop().expect("it arrived");
    assert!(
        seen.head.starts_with("GET /echo?a=b&token=c HTTP/1.1\r\n"),
        "{}",
        seen.head
    );
    assert!(seen.head.contains("user-agent: curl/"), "{}", seen.head);
    for kept in ["x-api-key", "x-workload-app", "mine"] {
        assert!(
            !seen.head.contains(kept),
            "{kept} stays here: {}",
            seen.head
        );
    }
    assert!(curl(&who).starts_with("HTTP/1.1 200"));
    let refused = curl(&who);
    assert!(refused.starts_with("HTTP/1.1 429"), "{refused}");
    assert_eq!((service.seen().len(), engine.seen().len()), (2, 0));
    let mut records = gate.records(4);
    // Workers write their lines each when it can.
    records.sort_by_key(|record| record["status"].as_u64());
    let of = |name: &str| records.iter().map(|r| r[name].clone()).collect::<Vec<_>>();
    assert_eq!(of("status"), [200, 200, 404, 429]);
    assert!(
        of("operation").iter().all(|operation| operation == "http"),
        "{records:?}"
    );
    assert_eq!(of("route")[1], "echo");
    for record in &records {
        let tokens = ["prompt_tokens", "completion_tokens", "model", "cost"];
        let said: Vec<_> = tokens
            .iter()
            .filter(|name| !record[**name].is_null())
            .collect();
        assert!(said.is_empty(), "{said:?} of {record}");
    }
    let labels = ["operation=\"http\"", "route=\"echo\""];
    assert!(
        gate.metric("tollgate_exchanges_total", &labels) >= 2.0,
        "{}",
        gate.metrics()
    );
}

#[test]
fn every_method_body_and_answer_passes_as_it_is() {
    let (service, engine) = (service(), engine());
    let gate = Gate::start(&config(&service, &engine), &[]);
    let mut connection = Connection::open(gate.data);
    for method in ["POST", "PUT", "PATCH", "OPTIONS", "PROPFIND"] {
        let plain = [
            &request(method, "/x", &["content-length: 5"])[..],
            b"\0 raw",
        ]
        .concat();
        let answer = connection.call(&plain);
        assert_eq!(
            (answer.status, &answer.body[..]),
            (200, &b"\0 raw"[..]),
            "{method}"
        );
        let seen = service.seen().pop().expect("it arrived");
        assert!(
            seen.head.starts_with(&format!("{method} /x HTTP/1.1\r\n")),
            "{}",
            seen.head
        );
        let head = request(method, "/x", &["transfer-encoding: chunked"]);
        let chunked = [&head[..], b"3\r\nabc\r\n2\r\nde\r\n0\r\nx-t: 1\r\n\r\n"].concat();
        assert_eq!(connection.call(&chunked).body, b"abcde", "{method}");
    }
    let deleted = connection.call(&request("DELETE", "/x", &[]));
    assert_eq!((deleted.status, deleted.body.len()), (200, 0));
    connection.send(&request("HEAD", "/x", &[]));
    let head = connection.headless();
    assert_eq!(
        (head.status, head.header("content-length")),
        (200, Some("5"))
    );
    assert_eq!(head.header("x-service"), Some("yes"));
    for (status, field, value) in [
        (204, "x-none", None),
        (304, "etag", Some("\"e\"")),
        (302, "location", Some("/next")),
        (401, "www-authenticate", Some("Basic")),
        (401, "set-cookie", Some("a=b")),
        (404, "content-type", Some("text/html")),
    ] {
        connection.send(&get(&format!("/status/{status}"), &[]));
        let answer = if matches!(status, 204 | 304) {
            connection.headless()
        } else {
            connection.response()
        };
        assert_eq!((answer.status, answer.header(field)), (status, value));
    }
    assert_eq!(connection.call(&get("/early", &[])).body, b"late");
    let chunks = connection.call(&get("/chunks", &[]));
    assert_eq!(
        (&chunks.body[..], chunks.header("trailer")),
        (&b"one two"[..], None)
    );
    for method in ["TRACE", "CONNECT"] {
        let refused = gate.call(&request(method, "/x", &[]));
        assert!(refused.status >= 400, "{method}: {}", refused.text());
    }
    assert!(
        service
            .seen()
            .iter()
            .all(|seen| !seen.head.starts_with("TRACE"))
    );
    assert!(engine.seen().is_empty());
}

#[test]
fn a_route_is_chosen_by_path_method_host_and_headers() {
    let (service, engine) = (service(), engine());
    let gate = Gate::start(&config(&service, &engine), &[]);
    for (method, host, more, route) in [
        ("GET", "g", "a: b", "echo"),
        ("POST", "g", "content-length: 0", "all"),
        ("GET", "a.example:80", "x-canary: yes", "canary"),
        ("GET", "a.example", "x-canary: no", "echo"),
    ] {
        let head = format!(
            "{method} /echo HTTP/1.1\r\nhost: {host}\r\nx-workload-app: w\r\n{more}\r\n\r\n"
        );
        let before = gate.records(0).len();
        assert_eq!(gate.call(head.as_bytes()).status, 200, "{head}");
        assert_eq!(gate.records(before + 1)[before]["route"], route, "{head}");
    }
}

#[test]
fn rules_hold_for_plain_calls_and_the_gate_sends_its_own_credential() {
    let service = service();
    let config = format!(
        "authority: {{ rules: [ {{ name: read, allow: 'operation == \"http\" && path.startsWith(\"/x/\") && method != \"DELETE\"' }} ] }}\n\
         backends: {{ web: {{ serves: http, url: http://{}/base, credential: {{ inline: ours }} }} }}\n\
         routes: [ {{ workload: w, backend: web }} ]\n",
        service.address
    );
    let gate = Gate::start(&config, &[]);
    for (method, path) in [("GET", "/y"), ("DELETE", "/x/1")] {
        let refused = gate.call(&request(method, path, &[]));
        assert_eq!(
            (refused.status, refused.code().as_str()),
            (403, "not_authorized")
        );
    }
    assert!(service.seen().is_empty());
    let answer = gate.call(&get("/x/1", &["authorization: Bearer mine"]));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = service.seen().pop().expect("it arrived").head;
    assert!(seen.starts_with("GET /base/x/1 HTTP/1.1\r\n"), "{seen}");
    assert!(
        seen.contains("authorization: Bearer ours") && !seen.contains("mine"),
        "{seen}"
    );
    // One in a header of another name has that to itself.
    let own = "credential: { inline: ours, header: x-secret, scheme: \"\" }";
    let gate = Gate::start(&config.replace("credential: { inline: ours }", own), &[]);
    let answer = gate.call(&get("/x/2", &["X-Secret: mine", "x-other: mine too"]));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = service.seen().pop().expect("it arrived");
    assert_eq!(seen.header("x-secret"), ["ours"], "{}", seen.head);
    assert_eq!(seen.header("x-other"), ["mine too"], "{}", seen.head);
}

#[test]
fn no_call_to_a_model_falls_to_a_plain_route_however_it_is_spelt() {
    let (service, engine) = (service(), engine());
    let gate = Gate::start(&config(&service, &engine), &[]);
    let who = ["x-workload-app: w"];
    let body = chat("m", false);
    for path in [
        "/v1/chat/completions/",
        "/v1/Chat/completions",
        "/v1/files",
        "/v1",
        "/v1/",
        "/V1/chat/completions",
        "/%76%31/chat/completions",
        "/v%31/chat/completions",
        "/%2576%2531/chat/completions",
        "//v1/chat/completions",
        "/./v1/chat/completions",
        "/x/../v1/chat/completions",
        "/x/%2e%2e/v1/chat/completions",
        "/v1;a/chat/completions",
        "/v1%20/chat/completions",
        "/%20v1/chat/completions",
        "/v1./chat/completions",
        "/v1%3f/chat/completions",
        "/%ef%bd%96%ef%bc%91/chat/completions",
        "/v%c2%b9/chat/completions",
        "http://g/V1/chat/completions",
    ] {
        let answer = gate.call(&post(path, &who, &body));
        assert!(
            matches!(answer.status, 400 | 404),
            "{path}: {}",
            answer.text()
        );
    }
    assert!(service.seen().is_empty() && engine.seen().is_empty());
    assert_eq!(
        gate.call(&post("/v1/chat/completions", &who, &body)).status,
        200
    );
    assert_eq!((service.seen().len(), engine.seen().len()), (0, 1));
}

#[test]
fn explain_says_which_route_a_plain_call_takes() {
    let (service, engine) = (service(), engine());
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tollgate.yaml"), config(&service, &engine)).expect("a file");
    let explain = |path: &str| {
        let args = [
            "explain",
            "--method",
            "GET",
            "--path",
            path,
            "--header",
            "x-workload-app: w",
        ];
        explained(dir.path(), &args)
    };
    let (code, out) = explain("/echo");
    assert_eq!(code, Some(0), "{out}");
    for line in [
        "call       plain HTTP",
        "route      echo to web",
        "limit      2 requests",
    ] {
        assert!(out.contains(line), "{line}: {out}");
    }
    let (code, out) = explain("/v1/nothing");
    assert!(
        code != Some(0) && out.contains("operation_not_allowed"),
        "{out}"
    );
}

fn explained(dir: &Path, args: &[&str]) -> (Option<i32>, String) {
    let ended = tollgate(dir, args, &[]);
    (ended.code, ended.out)
}
