//! Usage that is missing, zero or impossible: what the row then holds of both witnesses.

use engine::EngineConfig;
use serde_json::{Value, json};

use super::{Counted, engine, number};
use crate::harness::{Step, Upstream};

const COUNTING: &str = "tokenizers: { gpt-oss-120b: harmony }";

fn body(stream: bool) -> Value {
    json!({"model": "gpt-oss-120b", "stream": stream, "max_tokens": 30,
        "messages": [{"role": "user", "content": "What is the weather in Paris?"}]})
}

#[test]
fn u6_each_fault_of_usage_leaves_the_row_that_it_should() {
    let engine = engine(EngineConfig::default());
    let mut counted = Counted::start(engine.addr(), COUNTING, &[]);
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
fn u6_of_an_impossible_report_both_numbers_are_kept() {
    let upstream = Upstream::start(|_, _| {
        let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"four words of text"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000000000000000000,"completion_tokens":5,"total_tokens":3}}"#;
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        vec![Step::Send((head + body).into_bytes())]
    });
    let mut counted = Counted::start(upstream.address, COUNTING, &[]);
    counted.chat("c", &[], &body(false));
    let rows = counted.end();
    let row = &rows["c"];
    assert_eq!(number(row, "usage_invalid"), 1);
    assert_eq!(number(row, "prompt_reported"), 1_000_000_000_000_000_000);
    assert_eq!(number(row, "completion_reported"), 5);
    for (tokens, source, own) in [
        ("prompt_tokens", "prompt_source", "prompt_counted"),
        (
            "completion_tokens",
            "completion_source",
            "completion_counted",
        ),
    ] {
        assert_eq!(row[source], "counted", "{row}");
        assert_eq!(number(row, tokens), number(row, own), "{row}");
    }
}

#[test]
fn u8_a_stream_that_its_client_left_is_counted_to_the_last_event() {
    use std::io::Read;
    use std::time::Duration;
    let engine = engine::spawn_thread(EngineConfig {
        ttft: Duration::ZERO,
        inter_token: Duration::from_millis(20),
        ..EngineConfig::default()
    })
    .expect("an engine");
    let mut counted = Counted::start(engine.addr(), COUNTING, &[]);
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
    while events(&seen) < 40 {
        let n = client.tcp.read(&mut buffer).expect("a stream");
        assert!(n > 0, "the stream ended");
        seen.extend_from_slice(&buffer[..n]);
    }
    drop(client);
    crate::harness::eventually("it is seen to leave", Duration::from_secs(10), || {
        let aborted = ["outcome=\"aborted\""];
        counted.gate.metric("tollgate_exchanges_total", &aborted) >= 1.0
    });
    counted.chat(
        "after",
        &["x-engine-tokens: 5"],
        &super::witnesses::body(true),
    );
    let rows = counted.end();
    let row = &rows["left"];
    assert_eq!(row["outcome"], "aborted");
    assert_eq!(row["completion_source"], "counted");
    // One event says the role; the header of the channel is the engine's own token, too.
    let received = events(&seen) as u64;
    let own = number(row, "completion_counted");
    assert!(
        own.abs_diff(received) <= 6,
        "{own} counted, {received} events received"
    );
    assert_eq!(row["prompt_source"], "counted");
    engine.stop();
}
