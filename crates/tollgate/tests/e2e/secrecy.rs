//! Canaries in every secret, client credential and prompt: they may appear only where they were sent.
//! Not in a log at its most verbose level, not in a metric, not in an error of the gate, not in
//! `/config`.
//!
//! Not here: that credentials are replaced correctly (`credentials`).

use std::process::{Command, Output};

use crate::harness::{Connection, Gate, Response, Seen, Step, Upstream, post, write_private};

/// Part of every canary, so that one search finds all.
const CANARY: &str = "cAnArY7f3a";

/// An upstream whose fault depends on the model. It echoes the gate's own credential wherever it can.
fn faults() -> Upstream {
    Upstream::start(|_, seen| {
        let heard = ["authorization", "x-own-key"]
            .iter()
            .flat_map(|name| seen.header(name));
        let heard = heard.collect::<Vec<_>>().join(" ");
        let fault = match seen.json()["model"].as_str() {
            Some(model) => model.to_owned(),
            None => String::new(),
        };
        script(&fault, &heard, seen)
    })
}

fn script(fault: &str, heard: &str, seen: &Seen) -> Vec<Step> {
    let body = |status: &str, kind: &str, text: String, more: &str| {
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n{more}\r\n",
            text.len()
        );
        vec![Step::Send((head + &text).into_bytes())]
    };
    let json = "application/json";
    let error = format!(r#"{{"error":{{"message":"bad key {heard}","type":"x","code":"x"}}}}"#);
    let echo =
        format!("x-debug-token: {heard}\r\nwww-authenticate: {heard}\r\nset-cookie: {heard}\r\n");
    match fault {
        "says-401" => body("401 Unauthorized", json, error, &echo),
        "says-403" => body("403 Forbidden", json, error, &echo),
        "says-500" => body("500 Oops", json, error, &echo),
        "says-503-html" => body("503 Busy", "text/html", format!("<p>{heard}</p>"), &echo),
        "redirects" => body(
            "302 Found",
            json,
            error,
            &format!("location: http://x/{CANARY}-body\r\n"),
        ),
        "html" => body(
            "200 OK",
            "text/html",
            format!("<p>{heard} {CANARY}-body</p>"),
            &echo,
        ),
        "malformed-status" => vec![
            Step::Send(format!("HTTP/1.1 {heard}\r\n\r\n").into_bytes()),
            Step::Close,
        ],
        "malformed-field" => {
            vec![
                Step::Send(
                    format!("HTTP/1.1 200 OK\r\nbad name {heard}: {heard}\r\n\r\n").into_bytes(),
                ),
                Step::Close,
            ]
        }
        "malformed-chunk" => {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {json}\r\ntransfer-encoding: chunked\r\n\r\n"
            );
            vec![
                Step::Send(format!("{head}{heard}\r\n{heard}").into_bytes()),
                Step::Close,
            ]
        }
        "resets" => vec![Step::Reset],
        "cut" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\ndata:\r\n";
            vec![Step::Send(head.into()), Step::Reset]
        }
        "bad-usage" => body(
            "200 OK",
            json,
            format!(r#"{{"choices":[],"usage":{{"prompt_tokens":"{CANARY}-body"}}}}"#),
            "",
        ),
        _ => {
            assert!(
                !seen.head.contains("client-"),
                "a client's credential went upstream: {}",
                seen.head
            );
            body("200 OK", json, r#"{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#.into(), "")
        }
    }
}

fn config(clear: &Upstream, untrusted: std::net::SocketAddr) -> String {
    format!(
        "backends:\n  \
         by-file: {{ url: http://{0}/v1, credential: {{ file: key }} }}\n  \
         by-env: {{ url: http://{0}/v1, credential: {{ env: OWN_KEY }} }}\n  \
         by-inline: {{ url: http://{0}/v1, credential: {{ inline: {CANARY}-own-inline, header: x-own-key }} }}\n  \
         by-variable: {{ url: http://{0}/v1, credential: {{ inline: \"${{OWN_VARIABLE}}\" }} }}\n  \
         not-tls: {{ url: https://{0}/v1, credential: {{ file: key }}, timeouts: {{ connect: 1s }} }}\n  \
         untrusted: {{ url: https://{untrusted}/v1, credential: {{ file: key }} }}\n  \
         nowhere: {{ url: http://127.0.0.1:9/v1, credential: {{ file: key }} }}\n\
         bounds: {{ body: 64KiB, head_time: 1s }}\n\
         routes:\n  \
         - {{ workload: by-file, backend: by-file }}\n  \
         - {{ workload: by-env, backend: by-env }}\n  \
         - {{ workload: by-inline, backend: by-inline }}\n  \
         - {{ workload: by-variable, backend: by-variable }}\n  \
         - {{ workload: not-tls, backend: not-tls }}\n  \
         - {{ workload: untrusted, backend: untrusted }}\n  \
         - {{ workload: nowhere, backend: nowhere }}\n  \
         - {{ workload: limited, backend: by-file, limits: [ {{ requests: 1, per: 1h }} ] }}\n  \
         - {{ workload: narrow, backend: by-file, match: {{ model: only }} }}\n",
        clear.address
    )
}

