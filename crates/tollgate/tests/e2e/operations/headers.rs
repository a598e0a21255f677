//! Headers and query parameters: only those on a list are forwarded.

use super::{passed, refused, request};
use crate::harness::{Gate, Step, Upstream, chat, post};

const BODY: &str = r#"{"id":"c","choices":[]}"#;

/// Answers with headers that control proxies and browsers, among others.
fn upstream() -> Upstream {
    Upstream::start(|_, _| {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             x-accel-redirect: /secret\r\nx-accel-expires: 1\r\nx-sendfile: /etc/passwd\r\n\
             x-reproxy-url: http://h\r\naccess-control-allow-origin: *\r\nrefresh: 0\r\nlink: <x>\r\n\
             clear-site-data: \"*\"\r\nx-anything: yes\r\nopenai-processing-ms: 5\r\n\
             x-prefill-ms: 7\r\nretry-after-ms: 3\r\ncontent-disposition: inline\r\n\r\n{BODY}",
            BODY.len()
        );
        vec![Step::Send(head.into())]
    })
}

/// A gate whose route has these further fields.
fn gate(upstream: &Upstream, more: &str) -> Gate {
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1, credential: {{ inline: ours }} }} }}\n\
         routes: [ {{ workload: w, backend: up{more} }} ]\n",
        upstream.address
    );
    Gate::start(&config, &[])
}

#[test]
fn only_listed_headers_are_forwarded_in_either_direction() {
    let upstream = upstream();
    let gate = gate(&upstream, "");
    let kept = [
        "accept: application/json",
        "user-agent: OpenAI/Python 2",
        "openai-beta: assistants=v2",
        "idempotency-key: i-1",
        "x-stainless-lang: python",
    ];
    let dropped = [
        "x-original-url: /admin",
        "x-rewrite-url: /admin",
        "x-http-method-override: DELETE",
        "x-http-method: DELETE",
        "x-method-override: DELETE",
        "true-client-ip: 10.0.0.1",
        "x-client-ip: 10.0.0.1",
        "cf-connecting-ip: 10.0.0.1",
        "x-client-cert: pem",
        "ssl-client-cert: pem",
        "x-passwd: p",
        "x-remote-user: root",
        "x-forwarded-user: root",
        "x-anything: yes",
        "x-title: A title",
        "anthropic-version: 2023-06-01",
        "accept-language: de",
        "referer: http://h/?k=v",
        "x_title: no",
        "mcp-session-id: 1",
        "last-event-id: 1",
    ];
    let lines: Vec<&str> = ["x-workload-app: w"]
        .into_iter()
        .chain(kept)
        .chain(dropped)
        .collect();
    let call = post("/v1/chat/completions", &lines, &chat("m", false));
    let (seen, response) = passed(&gate, &upstream, &call);
    for line in kept {
        let (name, value) = line.split_once(": ").expect("a header");
        assert_eq!(seen.header(name), [value], "{}", seen.head);
    }
    for line in dropped {
        let (name, _) = line.split_once(": ").expect("a header");
        assert!(seen.header(name).is_empty(), "{name}: {}", seen.head);
    }
    for (name, value) in [
        ("content-type", "application/json"),
        ("openai-processing-ms", "5"),
        ("retry-after-ms", "3"),
        ("content-disposition", "inline"),
    ] {
        assert_eq!(response.header(name), Some(value), "{name}");
    }
    for name in [
        "x-accel-redirect",
        "x-accel-expires",
        "x-sendfile",
        "x-reproxy-url",
        "access-control-allow-origin",
        "refresh",
        "link",
        "clear-site-data",
        "x-anything",
        "x-prefill-ms",
    ] {
        assert_eq!(response.header(name), None, "{name}");
    }
}

#[test]
fn a_route_can_add_headers_to_forward() {
    let upstream = upstream();
    let lists = ", forward_headers: [X-Title, anthropic-version], return_headers: x-prefill-ms";
    let gate = gate(&upstream, lists);
    let lines = [
        "x-workload-app: w",
        "x-title: A title",
        "anthropic-version: 2023-06-01",
        "anthropic-beta: b",
    ];
    let call = post("/v1/chat/completions", &lines, &chat("m", false));
    let (seen, response) = passed(&gate, &upstream, &call);
    assert_eq!(seen.header("x-title"), ["A title"]);
    assert_eq!(seen.header("anthropic-version"), ["2023-06-01"]);
    assert!(seen.header("anthropic-beta").is_empty());
    assert_eq!(response.header("x-prefill-ms"), Some("7"));
    assert_eq!(response.header("x-anything"), None);
    let lines = [
        "x-workload-app: w",
        "connection: x-title",
        "x-title: A title",
    ];
    let call = post("/v1/chat/completions", &lines, &chat("m", false));
    let (seen, _) = passed(&gate, &upstream, &call);
    assert!(seen.header("x-title").is_empty(), "{}", seen.head);
}

