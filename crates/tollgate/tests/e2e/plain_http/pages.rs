//! `cors` of a route of plain HTTP: what a page in a browser is told, and what its service hears of that.

use super::{engine, request, service};
use crate::harness::{Connection, Gate, Response};

#[test]
fn a_page_that_a_route_names_may_read_its_answers_and_no_other() {
    let (service, engine) = (service(), engine());
    let text = format!(
        "backends:\n  engine: {{ url: http://{}/v1 }}\n  web: {{ serves: http, url: http://{} }}\n\
         routes:\n  - {{ workload: w, backend: engine }}\n  \
         - name: open\n    workload: w\n    match: {{ path: /open/* }}\n    backend: web\n    \
         cors: {{ origins: [\"https://app.example\", \"https://*.corp.example\"], methods: [GET, PUT], headers: \"*\", expose: x-a, credentials: true, max_age: 1m }}\n  \
         - {{ name: shut, workload: w, match: {{ path: /shut/* }}, backend: web }}\n",
        engine.address, service.address
    );
    let gate = Gate::start(&text, &[]);
    let call = |method: &str, path: &str, fields: &[&str]| -> Response {
        Connection::open(gate.data).call(&request(method, path, fields))
    };
    let told = |answer: &Response| {
        answer
            .header("access-control-allow-origin")
            .map(str::to_owned)
    };
    let asks = [
        "access-control-request-method: PUT",
        "access-control-request-headers: x-b",
    ];
    // A browser brings nothing with its question, and the service is not asked.
    let question = format!(
        "OPTIONS /open/a HTTP/1.1\r\nhost: g\r\norigin: https://a.corp.example\r\n{}\r\n{}\r\n\r\n",
        asks[0], asks[1]
    );
    let answer = Connection::open(gate.data).call(question.as_bytes());
    assert_eq!(
        (answer.status, told(&answer).as_deref()),
        (204, Some("https://a.corp.example"))
    );
    let says = |name: &str| answer.header(name).unwrap_or_default().to_owned();
    assert_eq!(says("access-control-allow-methods"), "GET, PUT");
    assert_eq!(says("access-control-allow-headers"), "x-b");
    assert_eq!(says("access-control-max-age"), "60");
    assert_eq!(says("access-control-allow-credentials"), "true");
    assert!(service.seen().is_empty());
    let mine = "origin: https://app.example";
    let answer = call("PUT", "/open/a", &[mine, "content-length: 0"]);
    assert_eq!(
        (answer.status, told(&answer).as_deref()),
        (200, Some("https://app.example"))
    );
    assert_eq!(answer.header("access-control-expose-headers"), Some("x-a"));
    assert_eq!(answer.header("vary"), Some("origin"));
    assert_eq!(service.seen().len(), 1);
    // Others are told nothing, here and elsewhere.
    let other = "origin: https://corp.example";
    for (method, path, fields) in [
        ("GET", "/open/a", &[other][..]),
        ("OPTIONS", "/open/a", &[other, asks[0]]),
        ("GET", "/shut/a", &[mine]),
        ("OPTIONS", "/shut/a", &[mine, asks[0]]),
    ] {
        let answer = call(method, path, fields);
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (403, "origin_not_allowed"),
            "{method} {path}"
        );
        assert_eq!(told(&answer), None);
    }
    assert_eq!(service.seen().len(), 1);
    // Who is no page is served as before.
    assert_eq!(
        (
            call("GET", "/open/a", &[]).status,
            told(&call("GET", "/open/a", &[]))
        ),
        (200, None)
    );
}
