//! Cohere: its chat and embeddings for clients of OpenAI's, and documents that are ranked by whoever does that.
//!
//! Invariant: what is recorded is what the backend counted, units of search included.
//! Not here: what each member becomes (`vectors/translate`).

use serde_json::{Value, json};

use super::WHO;
use crate::harness::answer::{events, json as answer};
use crate::harness::{Gate, Step, Upstream, post};

const USAGE: &str = r#""usage":{"billed_units":{"input_tokens":5,"output_tokens":4},"tokens":{"input_tokens":71,"output_tokens":4},"cached_tokens":16}"#;

/// A backend that answers each of the three calls as Cohere does.
fn cohere() -> Upstream {
    Upstream::start(|_, seen| {
        let body: Value = serde_json::from_slice(&seen.body).expect("JSON");
        vec![Step::Send(match (seen.path(), &body["stream"]) {
            ("/v2/chat", Value::Bool(true)) => events(
                [
                    r#"{"id":"c1","type":"message-start","delta":{"message":{"role":"assistant","content":[],"tool_calls":[]}}}"#,
                    r#"{"type":"content-delta","index":0,"delta":{"message":{"content":{"text":"Hello."}}}}"#,
                    &format!(r#"{{"type":"message-end","delta":{{"finish_reason":"COMPLETE",{USAGE}}}}}"#),
                ]
                .map(|data| format!("data: {data}\n\n"))
                .concat()
                .as_bytes(),
            ),
            ("/v2/chat", _) => answer(
                200,
                &format!(r#"{{"id":"c1","finish_reason":"COMPLETE","message":{{"role":"assistant","content":[{{"type":"text","text":"Hello."}}]}},{USAGE}}}"#),
            ),
            ("/v2/embed", _) => answer(
                200,
                r#"{"id":"e1","embeddings":{"float":[[0.5,1]]},"texts":["a"],"meta":{"billed_units":{"input_tokens":3}}}"#,
            ),
            ("/v2/rerank", _) => answer(
                200,
                r#"{"id":"r1","results":[{"index":1,"relevance_score":0.9}],"meta":{"api_version":{"version":"2"},"billed_units":{"search_units":3}}}"#,
            ),
            (other, _) => panic!("{other} is not asked for"),
        })]
    })
}

fn gate_of(upstream: &Upstream, root: &str, dialect: &str, more: &str) -> Gate {
    let config = format!(
        "backends: {{ up: {{ url: http://{}{root}, dialect: {dialect}, credential: {{ inline: its-key }}, model_names: {{ m: command-a-03-2025 }} }} }}\n\
         routes: [ {{ workload: w, backend: up }} ]\n{more}",
        upstream.address
    );
    Gate::start(&config, &[])
}

#[test]
fn clients_of_openai_are_answered_by_cohere_and_its_tokens_are_recorded() {
    let cohere = cohere();
    let gate = gate_of(&cohere, "/v2", "cohere", "");
    let asked = r#""model":"m","messages":[{"role":"user","content":"Hello"}]"#;
    let whole = gate.call(&post(
        "/v1/chat/completions",
        &[WHO],
        &format!("{{{asked}}}"),
    ));
    let told: Value = serde_json::from_slice(&whole.body).expect("JSON");
    assert_eq!(told["choices"][0]["message"]["content"], "Hello.", "{told}");
    assert_eq!(told["usage"]["prompt_tokens"], 71);
    let seen = cohere.seen().pop().expect("it arrived");
    assert_eq!(seen.header("authorization"), ["Bearer its-key"]);
    let sent: Value = serde_json::from_slice(&seen.body).expect("JSON");
    assert_eq!(sent["model"], "command-a-03-2025");
    let body = format!("{{{asked},\"stream\":true}}");
    let streamed = gate
        .call(&post("/v1/chat/completions", &[WHO], &body))
        .text();
    assert!(streamed.contains(r#""finish_reason":"stop""#), "{streamed}");
    for record in gate.records(2) {
        let counts = ["prompt_tokens", "cached_tokens", "completion_tokens"];
        let counts = counts.map(|name| record[name].as_u64());
        assert_eq!(counts, [Some(71), Some(16), Some(4)], "{record}");
        assert_eq!(record["prompt_source"], "reported");
    }
}

#[test]
fn texts_of_openais_clients_are_embedded_by_cohere() {
    let cohere = cohere();
    let gate = gate_of(&cohere, "/v2", "cohere", "");
    let body = r#"{"model":"m","input":"a"}"#;
    let response = gate.call(&post("/v1/embeddings", &[WHO], body));
    let told: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(told["data"][0]["embedding"], json!([0.5, 1]), "{told}");
    let [record] = &gate.records(1)[..] else {
        panic!("one record")
    };
    assert_eq!(
        (&record["prompt_tokens"], &record["prompt_source"]),
        (&json!(3), &json!("reported")),
        "{record}"
    );
}

const RANK: &str = r#"{ "model":"m", "query":"a", "documents":["b","c"], "top_n":1 }"#;

#[test]
fn documents_are_ranked_by_cohere_which_bills_units_of_search() {
    let cohere = cohere();
    let prices = "prices: { m: { request: 0.002, input: 0, output: 0 } }\n";
    let gate = gate_of(&cohere, "/v2", "cohere", prices);
    for path in ["/v1/rerank", "/v2/rerank"] {
        let response = gate.call(&post(path, &[WHO], RANK));
        assert_eq!(response.status, 200, "{}", response.text());
        let seen = cohere.seen().pop().expect("it arrived");
        assert_eq!(seen.path(), "/v2/rerank");
        let sent = String::from_utf8_lossy(&seen.body).into_owned();
        assert_eq!(sent, RANK.replace(r#""m""#, r#""command-a-03-2025""#));
    }
    for record in gate.records(2) {
        assert_eq!(record["search_units"], 3, "{record}");
        assert_eq!(record["operation"], "rerank");
    }
    let cost = gate.metric("tollgate_cost_total", &[]);
    assert!((cost - 2.0 * 3.0 * 0.002).abs() < 1e-9, "{cost}");
}

#[test]
fn documents_are_ranked_by_an_engine_which_counts_tokens() {
    let told = r#"{"id":"r1","model":"m","usage":{"total_tokens":9},"results":[{"index":1,"document":{"text":"c"},"relevance_score":0.9}]}"#;
    let engine = Upstream::start(move |_, _| vec![Step::Send(answer(200, told))]);
    let gate = gate_of(&engine, "/v1", "openai", "");
    for path in ["/v1/rerank", "/v2/rerank"] {
        let response = gate.call(&post(path, &[WHO], RANK));
        assert_eq!(response.text(), told);
        assert_eq!(
            engine.seen().pop().expect("it arrived").path(),
            "/v1/rerank"
        );
    }
    for record in gate.records(2) {
        assert_eq!(record["prompt_tokens"], 9, "{record}");
        assert_eq!(record["prompt_source"], "reported");
        assert!(record.get("search_units").is_none(), "{record}");
    }
}

#[test]
fn a_backend_that_ranks_nothing_refuses_by_name() {
    let other = Upstream::start(|_, _| vec![Step::Send(answer(200, "{}"))]);
    let gate = gate_of(&other, "/v1", "anthropic", "");
    let response = gate.call(&post("/v2/rerank", &[WHO], RANK));
    assert_eq!(response.status, 400);
    assert!(
        response.text().contains("which has no rerank"),
        "{}",
        response.text()
    );
    assert!(other.seen().is_empty());
}
