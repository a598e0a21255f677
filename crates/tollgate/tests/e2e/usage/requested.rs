//! What is sent upstream: the client's bytes, with the model and `include_usage` spliced in.

use crate::harness::answer::{COMPLETION, json};
use crate::harness::{Connection, Gate, Step, Upstream, post};
use crate::upstream_faults::one;

fn echo() -> Upstream {
    Upstream::start(|_, _| vec![Step::Send(json(200, COMPLETION))])
}

/// Sends each body and asserts what arrives.
fn check(config: impl Fn(&Upstream) -> String, path: &str, cases: &[(&str, &str)]) {
    let upstream = echo();
    let gate = Gate::start(&config(&upstream), &[]);
    let mut connection = Connection::open(gate.data);
    for (sent, arrived) in cases {
        let response = connection.call(&post(path, &["x-workload-app: w"], sent));
        assert_eq!(response.status, 200, "{sent}: {}", response.text());
        let seen = upstream.seen().pop().expect("it arrived");
        assert_eq!(String::from_utf8_lossy(&seen.body), *arrived, "for {sent}");
        assert_eq!(seen.header("content-length"), [arrived.len().to_string()]);
    }
}

const WANTED: &str = r#""stream_options":{"include_usage":true}"#;

#[test]
fn include_usage_is_spliced_into_streams_that_lack_it() {
    let with = |rest: &str| format!("{{{WANTED},{rest}}}");
    let absent = r#""model":"m","stream":true,"messages":[]"#;
    let odd =
        "\n  \"stream\" :\ttrue ,\"x\":\"\\u00e9\u{e9}\", \"model\":\"m\" ,\"top_p\":1.50e0\r\n";
    let cases = [
        (format!("{{{absent}}}"), with(absent)),
        (format!("{{{odd}}}"), with(odd)),
        (
            r#"{"model":"m","stream":true,"stream_options":null,"messages":[]}"#.to_owned(),
            format!(r#"{{"model":"m","stream":true,{WANTED},"messages":[]}}"#),
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{},"messages":[]}"#.to_owned(),
            format!(r#"{{"model":"m","stream":true,{WANTED},"messages":[]}}"#),
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{ "include_usage" : false }}"#.to_owned(),
            r#"{"model":"m","stream":true,"stream_options":{ "include_usage" : true }}"#.to_owned(),
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":null,"x":1}}"#.to_owned(),
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true,"x":1}}"#.to_owned(),
        ),
        (
            r#"{"model":"m","stream":true,"stream_options":{"x":{"include_usage":false}}}"#.to_owned(),
            r#"{"model":"m","stream":true,"stream_options":{"include_usage":true,"x":{"include_usage":false}}}"#
                .to_owned(),
        ),
    ];
    let cases: Vec<_> = cases
        .iter()
        .map(|(a, b)| (a.as_str(), b.as_str()))
        .collect();
    check(|up| one(up.address), "/v1/chat/completions", &cases);
    check(|up| one(up.address), "/v1/completions", &cases);
}

#[test]
fn a_body_that_needs_no_edit_is_forwarded_byte_for_byte() {
    let same = [
        r#"{"model":"m","stream":true,"stream_options":{"include_usage":true}}"#,
        r#"{"model":"m","stream":false}"#,
        r#"{"model":"m","stream":null,"messages":[{"content":"\ud83d\ude00"}]}"#,
        "  {\"model\":\"m\" , \"max_tokens\":3,\"x\":[1e-7,-0.0,12345678901234567890]}\r\n",
        r#"{"model":"m","messages":[{"role":"user","content":"\"stream\":true"}]}"#,
    ];
    let cases: Vec<_> = same.iter().map(|s| (*s, *s)).collect();
    check(|up| one(up.address), "/v1/chat/completions", &cases);
    // The Responses API always reports usage, and embeddings have no streams.
    let stream = r#"{"model":"m","stream":true,"input":"x"}"#;
    check(|up| one(up.address), "/v1/responses", &[(stream, stream)]);
    let input = r#"{"model":"m","input":["a","b"]}"#;
    check(|up| one(up.address), "/v1/embeddings", &[(input, input)]);
}

#[test]
fn a_model_override_is_spliced_in_and_nothing_else_changes() {
    let config = |up: &Upstream| {
        format!(
            "backends: {{ up: {{ url: http://{}/v1 }} }}\n\
             routes: [ {{ workload: w, backend: up, model: \"org/new:1\" }} ]\n",
            up.address
        )
    };
    let cases = [
        (
            "{ \"x\" :1, \"model\" : \"old\" ,\"messages\":[{\"model\":\"old\"}] }\n",
            "{ \"x\" :1, \"model\" : \"org/new:1\" ,\"messages\":[{\"model\":\"old\"}] }\n",
        ),
        (r#"{"model":"org/new:1"}"#, r#"{"model":"org/new:1"}"#),
        (
            r#"{"messages":[]}"#,
            r#"{"model":"org/new:1","messages":[]}"#,
        ),
        (
            r#"{"model":"old","stream":true}"#,
            r#"{"stream_options":{"include_usage":true},"model":"org/new:1","stream":true}"#,
        ),
    ];
    check(config, "/v1/chat/completions", &cases);
}

#[test]
fn a_large_body_is_edited_in_place() {
    let config = |up: &Upstream| {
        format!(
            "backends: {{ up: {{ url: http://{}/v1 }} }}\n\
             routes: [ {{ workload: w, backend: up, model: new }} ]\n",
            up.address
        )
    };
    let body = |model: &str, first: &str| {
        let prompt = "Ω".repeat(4 << 20);
        format!("{{{first}\"messages\":[\"{prompt}\"],\"model\":\"{model}\",\"stream\":true}}")
    };
    let upstream = echo();
    let gate = Gate::start(&config(&upstream), &[]);
    let sent = body("old", "");
    let response = gate.call(&post("/v1/chat/completions", &["x-workload-app: w"], &sent));
    assert_eq!(response.status, 200, "{}", response.text());
    let seen = upstream.seen().pop().expect("it arrived");
    assert!(
        seen.body == body("new", &format!("{WANTED},")).as_bytes(),
        "other bytes arrived"
    );
}
