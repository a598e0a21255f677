//! Numbers and stream options: B6 and B11.
//!
//! Not here: usage that the engine reports.

use engine::{EngineConfig, spawn_thread};

use crate::fixture::{After, Fixture, IDENTITY, call, config};
use crate::harness::{Gate, Step, Upstream, post};

#[test]
fn b6_numbers_that_policy_does_not_read_pass_unchanged() {
    let fixture = Fixture::new();
    let digits = "9".repeat(300);
    for number in [
        "1e400",
        "-0",
        "9007199254740993",
        "0.1e-400",
        "1E+2",
        &digits,
    ] {
        let body =
            format!(r#"{{"model":"m","temperature":{number},"seed": {number} ,"messages":[]}}"#);
        let seen = fixture.forwards(number, &call(&body));
        assert_eq!(seen.body, body.as_bytes(), "{number}");
    }
    fixture.end();
}

#[test]
fn b6_numbers_that_policy_reads_must_be_integers_in_range() {
    let fixture = Fixture::new();
    let digits = "9".repeat(300);
    let members = [
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "n",
    ];
    let rows = [
        ("-1", "out_of_range"),
        ("-0", "out_of_range"),
        ("4294967296", "out_of_range"),
        ("9007199254740993", "out_of_range"),
        (&digits, "out_of_range"),
        ("1.5", "wrong_type"),
        ("1e2", "wrong_type"),
        ("\"10\"", "wrong_type"),
        ("true", "wrong_type"),
        ("[1]", "wrong_type"),
    ];
    for member in members {
        for (value, code) in rows {
            let body = format!(r#"{{"model":"m","{member}":{value},"messages":[]}}"#);
            let response = fixture.refuses(&body, &call(&body), 400, code, After::Kept);
            assert_eq!(response.json()["error"]["param"], member, "{body}");
        }
        for value in ["0", "10", "4294967295", "null"] {
            let body = format!(r#"{{"model":"m","{member}":{value},"messages":[]}}"#);
            assert_eq!(fixture.forwards(&body, &call(&body)).body, body.as_bytes());
        }
    }
    fixture.end();
}

#[test]
fn b6_flags_must_be_booleans() {
    let fixture = Fixture::new();
    for body in [
        r#"{"stream":"true"}"#,
        r#"{"stream":1}"#,
        r#"{"stream_options":[]}"#,
        r#"{"stream_options":true}"#,
        r#"{"stream_options":{"include_usage":"yes"}}"#,
    ] {
        fixture.refuses(body, &call(body), 400, "wrong_type", After::Kept);
    }
    fixture.end();
}

#[test]
fn b11_include_usage_is_added_and_the_usage_event_withheld_from_a_client_that_did_not_ask() {
    let engine = spawn_thread(EngineConfig {
        inspect: true,
        ttft: std::time::Duration::ZERO,
        inter_token: std::time::Duration::ZERO,
        ..EngineConfig::default()
    })
    .expect("an engine");
    let gate = Gate::start(&config(engine.addr(), ""), &[]);
    let rows = [
        ("", false),
        (r#","stream_options":null"#, false),
        (r#","stream_options":{}"#, false),
        (r#","stream_options":{"include_usage":false}"#, false),
        (r#","stream_options":{"include_usage":null}"#, false),
        (r#","stream_options":{"include_usage":true}"#, true),
    ];
    for (n, (options, asked)) in rows.into_iter().enumerate() {
        let body = format!(
            r#"{{"model":"gpt-oss-120b","stream":true,"max_tokens":5,"messages":[{{"role":"user","content":"Hello"}}]{options}}}"#
        );
        let response = gate.call(&post("/v1/chat/completions", &[IDENTITY], &body));
        assert_eq!(response.status, 200, "{options}: {}", response.text());
        assert!(response.whole, "{options}");
        let text = response.text();
        assert!(text.ends_with("data: [DONE]\n\n"), "{options}: {text}");
        let has_usage = text.contains(r#""completion_tokens""#);
        assert_eq!(has_usage, asked, "{options}: {text}");
        let record = gate.records(n + 1).swap_remove(n);
        assert_eq!(
            record["completion_source"], "reported",
            "{options}: {record}"
        );
        assert_eq!(record["completion_tokens"], 5, "{options}: {record}");
    }
    let inspected = crate::harness::Connection::open(engine.addr())
        .call(b"GET /_engine/requests HTTP/1.1\r\nhost: e\r\n\r\n");
    let requests = inspected.json()["requests"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    assert_eq!(requests.len(), rows.len());
    for request in requests {
        let body = request["body"].as_str().expect("a body");
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(body["stream_options"]["include_usage"], true, "{body}");
    }
}

#[test]
fn b11_include_usage_is_added_to_a_stream_with_several_choices() {
    let upstream = Upstream::start(|_, _| {
        let events = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
            data: {\"choices\":[{\"index\":127,\"delta\":{\"content\":\"x\"}}]}\n\n\
            data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":128,\"total_tokens\":131}}\n\n\
            data: [DONE]\n\n";
        vec![Step::Send(events.into()), Step::Close]
    });
    let gate = Gate::start(&config(upstream.address, ""), &[]);
    let response = gate.call(&call(
        r#"{"model":"m","stream":true,"n":128,"messages":[]}"#,
    ));
    let kept =
        "data: {\"choices\":[{\"index\":127,\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n";
    assert_eq!((response.status, response.text().as_str()), (200, kept));
    let sent = upstream.seen()[0].json();
    assert_eq!(
        (&sent["n"], &sent["stream_options"]["include_usage"]),
        (&128.into(), &true.into())
    );
    assert_eq!(gate.records(1)[0]["completion_tokens"], 128);
}