/// A TLS listener with a certificate that nobody trusts.
fn untrusted() -> std::net::SocketAddr {
    use std::io::Read;
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).expect("a certificate");
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der())
        .expect("a key");
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .expect("a configuration");
    let config = std::sync::Arc::new(config);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has free ports");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for tcp in listener.incoming().flatten() {
            let connection =
                rustls::ServerConnection::new(std::sync::Arc::clone(&config)).expect("a server");
            drop(rustls::StreamOwned::new(connection, tcp).read(&mut [0; 64]));
        }
    });
    address
}

/// Every place in which a client may put a credential.
fn client_credentials() -> Vec<String> {
    let headers = [
        "authorization: Bearer",
        "authorization: Basic",
        "authorization:",
        "x-api-key:",
        "api-key:",
        "x-goog-api-key:",
        "cookie: session",
        "proxy-authorization: Basic",
        "openai-organization:",
        "openai-project:",
        "anthropic-auth:",
        "x-amz-security-token:",
        "x-auth-token:",
        "x-secret:",
        "sec-websocket-protocol: openai-insecure-api-key.",
        "x-forwarded-authorization:",
    ];
    headers
        .iter()
        .map(|h| format!("{h} {CANARY}-client-key"))
        .collect()
}

fn prompt(model: &str, stream: bool) -> String {
    format!(
        r#"{{"model":"{model}","stream":{stream},"user":"{CANARY}-user","messages":[{{"role":"user","content":"{CANARY}-prompt"}},{{"role":"assistant","tool_calls":[{{"id":"t","type":"function","function":{{"name":"f","arguments":"{{\"secret\":\"{CANARY}-argument\"}}"}}}}]}}],"tools":[{{"type":"function","function":{{"name":"{CANARY}-tool"}}}}]}}"#
    )
}

/// Makes a call with a canary prompt; returns the gate's answer.
fn call(gate: &Gate, workload: &str, model: &str, more: &[String], query: &str) -> Response {
    let workload = format!("x-workload-app: {workload}");
    let headers: Vec<&str> = std::iter::once(workload.as_str())
        .chain(more.iter().map(String::as_str))
        .collect();
    let stream = model == "cut";
    gate.call(&post(
        &format!("/v1/chat/completions{query}"),
        &headers,
        &prompt(model, stream),
    ))
}

/// Asserts that no canary is in a text of the gate.
fn clean(what: &str, text: &str) {
    if let Some(at) = text.find(CANARY) {
        let from = text[..at]
            .char_indices()
            .rev()
            .nth(200)
            .map_or(0, |(i, _)| i);
        let to = (at + 60).min(text.len());
        panic!(
            "a canary is in {what}: …{}…",
            text.get(from..to).unwrap_or("?")
        );
    }
}

fn clean_response(what: &str, response: &Response) {
    clean(what, &format!("{:?}", response.headers));
    clean(what, &response.text());
}

