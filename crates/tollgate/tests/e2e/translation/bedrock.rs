//! Calls of three APIs to a loopback service that is as Amazon Bedrock is: it checks signature and body, and answers in binary events.
//!
//! Not here: what each member becomes (`vectors/translate`), other requests that are signed (`upstream_credentials`).

mod shapes;

use serde_json::{Value, json};
use sigv4::{Keys, Request, Scope};
use testing::eventstream::{event, exception};

use crate::harness::answer::{LAST_CHUNK, chunk, json as answer, whole};
use crate::harness::{Gate, Seen, Step, Upstream, post};
use crate::identity_sources::issuer::now;

const ID: &str = "AKIAIOSFODNN7EXAMPLE";
const SECRET: &str = "canary/secret";
const MODEL: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const WHO: &str = "x-workload-app: w";

const USAGE: &str = r#""usage":{"inputTokens":7,"outputTokens":3,"totalTokens":130,"cacheReadInputTokens":100,"cacheWriteInputTokens":20,"cacheDetails":[{"inputTokens":20,"ttl":"1h"}]},"metrics":{"latencyMs":5}"#;

fn document() -> String {
    format!(
        r#"{{"output":{{"message":{{"role":"assistant","content":[{{"text":"Hello."}}]}}}},"stopReason":"end_turn",{USAGE}}}"#
    )
}

/// The events of an answer, to the one that ends it; usage comes after that.
fn told() -> Vec<Vec<u8>> {
    vec![
        event("messageStart", r#"{"role":"assistant","p":"abc"}"#),
        event(
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"text":"Hel"},"p":"a"}"#,
        ),
        event(
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"text":"lo."},"p":"ab"}"#,
        ),
        event("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        event("messageStop", r#"{"stopReason":"end_turn"}"#),
    ]
}

/// A stream of these bytes, in pieces that cut its messages.
fn stream(bytes: &[u8]) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\nx-amzn-requestid: 7f3a\r\ntransfer-encoding: chunked\r\n\r\n";
    let pieces = bytes.chunks(61).map(chunk).collect::<Vec<_>>().concat();
    [head.as_bytes(), &pieces, LAST_CHUNK].concat()
}

fn is_streamed(seen: &Seen) -> bool {
    seen.head.contains("/converse-stream HTTP/1.1\r\n")
}

/// What a service that is well answers.
fn well(seen: &Seen) -> Vec<u8> {
    match is_streamed(seen) {
        true => {
            let usage = event("metadata", &format!("{{{USAGE}}}"));
            stream(&[told().concat(), usage].concat())
        }
        false => answer(200, &document()),
    }
}

fn gate(bedrock: &Upstream) -> Gate {
    let config = format!(
        "backends: {{ bedrock: {{ url: http://{}, dialect: bedrock, model_names: {{ m: \"{MODEL}\" }}, \
         credential: {{ aws: {{ region: us-west-2, access_key_id: {ID}, secret_access_key: {{ file: secret }} }} }} }} }}\n\
         routes: [ {{ workload: w, backend: bedrock }} ]\n",
        bedrock.address
    );
    Gate::start(&config, &[("secret", SECRET.as_bytes())])
}

/// The value of the one header of this name.
fn header(seen: &Seen, name: &str) -> String {
    let mut values = seen.head.lines().filter_map(|line| {
        let (known, value) = line.split_once(": ")?;
        known.eq_ignore_ascii_case(name).then_some(value)
    });
    let value = values
        .next()
        .unwrap_or_else(|| panic!("{name} in {}", seen.head));
    assert_eq!(values.next(), None, "{}", seen.head);
    value.to_owned()
}

/// Signs what arrived again, as it arrived, at the moment that it says.
fn assert_signed(seen: &Seen) {
    let line = seen.head.lines().next().expect("a line");
    let path = line.split(' ').nth(1).expect("a path");
    let authorization = header(seen, "authorization");
    let signed = "SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date,";
    assert!(authorization.contains(signed), "{authorization}");
    let headers = [(
        b"content-type".to_vec(),
        header(seen, "content-type").into_bytes(),
    )];
    let request = Request {
        method: "POST",
        authority: &header(seen, "host"),
        path,
        query: "",
        headers: &headers,
        body: &[&seen.body],
    };
    let keys = Keys {
        access_key_id: ID.to_owned(),
        secret_access_key: SECRET.as_bytes().to_vec().into(),
        session_token: None,
    };
    let scope = Scope {
        region: "us-west-2".to_owned(),
        service: "bedrock".to_owned(),
    };
    let is_same = (now() - testing::PATIENCE.as_secs()..=now())
        .rev()
        .any(|at| {
            let lines = sigv4::sign(&keys, &scope, &request, at);
            let mut lines = lines.iter();
            lines.all(|(name, value)| header(seen, name).as_bytes() == &***value)
        });
    assert!(is_same, "{authorization}");
}

