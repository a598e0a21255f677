//! Usage that is missing, zero or impossible: what the row then has from the engine and from the gate.

use engine::EngineConfig;
use serde_json::{Value, json};

use super::{CountingGate, engine, number};
use crate::harness::{Step, Upstream};

const COUNTING: &str = "tokenizers: { gpt-oss-120b: harmony }";

fn body(stream: bool) -> Value {
    json!({"model": "gpt-oss-120b", "stream": stream, "max_tokens": 30,
        "messages": [{"role": "user", "content": "What is the weather in Paris?"}]})
}

#[test]
fn u6_each_usage_fault_leaves_the_expected_row() {
    let engine = engine(EngineConfig::default());
    let mut counted = CountingGate::start(engine.addr(), COUNTING, &[]);
    let faults = [
        "none", "missing", "null", "zero", "negative", "huge", "repeated", "x10",
    ];
    for fault in faults {
        for stream in [false, true] {
            let header = format!("x-fault: usage={fault}");
            let headers: &[&str] = if fault == "none" { &[] } else { &[&header] };
            counted.chat(&format!("{fault}-{stream}"), headers, &body(stream));
        }
    }
    let rows = counted.end();
    for stream in [false, true] {
        let row = |fault: &str| &rows[&format!("{fault}-{stream}")];
        let good = row("none");
        let prompt = number(good, "prompt_reported");
        let output = number(good, "completion_reported");
        for fault in faults {
            let row = row(fault);
            assert_eq!(number(row, "prompt_counted"), prompt, "{fault} {row}");
            let near = number(row, "completion_counted").abs_diff(output);
            assert!(near <= 4, "{fault} {row}");
            let (source, billed) = match fault {
                "missing" | "null" | "negative" | "huge" => ("counted", prompt),
                "zero" => ("reported", 0),
                "x10" => ("reported", prompt * 10),
                _ => ("reported", prompt),
            };
            assert_eq!(row["prompt_source"], source, "{fault} {row}");
            assert_eq!(number(row, "prompt_tokens"), billed, "{fault} {row}");
            assert_eq!(row["completion_source"], source, "{fault} {row}");
            let is_invalid = matches!(fault, "negative" | "huge");
            assert_eq!(
                number(row, "usage_invalid"),
                u64::from(is_invalid),
                "{fault} {row}"
            );
        }
    }
    engine.stop();
}

#[test]
fn u6_an_impossible_count_is_kept_beside_the_gates_own_and_the_rest_of_its_report_is_charged() {
    let upstream = Upstream::start(|_, _| {
        let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"four words of text"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000000000000000000,"completion_tokens":5,"total_tokens":3}}"#;
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        vec![Step::Send((head + body).into_bytes())]
    });
    let mut counted = CountingGate::start(upstream.address, COUNTING, &[]);
    counted.chat("c", &[], &body(false));
    let rows = counted.end();
    let row = &rows["c"];
    assert_eq!(number(row, "usage_invalid"), 0);
    assert_eq!(number(row, "usage_doubtful"), 1);
    assert_eq!(number(row, "prompt_reported"), 1_000_000_000_000_000_000);
    assert_eq!(number(row, "completion_reported"), 5);
    assert_eq!(row["prompt_source"], "counted", "{row}");
    assert_eq!(
        number(row, "prompt_tokens"),
        number(row, "prompt_counted"),
        "{row}"
    );
    assert_eq!(row["completion_source"], "reported", "{row}");
    assert_eq!(number(row, "completion_tokens"), 5, "{row}");
}