#[test]
fn secrets_credentials_and_prompts_do_not_leak() {
    let upstream = faults();
    let config = config(&upstream, untrusted());
    let own = |name: &str| format!("{CANARY}-own-{name}");
    let (env, variable) = (own("env"), own("variable"));
    let environment = [
        ("TOLLGATE_LOG", "trace"),
        ("OWN_KEY", env.as_str()),
        ("OWN_VARIABLE", variable.as_str()),
    ];
    let gate = Gate::start_env(&config, &[("key", own("file").as_bytes())], &environment);
    let exchanges = answered(&gate) + refused(&gate);
    testing::eventually("each exchange has its record", || {
        gate.metric("tollgate_exchanges_total", &[]) as usize >= exchanges
    });
    assert_eq!(
        gate.records(exchanges).len(),
        exchanges,
        "one record for each exchange"
    );
    clean("/config", &gate.admin("/config").text());

    reload_with_faults(&gate, &config);
    for page in [
        "/config",
        "/metrics",
        "/stats/prometheus",
        "/readyz",
        "/health",
        "/nothing",
    ] {
        let response = gate.admin(page);
        clean_response(page, &response);
    }
    let heard = upstream.seen();
    for name in ["file", "env", "inline", "variable"] {
        let own = own(name);
        assert!(
            heard.iter().any(|s| s.head.contains(&own)),
            "{own} was never in use"
        );
    }
    let prompts = heard
        .iter()
        .filter(|s| String::from_utf8_lossy(&s.body).contains("-prompt"));
    assert!(prompts.count() > 50, "prompts went where they were sent");
    let gate_dir = gate.dir.path().to_owned();
    gate.signal(libc::SIGTERM);
    let mut gate = gate;
    assert_eq!(gate.wait(testing::PATIENCE).code(), Some(0));
    let log = gate.log();
    assert!(log.contains(" TRACE "), "the log is at its most talkative");
    clean("the log", &log);
    clean(
        "the access log",
        &std::fs::read_to_string(gate_dir.join("access.jsonl")).expect("a log"),
    );
}

/// Makes calls that reach an upstream; returns how many.
fn answered(gate: &Gate) -> usize {
    let mut exchanges = 0;
    for workload in ["by-file", "by-env", "by-inline", "by-variable"] {
        for credential in client_credentials() {
            let response = call(
                gate,
                workload,
                "good",
                std::slice::from_ref(&credential),
                "",
            );
            assert_eq!(response.status, 200, "{credential}: {}", response.text());
            clean_response(&credential, &response);
            exchanges += 1;
        }
        for query in [
            "key",
            "api-key",
            "api_key",
            "access_token",
            "client_secret",
            "x",
        ] {
            let query = format!("?a=b&{query}={CANARY}-query");
            assert_eq!(call(gate, workload, "good", &[], &query).status, 200);
            exchanges += 1;
        }
        for fault in [
            "says-401",
            "says-403",
            "says-503-html",
            "redirects",
            "html",
            "malformed-status",
            "malformed-field",
            "resets",
        ] {
            let response = call(gate, workload, fault, &[], "");
            assert!(
                matches!(response.status, 502 | 503),
                "{fault}: {response:?}"
            );
            clean_response(fault, &response);
            exchanges += 1;
        }
        // The body of an upstream passes unchanged; none of its headers that echo the credential passes.
        for fault in ["says-500", "cut", "malformed-chunk", "bad-usage"] {
            let response = call(gate, workload, fault, &[], "");
            clean(fault, &format!("{:?}", response.headers));
            exchanges += 1;
        }
    }
    for workload in ["not-tls", "untrusted", "nowhere"] {
        let response = call(gate, workload, "good", &[], "");
        assert!(
            matches!(response.status, 502 | 504),
            "{workload}: {}",
            response.text()
        );
        clean_response(workload, &response);
        exchanges += 1;
    }
    exchanges
}