/// Calls of each API, whole and streamed, and what the answer to each holds.
fn calls() -> Vec<(&'static str, String, &'static str)> {
    let png = "iVBORw0KGgo=";
    let chat = format!(
        r#""model":"m","max_completion_tokens":50,"temperature":0.5,"stop":["END"],"messages":[{{"role":"system","content":"Be brief."}},{{"role":"user","content":[{{"type":"text","text":"Hello"}},{{"type":"image_url","image_url":{{"url":"data:image/png;base64,{png}"}}}},{{"type":"file","file":{{"filename":"a b.pdf","file_data":"data:application/pdf;base64,JVBERi0="}}}}]}},{{"role":"assistant","content":null,"tool_calls":[{{"id":"call_1","type":"function","function":{{"name":"now","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"call_1","content":"noon"}}],"tools":[{{"type":"function","function":{{"name":"now","strict":true}}}}],"tool_choice":"required","response_format":{{"type":"json_schema","json_schema":{{"name":"a","schema":{{"type":"object"}}}}}}"#
    );
    let messages = r#""model":"m","max_tokens":50,"top_k":40,"system":[{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral","ttl":"1h"}}],"thinking":{"type":"enabled","budget_tokens":1024},"output_config":{"effort":"low"},"tools":[{"name":"now","input_schema":{"type":"object"},"cache_control":{"type":"ephemeral"}}],"tool_choice":{"type":"tool","name":"now"},"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":[{"type":"thinking","thinking":"Think.","signature":"tollgate:bedrock:EqQB"},{"type":"redacted_thinking","data":"tollgate:bedrock:cmVk"},{"type":"tool_use","id":"toolu_1","name":"now","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":"no clock"}]}]"#;
    let input = r#""model":"m","input":"Hello""#;
    vec![
        (
            "/v1/chat/completions",
            format!("{{{chat}}}"),
            r#""prompt_tokens":127"#,
        ),
        (
            "/v1/chat/completions",
            format!("{{{chat},\"stream\":true}}"),
            "data: [DONE]",
        ),
        (
            "/v1/messages",
            format!("{{{messages}}}"),
            r#""usage":{"input_tokens":7,"cache_creation_input_tokens":20,"cache_read_input_tokens":100,"output_tokens":3}"#,
        ),
        (
            "/v1/messages",
            format!("{{{messages},\"stream\":true}}"),
            r#""stop_reason":"end_turn""#,
        ),
        (
            "/v1/responses",
            format!("{{{input}}}"),
            r#""cached_tokens":100"#,
        ),
        (
            "/v1/responses",
            format!("{{{input},\"stream\":true}}"),
            "response.completed",
        ),
    ]
}

#[test]
fn calls_of_three_apis_are_signed_follow_the_model_of_the_service_and_are_metered_as_it_reports() {
    let bedrock = Upstream::start(|_, seen| vec![Step::Send(well(seen))]);
    let gate = gate(&bedrock);
    let calls = calls();
    for (path, body, holds) in &calls {
        let response = gate.call(&post(path, &[WHO], body));
        let text = response.text();
        assert_eq!(response.status, 200, "{text}");
        assert!(text.contains(holds), "{path}: {text}");
        let seen = bedrock.seen().pop().expect("it arrived");
        let verb = if is_streamed(&seen) { "-stream" } else { "" };
        let line = format!(
            "POST /model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse{verb} HTTP/1.1\r\n"
        );
        assert!(seen.head.starts_with(&line), "{}", seen.head);
        assert_eq!(is_streamed(&seen), body.contains("\"stream\":true"));
        assert_signed(&seen);
        let sent: Value = serde_json::from_slice(&seen.body).expect("JSON");
        shapes::check("ConverseRequest", &sent, "");
    }
    let records = gate.records(calls.len());
    let are_streamed = records.iter().filter(|record| record["streamed"] == true);
    assert_eq!(are_streamed.count(), 3, "{records:?}");
    for record in &records {
        let counts = [
            "prompt_tokens",
            "cached_tokens",
            "cache_write_1h_tokens",
            "completion_tokens",
        ];
        let counts = counts.map(|name| record[name].as_u64());
        assert_eq!(
            counts,
            [Some(127), Some(100), Some(20), Some(3)],
            "{record}"
        );
        assert_eq!(record["prompt_source"], "reported");
        assert_eq!(record["outcome"], "completed");
    }
}