#[test]
fn a_report_that_no_call_could_hold_is_not_billed_and_its_backend_is_named() {
    let answer = |prompt: u64| {
        let body = format!(
            r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":"four words of text"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":{prompt},"completion_tokens":5}}}}"#
        );
        let length = body.len();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        vec![Step::Send(
            format!("{head}content-length: {length}\r\n\r\n{body}").into(),
        )]
    };
    let prices = "prices: { m: { input: 1, output: 1 } }";
    // Beyond all windows, beyond what such a body can hold, and beyond its window, where that is known.
    for (prompt, tokenizer, source) in [
        (999_999_999, "", "estimated"),
        (999_999_999, "tokenizers: { m: o200k }", "counted"),
        (50_000, "tokenizers: { m: o200k }", "counted"),
        (50_000, "", "reported"),
        (40, "tokenizers: { m: o200k }", "reported"),
    ] {
        let upstream = Upstream::start(move |_, _| answer(prompt));
        let mut counted =
            CountingGate::start(upstream.address, &format!("{tokenizer}\n{prices}"), &[]);
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "hello world"}]});
        counted.chat("c", &[], &body);
        if prompt > 40 {
            let what = match source {
                "reported" => "a backend reports more tokens than a call has bytes",
                _ => "a backend reports usage that no call can hold",
            };
            assert_told(&counted, what, prompt);
        }
        if prompt > 40 {
            let of = ["backend=\"up\""];
            testing::eventually("it is doubted", || {
                counted.gate.metric("tollgate_usage_doubtful_total", &of) >= 1.0
            });
        }
        if source == "counted" {
            // It is told once it was compared.
            counted.gate.records(1);
            let of = ["model=\"m\"", "direction=\"prompt\""];
            for name in [
                "tollgate_token_drift_exchanges_total",
                "tollgate_token_drift_tokens_total",
            ] {
                assert!(counted.gate.metric(name, &of) < 1.0, "{name}");
            }
            let log = counted.gate.log();
            assert!(!log.contains("count such prompts differently"), "{log}");
        }
        let rows = counted.end();
        let row = &rows["c"];
        assert_eq!(row["prompt_source"], source, "{prompt} {tokenizer} {row}");
        assert_eq!(number(row, "prompt_reported"), prompt, "{row}");
        assert_eq!(row["completion_source"], "reported", "{row}");
        assert_eq!(
            row["usage_doubtful"].as_u64().is_some(),
            prompt > 40,
            "{row}"
        );
        let charged = number(row, "prompt_tokens");
        match source {
            "reported" => assert_eq!(charged, prompt),
            "counted" => assert_eq!(charged, number(row, "prompt_counted")),
            _ => assert!(charged < 100, "{row}"),
        }
        assert_eq!(number(row, "cost_pico"), (charged + 5) * 1_000_000, "{row}");
    }
}

/// The log has such a line, with the backend's name and this number.
fn assert_told(counted: &CountingGate, what: &str, number: u64) {
    testing::eventually("it is told of", || {
        let log = counted.gate.log();
        let mut lines = log.lines();
        lines.any(|line| {
            line.contains(what)
                && line.contains("backend=\"up\"")
                && line.contains(&number.to_string())
        })
    });
}

#[test]
fn a_completion_beyond_the_bytes_of_its_answer_is_charged_and_its_backend_is_named() {
    let answer = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"one two three four five six seven eight"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":50000}}"#;
    for tokenizer in ["", "tokenizers: { m: o200k }"] {
        let upstream = Upstream::start(move |_, _| {
            let length = answer.len();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
            vec![Step::Send(
                format!("{head}content-length: {length}\r\n\r\n{answer}").into(),
            )]
        });
        let mut counted = CountingGate::start(upstream.address, tokenizer, &[]);
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "hello world"}]});
        counted.chat("c", &[], &body);
        let what = "a backend reports more tokens than a call has bytes";
        assert_told(&counted, what, 50_000);
        let of = ["backend=\"up\""];
        testing::eventually("it is doubted", || {
            counted.gate.metric("tollgate_usage_doubtful_total", &of) >= 1.0
        });
        let rows = counted.end();
        let row = &rows["c"];
        assert_eq!(row["completion_source"], "reported", "{row}");
        assert_eq!(number(row, "completion_tokens"), 50_000, "{row}");
        assert_eq!(number(row, "usage_doubtful"), 1, "{row}");
    }
}

#[test]
fn every_dialect_is_counted() {
    let engine = engine(EngineConfig::default());
    let mut counted = CountingGate::start(engine.addr(), COUNTING, &[]);
    let text = "What is the weather in Paris?";
    for (id, path, mut body) in [
        ("chat", "/v1/chat/completions", body(false)),
        ("text", "/v1/completions", json!({"prompt": text})),
        ("responses", "/v1/responses", json!({"input": text})),
        ("embeddings", "/v1/embeddings", json!({"input": text})),
    ] {
        body["model"] = "gpt-oss-120b".into();
        for stream in [false, true] {
            if stream && id == "embeddings" {
                continue;
            }
            body["stream"] = stream.into();
            let id = format!("{id}-{stream}");
            let answer = counted.call(&id, path, &[], &body.to_string());
            assert_eq!(answer.status, 200, "{id} {}", answer.text());
        }
    }
    let rows = counted.end();
    assert_eq!(rows.len(), 7);
    for (id, row) in &rows {
        let counted = number(row, "prompt_counted");
        assert_eq!(number(row, "prompt_reported"), counted, "{id} {row}");
        if !id.starts_with("embeddings") {
            let counted = number(row, "completion_counted");
            let near = number(row, "completion_reported").abs_diff(counted);
            assert!(counted > 0 && near <= 8, "{id} {row}");
        }
    }
    engine.stop();
}