/// Makes requests that the gate refuses itself; returns how many.
fn refused(gate: &Gate) -> usize {
    let key = format!("authorization: Bearer {CANARY}-client-key");
    let good = |body: &str| {
        post(
            "/v1/chat/completions",
            &["x-workload-app: by-file", &key],
            body,
        )
    };
    let line = |line: &str| {
        format!("{line}\r\nhost: gate.test\r\nx-workload-app: by-file\r\n{key}\r\n\r\n")
    };
    let with = |headers: &[&str]| post("/v1/chat/completions", headers, &prompt("good", false));
    let as_key = format!("x-workload-app: {CANARY}-client-key");
    let two = format!("x-api-key: {CANARY}-client-key");
    let large = format!(
        "{{\"model\":\"m\",\"x\":\"{}\"}}",
        format!("{CANARY}-prompt ").repeat(8000)
    );
    let long = format!("x-long: {}", format!("{CANARY}-client-key ").repeat(8000));
    let half = format!("{{\"model\":\"m\",\"messages\":[{{\"content\":\"{CANARY}-prompt");
    let requests: Vec<(u16, Vec<u8>)> = vec![
        (400, good(&half)),
        (400, good(&format!("{CANARY}-prompt"))),
        (
            400,
            good(&format!(
                "{{\"model\":\"m\",\"model\":\"{CANARY}-prompt\"}}"
            )),
        ),
        (
            400,
            good(&format!(
                "{{\"model\":\"m\",\"max_tokens\":\"{CANARY}-prompt\"}}"
            )),
        ),
        (
            400,
            good(&format!(
                "{{\"model\":\"m\",\"stream\":\"{CANARY}-prompt\"}}"
            )),
        ),
        (400, good(&format!("{{\"model\":[\"{CANARY}-prompt\"]}}"))),
        (400, good(&format!("{{\"model\":\"{CANARY} prompt\"}}"))),
        (413, good(&large)),
        (404, with(&[&as_key])),
        (404, with(&[&key])),
        (400, with(&["x-workload-app: by-file", &as_key])),
        (400, with(&["x-workload-app: by-file", &key, &two])),
        (
            400,
            with(&[
                "x-workload-app: by-file",
                &format!("bad name: {CANARY}-client-key"),
            ]),
        ),
        (431, with(&["x-workload-app: by-file", &long])),
        (
            415,
            with(&[
                "x-workload-app: by-file",
                &format!("content-encoding: {CANARY}"),
            ]),
        ),
        (
            404,
            line(&format!("GET /{CANARY}-path?key={CANARY} HTTP/1.1")).into(),
        ),
        (
            400,
            line(&format!("GET http://{CANARY}@x/../v1 HTTP/1.1")).into(),
        ),
        (
            400,
            line(&format!("GET /v1/%2e%2e/{CANARY} HTTP/1.1")).into(),
        ),
        (
            405,
            line(&format!("TRACE /v1/chat/completions?x={CANARY} HTTP/1.1")).into(),
        ),
        (400, line(&format!("{CANARY} {CANARY} {CANARY}")).into()),
        (
            404,
            post(
                "/v1/chat/completions",
                &["x-workload-app: narrow", &key],
                &prompt("good", false),
            ),
        ),
    ];
    let mut exchanges = requests.len();
    for (n, (status, request)) in requests.iter().enumerate() {
        let response = gate.call(request);
        let name = format!("refusal {n}");
        assert!(
            (400..500).contains(&response.status),
            "{name}: {response:?}"
        );
        assert_eq!(response.status, *status, "{name}: {}", response.text());
        clean_response(&name, &response);
    }
    for status in [200, 429, 429] {
        let response = call(gate, "limited", "good", std::slice::from_ref(&key), "");
        assert_eq!(response.status, status);
        clean_response("a limit", &response);
        exchanges += 1;
    }
    // One is too slow in its head, and one disconnects during its body.
    let mut slow = Connection::open(gate.data);
    slow.send(format!("POST /v1/chat/completions HTTP/1.1\r\n{key}").as_bytes());
    let response = slow.response();
    assert_eq!(response.status, 408);
    clean_response("a slow head", &response);
    let mut gone = Connection::open(gate.data);
    let request = good(&prompt("good", false));
    gone.send(&request[..request.len() - 20]);
    drop(gone);
    exchanges + 2
}

/// Configurations that are faulty where secrets stand.
fn faulty(config: &str) -> Vec<String> {
    let inline = format!("inline: {CANARY}-own-inline");
    let secret = format!("{CANARY}-own-mistaken");
    [
        format!("inline: {{ x: {secret} }}"),
        format!("inline: [ {secret} ]"),
        format!("inline: {secret}, scheme: \"{secret} {secret}\""),
        format!("inline: \"{secret}\\u0007\""),
        format!("inline: {secret}, file: {secret}"),
        format!("file: {secret}"),
        format!("env: {secret}"),
        format!("key: {secret}"),
        format!("inline: \"${{UNSET_VARIABLE}}{secret}\""),
        format!("inline: {secret}, header: \"{secret} {secret}\""),
        format!("inline: \"{secret}"),
        format!("inline: {secret}: {secret}"),
        format!("inline: !secret {secret}"),
        format!("inline: *{secret}"),
    ]
    .iter()
    .map(|put| config.replace(&inline, put))
    .chain([
        config.replace(
            "by-inline: { url: http://",
            &format!("by-inline: {{ url: http://user:{secret}@"),
        ),
        config.replace(
            "/v1, credential: { file: key }",
            &format!("/v1?key={secret}, credential: {{ file: key }}"),
        ),
        format!("credential: {secret}\n{config}"),
    ])
    .collect()
}

fn reload_with_faults(gate: &Gate, config: &str) {
    for faulty in faulty(config) {
        assert_ne!(faulty, config);
        let refused = || gate.metric("tollgate_config_reloads_total", &["result=\"refused\""]);
        let before = refused();
        gate.reconfigure(&faulty);
        gate.signal(libc::SIGHUP);
        testing::eventually("it is refused", || refused() > before);
        clean(&format!("the log after {faulty}"), &gate.log());
        clean("/config", &gate.admin("/config").text());
    }
}