#[test]
fn an_error_of_bedrocks_is_one_of_the_clients_api_before_a_stream_and_in_it() {
    let bedrock = Upstream::start(|nth, _| {
        let throttled = r#"{"message":"Too many tokens, please wait."}"#;
        let length = throttled.len();
        let refused = format!(
            "HTTP/1.1 429 Too Many\r\ncontent-type: application/json\r\nx-amzn-errortype: ThrottlingException:http://internal.amazon.com/\r\ncontent-length: {length}\r\n\r\n{throttled}"
        );
        let failed = exception(
            "modelStreamErrorException",
            r#"{"message":"The model failed."}"#,
        );
        let cut = told().concat();
        vec![
            Step::Send(match nth {
                0 => refused.into_bytes(),
                1 => stream(&[told()[..2].concat(), failed].concat()),
                2 => stream(&cut[..cut.len() - 9]),
                // Its head comes, and the rest never does.
                3 => {
                    let whole = stream(&cut);
                    whole[..whole.len() / 2].to_vec()
                }
                _ => whole(
                    200,
                    "application/vnd.amazon.eventstream",
                    b"no message of any stream",
                ),
            }),
            Step::Close,
        ]
    });
    let gate = gate(&bedrock);
    let ask = |nth: usize| {
        let stream = nth > 0;
        let body = format!(
            r#"{{"model":"m","max_tokens":50,"stream":{stream},"messages":[{{"role":"user","content":"Hello"}}]}}"#
        );
        let response = gate.call(&post("/v1/messages", &[WHO], &body));
        (response.status, response.text())
    };
    let (status, text) = ask(0);
    let told: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        (status, &told["error"]["type"]),
        (429, &json!("rate_limit_error")),
        "{text}"
    );
    assert_eq!(told["error"]["message"], "Too many tokens, please wait.");
    let (status, text) = ask(1);
    assert_eq!(status, 200, "{text}");
    assert!(text.contains(r#""text":"Hel""#), "{text}");
    assert!(text.contains("The model failed."), "{text}");
    for nth in 2..5 {
        let (status, text) = ask(nth);
        assert!(text.contains(r#""type":"error""#), "{nth}: {status} {text}");
        assert!(!text.contains("message_stop"), "{text}");
    }
    let records = gate.records(5);
    for record in records.iter().filter(|record| record["status"] != 429) {
        assert_ne!(record["outcome"], "completed", "{record}");
    }
}

#[test]
fn a_failover_from_an_engine_to_anthropic_to_bedrock_proves_itself_to_each_and_is_one_row() {
    let own = Upstream::start(|_, _| vec![Step::Close]);
    let busy = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let claude = Upstream::start(move |_, _| vec![Step::Send(answer(529, busy))]);
    let bedrock = Upstream::start(|_, seen| vec![Step::Send(well(seen))]);
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = dir.path().join("usage.db");
    let config = format!(
        "backends:\n  own: {{ url: http://{}/v1, dialect: openai, credential: {{ inline: own-key }} }}\n  \
         claude: {{ url: http://{}/v1, dialect: anthropic, credential: {{ inline: claude-key }}, model_names: {{ m: claude }} }}\n  \
         bedrock: {{ url: http://{}, dialect: bedrock, model_names: {{ m: \"{MODEL}\" }}, \
         credential: {{ aws: {{ region: us-west-2, access_key_id: {ID}, secret_access_key: {{ file: secret }} }} }} }}\n\
         prices: {{ m: {{ input: 1, cached_input: 1, cache_write_1h: 1, output: 1, per: 1M }} }}\n\
         routes: [ {{ workload: w, match: {{ model: m }}, backend: [own, claude, bedrock] }} ]\n\
         ledger: {{ path: {} }}\n",
        own.address,
        claude.address,
        bedrock.address,
        ledger.display()
    );
    let gate = Gate::start(&config, &[("secret", SECRET.as_bytes())]);
    let body = r#"{"model":"m","max_completion_tokens":50,"messages":[{"role":"user","content":"Hello"}]}"#;
    let response = gate.call(&post("/v1/chat/completions", &[WHO], body));
    assert_eq!(response.status, 200, "{}", response.text());
    let told: Value = serde_json::from_slice(&response.body).expect("JSON");
    assert_eq!(told["choices"][0]["message"]["content"], "Hello.");
    let one = |of: &Upstream| {
        let mut seen = of.seen();
        assert_eq!(seen.len(), 1, "one attempt each");
        seen.remove(0)
    };
    let (first, second, third) = (one(&own), one(&claude), one(&bedrock));
    assert_eq!(first.body, body.as_bytes());
    assert_eq!(header(&first, "authorization"), "Bearer own-key");
    assert_eq!(header(&second, "x-api-key"), "claude-key");
    assert_eq!(header(&second, "anthropic-version"), "2023-06-01");
    assert!(!second.head.to_lowercase().contains("authorization"));
    assert_signed(&third);
    for seen in [&second, &third] {
        assert!(!seen.head.contains("own-key"), "{}", seen.head);
    }
    assert!(!third.head.contains("claude-key"), "{}", third.head);
    crate::ledger::stop(gate);
    let rows = crate::ledger::rows(&ledger);
    let rows: Vec<&Value> = rows.values().collect();
    let [row] = rows[..] else {
        panic!("one row: {rows:?}")
    };
    let number = |name: &str| row[name].as_i64().unwrap_or_default();
    assert_eq!(
        (number("attempts"), row["backend"].as_str()),
        (3, Some("bedrock")),
        "{row}"
    );
    // The first may have run, and nobody heard of it; the second refused; the third told what it used.
    assert_eq!(number("unconfirmed_attempts"), 1, "{row}");
    let reported = [number("prompt_reported"), number("completion_reported")];
    assert_eq!(reported, [127, 3], "{row}");
    let charged = number("prompt_tokens") + number("completion_tokens");
    assert_eq!(charged, 130 + number("unconfirmed_tokens"), "{row}");
    assert!(number("unconfirmed_tokens") >= 50, "{row}");
    assert_eq!(number("cost_pico"), charged * 1_000_000, "{row}");
}