#[test]
fn messages_are_counted() {
    let upstream = Upstream::start(|_, _| {
        let events = [
            r#"{"type":"message_start","message":{"content":[]}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"four words of text"}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"}}"#,
            r#"{"type":"message_stop"}"#,
        ];
        let body: String = events
            .map(|event| format!("event: x\ndata: {event}\n\n"))
            .concat();
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n"
        );
        vec![Step::Send((head + &body).into_bytes())]
    });
    let mut counted = CountingGate::start(upstream.address, "tokenizers: { m: cl100k }", &[]);
    let body = json!({"model": "m", "max_tokens": 9, "stream": true,
        "messages": [{"role": "user", "content": "hello world"}]});
    let answer = counted.call("c", "/v1/messages", &[], &body.to_string());
    assert_eq!(answer.status, 200, "{}", answer.text());
    let rows = counted.end();
    let row = &rows["c"];
    assert_eq!(row["completion_source"], "counted", "{row}");
    assert_eq!(number(row, "completion_tokens"), 4, "{row}");
    // Two words, the role, and the documented overhead of a message and an answer.
    assert_eq!(number(row, "prompt_tokens"), 2 + 1 + 3 + 3, "{row}");
    assert_eq!(row["prompt_source"], "counted", "{row}");
}

#[test]
fn a_message_that_says_no_tokens_at_its_end_is_not_charged_by_what_its_beginning_said() {
    let body = json!({"model": "m", "max_tokens": 90, "stream": true,
        "messages": [{"role": "user", "content": "hello world"}]});
    let without = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{}}"#;
    for (tokenizer, source) in [("", "estimated"), ("tokenizers: { m: cl100k }", "counted")] {
        for end in [Some(without), None] {
            let upstream = Upstream::start(move |_, _| {
                let text = "one two three four five six seven eight".split_inclusive(' ');
                let word = |word| {
                    format!(
                        r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{word}"}}}}"#
                    )
                };
                let begins = [
                    r#"{"type":"message_start","message":{"content":[],"usage":{"input_tokens":9,"output_tokens":1}}}"#,
                    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
                ];
                let events = begins.into_iter().map(str::to_owned).chain(text.map(word));
                let ends = end.into_iter().chain([r#"{"type":"message_stop"}"#]);
                let body: String = events
                    .chain(ends.map(str::to_owned))
                    .map(|event| format!("event: x\ndata: {event}\n\n"))
                    .collect();
                let length = body.len();
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
                vec![Step::Send(
                    format!("{head}content-length: {length}\r\n\r\n{body}").into(),
                )]
            });
            let mut counted = CountingGate::start(upstream.address, tokenizer, &[]);
            counted.call("c", "/v1/messages", &[], &body.to_string());
            let rows = counted.end();
            let row = &rows["c"];
            assert_eq!(row["completion_source"], source, "{row}");
            let charged = number(row, "completion_tokens");
            if source == "counted" {
                assert_eq!(charged, 8, "{row}");
            } else {
                assert!((8..=16).contains(&charged), "{row}");
            }
            assert_eq!(row["prompt_source"], "reported", "{row}");
            assert_eq!(number(row, "prompt_tokens"), 9, "{row}");
        }
    }
}

#[test]
fn u8_a_stream_whose_client_disconnects_is_counted_to_the_last_event() {
    use std::time::Duration;
    let engine = engine::spawn_thread(EngineConfig {
        ttft: Duration::ZERO,
        inter_token: Duration::from_millis(300),
        ..EngineConfig::default()
    })
    .expect("an engine");
    let mut counted = CountingGate::start(engine.addr(), COUNTING, &[]);
    let mut body = body(true);
    body["max_tokens"] = 2000.into();
    let request = crate::harness::post(
        "/v1/chat/completions",
        &[
            "x-workload-app: w",
            "x-request-id: left",
            "x-engine-tokens: 1000",
        ],
        &body.to_string(),
    );
    let mut client = crate::harness::Connection::open(counted.gate.data);
    client.send(&request);
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    let events = |seen: &[u8]| seen.windows(6).filter(|w| w == b"data: ").count();
    while events(&seen) < 15 {
        let n = testing::read(&mut client.tcp, &mut buffer).expect("a stream");
        assert!(n > 0, "the stream ended");
        seen.extend_from_slice(&buffer[..n]);
    }
    drop(client);
    testing::eventually("it is seen to leave", || {
        let aborted = ["outcome=\"aborted\""];
        counted.gate.metric("tollgate_exchanges_total", &aborted) >= 1.0
    });
    counted.chat(
        "after",
        &["x-engine-tokens: 5"],
        &super::usage_faults::body(true),
    );
    let rows = counted.end();
    let row = &rows["left"];
    assert_eq!(row["outcome"], "aborted");
    assert_eq!(row["completion_source"], "counted");
    // One event carries the role; the engine also counts the header of the channel as a token, and the gate may send on an
    // event or two that nobody reads any more.
    let received = events(&seen) as u64;
    let own = number(row, "completion_counted");
    assert!(
        own.abs_diff(received) <= 3,
        "{own} counted, {received} events received"
    );
    assert_eq!(row["prompt_source"], "counted");
    engine.stop();
}
