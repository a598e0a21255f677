//! Bills that a client or an engine would make smaller: what may be true of a report is charged, and what came of a stream without one.

use serde_json::{Value, json};

use crate::harness::answer::{chunk, delta, events, events_head, json as answer};
use crate::harness::{Gate, Seen, Step, Upstream, post};

const WHO: &str = "x-workload-app: w";
const GEMINI: &str = r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#;

fn gate(upstream: &Upstream) -> Gate {
    let root = format!("http://{}", upstream.address);
    let config = format!(
        "backends:\n  engine: {{ url: {root}/v1 }}\n  google: {{ url: {root}/v1beta, dialect: gemini, credential: {{ inline: goog-key }} }}\n\
         routes:\n  - {{ workload: w, match: {{ model: \"g*\" }}, backend: google, retries: {{ attempts: 1 }} }}\n  - {{ workload: w, backend: engine }}\n"
    );
    Gate::start(&config, &[])
}

fn charged(record: &Value) -> [&Value; 4] {
    [
        "prompt_tokens",
        "prompt_source",
        "completion_tokens",
        "completion_source",
    ]
    .map(|name| &record[name])
}

fn answering(body: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static) -> Upstream {
    Upstream::start(move |_, seen| vec![Step::Send(body(seen))])
}

#[test]
fn a_member_of_the_calls_makes_no_report_worth_less() {
    let upstream = answering(|_| {
        answer(
            200,
            r#"{"choices":[{"message":{"role":"assistant","content":"ok"}}],"usage":{"prompt_tokens":70,"completion_tokens":20000,"total_tokens":20070}}"#,
        )
    });
    let gate = gate(&upstream);
    let bodies = [
        r#""n_predict":1,"include_reasoning":false"#,
        r#""max_completion_tokens":1"#,
        r#""min_tokens":5000,"max_tokens":1"#,
        r#""beam_width":16,"max_tokens":10"#,
    ];
    for members in bodies {
        let body = format!(r#"{{"model":"m",{members},"messages":[]}}"#);
        assert_eq!(
            gate.call(&post("/v1/chat/completions", &[WHO], &body))
                .status,
            200
        );
    }
    for record in gate.records(bodies.len()) {
        let expected = [
            &json!(70),
            &json!("reported"),
            &json!(20_000),
            &json!("reported"),
        ];
        assert_eq!(charged(&record), expected, "{record}");
        assert_eq!(record["usage_doubtful"], true, "{record}");
    }
}

#[test]
fn reasoning_on_top_of_a_capped_completion_is_charged_and_not_doubted() {
    let upstream = answering(|_| {
        answer(
            200,
            r#"{"choices":[],"usage":{"prompt_tokens":32,"completion_tokens":9,"total_tokens":5041,"completion_tokens_details":{"reasoning_tokens":5000}}}"#,
        )
    });
    let gate = gate(&upstream);
    let body = r#"{"model":"m","max_tokens":100,"messages":[]}"#;
    gate.call(&post("/v1/chat/completions", &[WHO], body));
    let record = gate.records(1).remove(0);
    let expected = [
        &json!(32),
        &json!("reported"),
        &json!(5009),
        &json!("reported"),
    ];
    assert_eq!(charged(&record), expected, "{record}");
    assert_ne!(record["usage_doubtful"], true, "{record}");
}

#[test]
fn a_stream_without_a_report_is_charged_by_what_came_of_it() {
    let upstream = answering(|seen| match seen.head.contains("POST /v1/chat") {
        true if seen.body.windows(5).any(|part| part == b"\"big\"") => {
            events(delta(&"lorem ipsum dolor ".repeat(1000)).as_bytes())
        }
        true => events(delta("word").repeat(500).as_bytes()),
        false => Vec::new(),
    });
    let gate = gate(&upstream);
    for (n, (model, cap, least, most)) in [("big", 10_000, 4500, 4503), ("many", 1, 500, 502)]
        .into_iter()
        .enumerate()
    {
        let body =
            format!(r#"{{"model":"{model}","stream":true,"max_tokens":{cap},"messages":[]}}"#);
        gate.call(&post("/v1/chat/completions", &[WHO], &body));
        let record = gate.records(n + 1).remove(n);
        let completion = record["completion_tokens"].as_u64().expect("a count");
        assert!((least..=most).contains(&completion), "{record}");
        assert_eq!(record["completion_source"], "estimated", "{record}");
    }
}

#[test]
fn a_translated_stream_that_breaks_is_charged_what_it_had_told() {
    let told = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"x\"}]}}],\"usageMetadata\":{\"promptTokenCount\":100,\"candidatesTokenCount\":10,\"thoughtsTokenCount\":9000,\"totalTokenCount\":9110}}\r\n\r\n";
    let upstream = Upstream::start(move |_, _| {
        vec![
            Step::Send([events_head(), chunk(told.as_bytes())].concat()),
            Step::Close,
        ]
    });
    let gate = gate(&upstream);
    let body = r#"{"model":"g","stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    gate.call(&post("/v1/chat/completions", &[WHO], body));
    let record = gate.records(1).remove(0);
    let expected = [
        &json!(100),
        &json!("reported"),
        &json!(9010),
        &json!("reported"),
    ];
    assert_eq!(charged(&record), expected, "{record}");
}

#[test]
fn a_key_that_google_refuses_with_400_is_the_gates_and_an_unread_form_is_not_asked_for() {
    let upstream = answering(|_| {
        answer(
            400,
            r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#,
        )
    });
    let gate = gate(&upstream);
    for target in [
        "/v1beta/models/g:generateContent?alt=proto",
        "/v1beta/models/g:generateContent?alt=json%3Benum-encoding%3Dint",
        "/v1beta/models/g:generateContent?alt=media",
    ] {
        let response = gate.call(&post(target, &[WHO], GEMINI));
        assert_eq!(response.status, 502, "{}", response.text());
        assert!(response.text().contains("UPSTREAM_CREDENTIAL_REFUSED"));
    }
    for seen in upstream.seen() {
        assert_eq!(seen.path(), "/v1beta/models/g:generateContent");
    }
    for record in gate.records(3) {
        assert_eq!(record["code"], "upstream_credential_refused", "{record}");
    }
}