#[test]
fn only_the_query_parameters_of_an_operation_are_forwarded() {
    let upstream = upstream();
    let gate = gate(&upstream, "");
    let target =
        |seen: &crate::harness::Seen| seen.head.split(' ').nth(1).expect("a target").to_owned();
    let posted = [
        ("?model=other&_method=GET&stream=true", ""),
        ("?api-version=2024-10-21&x=1", "?api-version=2024-10-21"),
        ("?beta=true&key=k", "?beta=true"),
        ("?Beta=true&%62eta=true", ""),
        ("?", ""),
    ];
    for (sent, arrived) in posted {
        let path = format!("/v1/chat/completions{sent}");
        let call = post(&path, &["x-workload-app: w"], &chat("m", false));
        let (seen, _) = passed(&gate, &upstream, &call);
        assert_eq!(
            target(&seen),
            format!("/v1/chat/completions{arrived}"),
            "{sent}"
        );
    }
    let hidden = post(
        "/v1/chat/completions%3Fbeta=true",
        &["x-workload-app: w"],
        "{}",
    );
    refused(&gate, &upstream, &hidden, 404, "operation_not_allowed");
}

#[test]
fn a_listed_call_keeps_its_pagination_parameters() {
    let upstream = upstream();
    let gate = gate(&upstream, ", unread: [ { call: GET /v1/files } ]");
    let target =
        |seen: &crate::harness::Seen| seen.head.split(' ').nth(1).expect("a target").to_owned();
    let listed = [
        (
            "?limit=5&after=file-1&order=asc",
            "?limit=5&after=file-1&order=asc",
        ),
        ("?limit=5&_method=DELETE&x=/../;y", "?limit=5"),
        ("?purpose=a%20b", "?purpose=a%20b"),
    ];
    for (sent, arrived) in listed {
        let call = request("GET", &format!("/v1/files{sent}"), "w");
        let (seen, _) = passed(&gate, &upstream, &call);
        assert_eq!(target(&seen), format!("/v1/files{arrived}"), "{sent}");
    }
}

#[test]
fn the_headers_of_anthropics_api_go_with_its_calls_and_a_backend_may_narrow_them() {
    let upstream = upstream();
    let lines = [
        "x-workload-app: w",
        "anthropic-version: 2023-06-01",
        "anthropic-beta: context-1m-2025-08-07,interleaved-thinking-2025-05-14",
        "anthropic-dangerous-direct-browser-access: true",
    ];
    let body = r#"{"model":"m","max_tokens":9,"messages":[]}"#;
    for (api_headers, version, beta) in [
        ("", true, true),
        (", api_headers: [anthropic-version]", true, false),
        (", api_headers: none", false, false),
    ] {
        let config = format!(
            "backends: {{ up: {{ url: http://{}/v1{api_headers} }} }}\n\
             routes: [ {{ workload: w, backend: up }} ]\n",
            upstream.address
        );
        let gate = Gate::start(&config, &[]);
        for path in ["/v1/messages", "/v1/messages/count_tokens"] {
            let (seen, _) = passed(&gate, &upstream, &post(path, &lines, body));
            for (line, passes) in lines[1..].iter().zip([version, beta, false]) {
                let (name, value) = line.split_once(": ").expect("a header");
                let expected: &[&str] = if passes { &[value] } else { &[] };
                assert_eq!(seen.header(name), expected, "{path}{api_headers} {name}");
            }
        }
    }
}

/// Values of a header that a backend does not know fail its calls: it names those that pass.
#[test]
fn of_anthropic_beta_a_backend_may_name_the_values_that_pass() {
    let upstream = upstream();
    let body = r#"{"model":"m","max_tokens":9,"messages":[]}"#;
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1, anthropic_betas: [context-1m-2025-08-07, \"interleaved-*\"] }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n",
        upstream.address
    );
    let gate = Gate::start(&config, &[]);
    for (sent, passes) in [
        (
            &["context-1m-2025-08-07,interleaved-thinking-2025-05-14"][..],
            &["context-1m-2025-08-07,interleaved-thinking-2025-05-14"][..],
        ),
        (
            &[
                "files-api-2025-04-14, interleaved-thinking-2025-05-14",
                "context-1m-2025-08-07",
            ],
            &["interleaved-thinking-2025-05-14,context-1m-2025-08-07"],
        ),
        (&["context-1m-2025-08-07x,Interleaved-thinking"], &[]),
        (&[], &[]),
    ] {
        let lines: Vec<String> = sent
            .iter()
            .map(|of| format!("anthropic-beta: {of}"))
            .collect();
        let mut lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        lines.push("x-workload-app: w");
        let (seen, _) = passed(&gate, &upstream, &post("/v1/messages", &lines, body));
        assert_eq!(seen.header("anthropic-beta"), passes, "{sent:?}");
        // To another API's calls the header says nothing, and none of it passes.
        let (seen, _) = passed(
            &gate,
            &upstream,
            &post("/v1/chat/completions", &lines, body),
        );
        assert!(seen.header("anthropic-beta").is_empty(), "{sent:?}");
    }
    // Calls that lost a value are counted, each once.
    let name = "tollgate_translation_dropped_total";
    let counted = r#"{workload="w",backend="up",model="other"} 2"#;
    let page = gate.metrics();
    assert!(page.contains(&format!("{name}{counted}")), "{page}");
}