fn run(arguments: &[&str], directory: &std::path::Path, environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(Gate::binary());
    command
        .args(arguments)
        .current_dir(directory)
        .env("TOLLGATE_LOG", "trace");
    command
        .envs(environment.iter().copied())
        .output()
        .expect("the binary runs")
}

fn clean_output(what: &str, output: &Output) {
    clean(what, &String::from_utf8_lossy(&output.stdout));
    clean(what, &String::from_utf8_lossy(&output.stderr));
}

#[test]
fn check_prints_no_secret_whatever_the_fault() {
    let directory = tempfile::tempdir().expect("a directory");
    let secret = format!("{CANARY}-own");
    write_private(&directory.path().join("key"), &secret);
    let key = format!("-----BEGIN PRIVATE KEY-----\n{CANARY}{CANARY}\n-----END PRIVATE KEY-----\n");
    write_private(&directory.path().join("key.pem"), key);
    let good = format!(
        "backends:\n  by-inline: {{ url: http://127.0.0.1:9/v1, credential: {{ inline: {CANARY}-own-inline }} }}\n  \
         by-file: {{ url: http://127.0.0.1:9/v1, credential: {{ file: key }} }}\n\
         routes: [ {{ workload: w, backend: [by-inline, by-file] }} ]\n"
    );
    let environment = [
        ("OPENAI_API_KEY", secret.as_str()),
        ("ANTHROPIC_API_KEY", secret.as_str()),
        ("OWN", secret.as_str()),
    ];
    let check = |text: &str, code: i32| {
        std::fs::write(directory.path().join("t.yaml"), text).expect("a file");
        let output = run(&["check", "-c", "t.yaml"], directory.path(), &environment);
        assert_eq!(output.status.code(), Some(code), "{text}\n{output:?}");
        clean_output(text, &output);
        if code == 1 {
            let output = run(&["run", "-c", "t.yaml"], directory.path(), &environment);
            assert_eq!(output.status.code(), Some(1), "{text}\n{output:?}");
            clean_output(text, &output);
        }
    };
    check(&good, 0);
    let faulty = faulty(&good);
    for text in &faulty {
        check(text, 1);
    }
    check(
        &format!("listen: {{ tls: {{ certificate: key.pem, key: key.pem }} }}\n{good}"),
        1,
    );
    check(
        &format!("listen: {{ tls: {{ certificate: key, key: key }} }}\n{good}"),
        1,
    );
    check(
        &format!("listen: {{ data: \"${{OWN}}\" }}\n{good}").replace("data", "admin"),
        1,
    );
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["check"],
        &["version"],
        &["check", "--help"],
    ] {
        clean_output("help", &run(arguments, directory.path(), &environment));
    }
}

/// A call over HTTP/2 with prior knowledge: the status, and the headers and body as text.
fn call_h2(gate: std::net::SocketAddr, headers: &[(&str, &str)], body: String) -> (u16, String) {
    use http_body_util::{BodyExt, Full};
    use hyper_util::rt::{TokioExecutor, TokioIo};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let exchange = async {
        let tcp = tokio::net::TcpStream::connect(gate)
            .await
            .expect("the gate listens");
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tcp))
                .await
                .expect("a handshake");
        tokio::spawn(connection);
        let mut request = http::Request::post("http://gate.test/v1/chat/completions")
            .header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request
            .body(Full::new(bytes::Bytes::from(body)))
            .expect("a request");
        let response = sender.send_request(request).await.expect("a response");
        let (head, body) = response.into_parts();
        let body = body
            .collect()
            .await
            .map(|b| b.to_bytes())
            .unwrap_or_default();
        let text = format!("{:?} {}", head.headers, String::from_utf8_lossy(&body));
        (head.status.as_u16(), text)
    };
    runtime.expect("a runtime").block_on(exchange)
}

