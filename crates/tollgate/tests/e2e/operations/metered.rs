//! Known operations: how each is metered, and which are free.

use testing::eventually;

use super::{passed, refused};
use crate::harness::answer::{json, whole};
use crate::harness::{Gate, Step, Upstream, post};

/// Answers each path as its provider does.
fn provider() -> Upstream {
    Upstream::start(|_, seen| {
        let path = seen.head.split(' ').nth(1).unwrap_or_default().to_owned();
        let body = match path.as_str() {
            "/v1/messages/count_tokens" | "/v1/responses/input_tokens" => r#"{"input_tokens":14}"#,
            "/v1/moderations" => r#"{"id":"modr-1","results":[]}"#,
            "/v1/rerank" => r#"{"id":"r","results":[],"usage":{"total_tokens":56}}"#,
            "/v1/score" => {
                r#"{"data":[],"usage":{"prompt_tokens":57,"total_tokens":57,"completion_tokens":0}}"#
            }
            "/v1/images/generations" => {
                r#"{"data":[],"usage":{"input_tokens":58,"output_tokens":1056,"total_tokens":1114}}"#
            }
            "/v1/audio/transcriptions" => {
                r#"{"text":"x","usage":{"type":"tokens","input_tokens":59,"input_token_details":{"text_tokens":9,"audio_tokens":50},"output_tokens":7,"total_tokens":66}}"#
            }
            "/v1/audio/speech" => return vec![Step::Send(whole(200, "audio/mpeg", b"ID3"))],
            _ => r#"{"data":[]}"#,
        };
        vec![Step::Send(json(200, body))]
    })
}