#[test]
fn http_2_logs_no_more_than_http_1() {
    let upstream = faults();
    let behind = format!(
        "backends: {{ up: {{ url: http://{}/v1, credential: {{ inline: {CANARY}-own-behind }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\nidentity: {{ default: w }}\n",
        upstream.address
    );
    let trace = [("TOLLGATE_LOG", "trace")];
    let behind = Gate::start_env(&behind, &[], &trace);
    let before = format!(
        "backends: {{ up: {{ url: http://{}/v1, protocol: http2, credential: {{ file: key }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        behind.data
    );
    let secret = format!("{CANARY}-own-file");
    let before = Gate::start_env(&before, &[("key", secret.as_bytes())], &trace);
    let key = format!("{CANARY}-client-key");
    let key = key.as_str();
    let mut exchanges = 0;
    for headers in [
        &[("x-workload-app", "w"), ("authorization", key)][..],
        &[("x-workload-app", "w"), ("x-api-key", key)],
        &[
            ("x-workload-app", "w"),
            ("cookie", key),
            ("x-goog-api-key", key),
        ],
        &[
            ("x-workload-app", "w"),
            ("api-key", key),
            ("x-api-key", key),
        ],
        &[("x-workload-app", key)],
        &[("x-workload-app", "w"), ("x-workload-app", key)],
    ] {
        for model in ["good", "says-401", "html", "malformed-status", "resets"] {
            let (status, text) = call_h2(before.data, headers, prompt(model, false));
            assert!(
                [200, 400, 404, 502, 503].contains(&status),
                "{model}: {status} {text}"
            );
            clean(
                &format!("an answer over HTTP/2: {headers:?} {model}"),
                &text,
            );
            exchanges += 1;
        }
    }
    let reached = upstream
        .seen()
        .iter()
        .filter(|s| s.head.contains("own-behind"))
        .count();
    assert!(reached >= 15, "{reached} calls went through both gates");
    assert_eq!(before.records(exchanges).len(), exchanges);
    for gate in [&before, &behind] {
        assert!(
            gate.log().contains("TRACE h2"),
            "HTTP/2 was spoken, and logged"
        );
        clean("the log", &gate.log());
        clean(
            "the access log",
            &std::fs::read_to_string(gate.path("access.jsonl")).expect("a log"),
        );
        clean("/metrics", &gate.metrics());
    }
}

#[test]
fn tls_keys_and_tls_traffic_do_not_leak() {
    let made = rcgen::generate_simple_self_signed(vec!["gate.test".into()]).expect("a certificate");
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let upstream = faults();
    let config = config(&upstream, untrusted()).replace("by-variable: { url", "by-v: { url");
    let config: String = config
        .lines()
        .filter(|l| !l.contains("by-v") && !l.contains("by-env"))
        .map(|l| format!("{l}\n"))
        .collect();
    let secret = format!("{CANARY}-own-file");
    let files = [
        ("cert.pem", certificate.as_bytes()),
        ("key.pem", key.as_bytes()),
        ("key", secret.as_bytes()),
    ];
    let gate = Gate::start_tls(&config, &files);
    let failed = || gate.metric("tollgate_config_last_reload_success", &[]) == 0.0;
    for broken in [&key.as_bytes()[..key.len() / 2], secret.as_bytes(), b""] {
        gate.replace("key.pem", broken);
        testing::eventually("a broken key is refused", failed);
        gate.replace("key.pem", key.as_bytes());
        testing::eventually("the repaired key is taken", || !failed());
    }
    // Clear text with a credential on the TLS port.
    let request = post(
        "/v1/chat/completions",
        &[&format!("x-api-key: {CANARY}-client-key")],
        "{}",
    );
    let mut connection = Connection::open(gate.data);
    connection.send(&request);
    while connection.more() {}
    clean(
        "the answer to clear text",
        &String::from_utf8_lossy(connection.unread()),
    );
    let config = gate.admin("/config").text();
    let (log, metrics) = (gate.log(), gate.metrics());
    for line in key.lines().filter(|l| !l.starts_with('-')) {
        for text in [&config, &log, &metrics] {
            assert!(
                !text.contains(line) && !text.contains(&line[..20.min(line.len())]),
                "the key is shown"
            );
        }
    }
    clean("the log", &log);
    clean("/config", &config);
    clean("/metrics", &metrics);
}

#[test]
fn no_core_file_is_written() {
    let core = rlimit::Resource::CORE;
    let hard = core.get_hard().expect("a limit");
    core.set(hard, hard)
        .expect("the soft limit may rise to the hard one");
    let upstream = faults();
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1 }} }}\nroutes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address
    );
    let gate = Gate::start(&config, &[]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", gate.id())).expect("it runs");
    let line = limits
        .lines()
        .find_map(|l| l.strip_prefix("Max core file size"));
    assert_eq!(
        line.and_then(|l| l.split_whitespace().next()),
        Some("0"),
        "{limits}"
    );
}