fn call(path: &str, workload: &str) -> Vec<u8> {
    let who = format!("x-workload-app: {workload}");
    post(path, &[&who], r#"{"model":"m","input":"twelve bytes"}"#)
}

fn form(path: &str, workload: &str) -> Vec<u8> {
    let who = format!("x-workload-app: {workload}");
    let body = "--b\r\ncontent-disposition: form-data; name=\"model\"\r\n\r\nm\r\n--b--\r\n";
    let bytes = post(path, &[&who], body);
    let text = String::from_utf8(bytes).expect("text");
    text.replace("application/json", "multipart/form-data; boundary=b")
        .into()
}

#[test]
fn known_operations_are_routed_by_model_and_metered_by_reported_usage() {
    let upstream = provider();
    let gate = Gate::start(
        &format!(
            "workers: 1\nbackends: {{ up: {{ url: http://{}/v1 }} }}\n\
             routes: [ {{ workload: w, backend: up, match: {{ model: m }} }}, {{ workload: any, backend: up }} ]\n",
            upstream.address
        ),
        &[],
    );
    let json = [
        ("/v1/moderations", "moderations", "estimated", None),
        ("/v1/rerank", "rerank", "reported", Some(56)),
        ("/v1/score", "rerank", "reported", Some(57)),
        ("/v1/images/generations", "images", "reported", Some(58)),
        ("/v1/audio/speech", "speech", "estimated", None),
        ("/v1/messages/count_tokens", "count_tokens", "unknown", None),
        (
            "/v1/responses/input_tokens",
            "input_tokens",
            "unknown",
            None,
        ),
    ];
    for (path, ..) in json {
        passed(&gate, &upstream, &call(path, "w"));
        let other = String::from_utf8(call(path, "w"))
            .expect("text")
            .replace("\"m\"", "\"x\"");
        refused(&gate, &upstream, other.as_bytes(), 404, "model_not_found");
        let none = String::from_utf8(call(path, "w"))
            .expect("text")
            .replace("\"model\"", "\"modal\"");
        refused(&gate, &upstream, none.as_bytes(), 400, "model_required");
    }
    let records = gate.records(json.len() * 3);
    for (n, (path, operation, source, prompt)) in json.into_iter().enumerate() {
        let record = &records[n * 3];
        assert_eq!(record["operation"], operation, "{path}: {record}");
        match (source, prompt) {
            ("unknown", _) => assert!(record["prompt_tokens"].is_null(), "{path}: {record}"),
            (_, Some(prompt)) => assert_eq!(record["prompt_tokens"], prompt, "{path}: {record}"),
            _ => assert!(
                record["prompt_tokens"].as_u64() > Some(0),
                "{path}: {record}"
            ),
        }
    }
    for path in [
        "/v1/audio/transcriptions",
        "/v1/audio/translations",
        "/v1/images/edits",
        "/v1/images/variations",
    ] {
        let (seen, _) = passed(&gate, &upstream, &form(path, "any"));
        assert!(seen.body.starts_with(b"--b"), "{path}");
        passed(&gate, &upstream, &form(path, "w"));
        let with = |from: &str, to: &str| {
            let text = String::from_utf8(form(path, "w")).expect("text");
            assert_eq!(from.len(), to.len());
            text.replacen(from, to, 1).into_bytes()
        };
        let other = with("\r\nm\r\n", "\r\nx\r\n");
        refused(&gate, &upstream, &other, 404, "model_not_found");
        let none = with("name=\"model\"", "name=\"modal\"");
        refused(&gate, &upstream, &none, 400, "model_required");
        let twofold = with("name=\"model\"", "name=\"Model\"");
        refused(&gate, &upstream, &twofold, 400, "invalid_form");
        let odd = with("boundary=b", "boundary=;");
        refused(&gate, &upstream, &odd, 415, "unsupported_content_type");
    }
    let records = gate.records(json.len() * 3 + 4 * 6);
    let form = &records[json.len() * 3];
    assert_eq!(
        (
            &form["prompt_tokens"],
            &form["completion_tokens"],
            &form["audio_prompt_tokens"],
            &form["model"]
        ),
        (&59.into(), &7.into(), &50.into(), &"m".into()),
        "{form}"
    );
    let edits = records
        .iter()
        .filter(|r| r["operation"] == "image_edits" && r["status"] == 200);
    for record in edits {
        assert_eq!(
            (&record["prompt_source"], &record["prompt_tokens"]),
            (&"estimated".into(), &1.into()),
            "{record}"
        );
    }
}

#[test]
fn a_token_counting_call_costs_one_request_and_no_tokens_or_money() {
    let upstream = provider();
    let dir = tempfile::tempdir().expect("a directory");
    let gate = Gate::start(
        &format!(
            "backends: {{ up: {{ url: http://{}/v1 }} }}\n\
             routes: [ {{ workload: w, backend: up, limits: [ {{ requests: 5, per: 1h }}, {{ tokens: 100, per: 1h }} ] }} ]\n\
             prices: {{ p: {{ input: 1, output: 1 }} }}\n\
             budgets: {{ b: {{ workload: w, money: 1, per: month }} }}\n\
             ledger: {{ path: {} }}\n",
            upstream.address,
            dir.path().join("usage.db").display()
        ),
        &[],
    );
    let left = || gate.metric("tollgate_budget_left", &["budget=\"b\""]);
    let long = format!(r#"{{"model":"m","messages":["{}"]}}"#, "x".repeat(4000));
    for path in ["/v1/messages/count_tokens", "/v1/responses/input_tokens"] {
        let (_, response) = passed(&gate, &upstream, &post(path, &["x-workload-app: w"], &long));
        assert_eq!(response.header("x-ratelimit-remaining-tokens"), Some("100"));
    }
    assert_eq!(left(), 1.0);
    let dear = gate.call(&call("/v1/moderations", "w"));
    assert_eq!(
        (dear.status, dear.code().as_str()),
        (403, "model_not_priced")
    );
    let message = dear.json()["error"]["message"]
        .as_str()
        .expect("text")
        .to_owned();
    for word in ["\"b\"", "price", "\"m\""] {
        assert!(message.contains(word), "{message}");
    }
    let form = form("/v1/audio/transcriptions", "w");
    refused(&gate, &upstream, &form, 403, "model_not_priced");
    for _ in 0..3 {
        passed(&gate, &upstream, &call("/v1/messages/count_tokens", "w"));
    }
    let counted = call("/v1/messages/count_tokens", "w");
    refused(&gate, &upstream, &counted, 429, "rate_limit_exceeded");
    eventually("nothing was spent", || left() == 1.0);
}
