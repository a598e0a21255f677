//! More prompts than can be counted: answers are held back for a while, no row is lost, and the record says `estimated`.

use std::net::SocketAddr;

use engine::EngineConfig;
use serde_json::{Value, json};

use super::{CountingGate, TOKENIZER, engine};
use crate::harness::answer::json as answer;
use crate::harness::{Connection, Step, Upstream, post};

/// Goes through loops for longer than a call takes, well within what a template may do.
const SLOW_TEMPLATE: &[u8] =
    b"{% for a in range(1000) %}{% for b in range(1000) %}{% endfor %}{% endfor %}{{ messages[0]['content'] }}";

const CALLS: usize = 3;
const CLIENTS: usize = 4;

/// Answers at once, however long a prompt is, and reports no usage.
fn silent() -> Upstream {
    let body = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}"#;
    Upstream::start(move |_, _| vec![Step::Send(answer(200, body))])
}

/// So many clients call at once, [`CALLS`] times each with more than half of a queue of 1 MiB.
fn call_all(data: SocketAddr, clients: usize) {
    std::thread::scope(|scope| {
        for client in 0..clients {
            scope.spawn(move || {
                let mut connection = Connection::open(data);
                for n in 0..CALLS {
                    let text = format!("{client}-{n} words and words ").repeat(30_000);
                    let body = json!({"model": "gpt-oss-120b", "max_tokens": 1,
                        "messages": [{"role": "user", "content": text}]});
                    let id = format!("x-request-id: {client}-{n}");
                    let headers = ["x-workload-app: w", id.as_str()];
                    let request = post("/v1/chat/completions", &headers, &body.to_string());
                    assert_eq!(connection.call(&request).status, 200);
                }
            });
        }
    });
}

/// Prompts that were counted. No report says whether the engine counts them alike, so none is exact.
fn counted_prompts(counted: &CountingGate) -> f64 {
    prompts(counted, "exact") + prompts(counted, "approximate")
}

/// Prompts that came to this result.
fn prompts(counted: &CountingGate, result: &str) -> f64 {
    let labels = [&format!("result=\"{result}\"")[..], "direction=\"input\""];
    counted
        .gate
        .metric("tollgate_counting_exchanges_total", &labels)
}

#[test]
fn answers_are_held_back_until_there_is_room_and_every_prompt_is_counted() {
    let upstream = silent();
    let counting = "tokenizers: { \"*\": harmony }\ncounting: { queue: 1MiB, backpressure: 10s }";
    let counted = CountingGate::start(upstream.address, counting, &[]);
    // One waits for the other's count alone, far less than the most that a document can have an answer held back.
    let clients = 2;
    call_all(counted.gate.data, clients);
    let all = (CALLS * clients) as f64;
    testing::eventually("all are counted", || counted_prompts(&counted) >= all);
    assert_eq!(prompts(&counted, "busy"), 0.0);
    let rows = counted.end();
    assert!(rows.values().all(|row| row["prompt_counted"].is_u64()));
    assert!(rows.values().all(|row| row["prompt_uncounted"].is_null()));
}

#[test]
fn prompts_beyond_the_counting_queue_are_estimated_and_no_row_is_lost() {
    let upstream = silent();
    let counting = "tokenizers: { \"*\": { file: tokenizer.json, template: t.jinja } }\ncounting: { queue: 1MiB, backpressure: off }";
    let files = [("tokenizer.json", TOKENIZER), ("t.jinja", SLOW_TEMPLATE)];
    let counted = CountingGate::start(upstream.address, counting, &files);
    call_all(counted.gate.data, CLIENTS);
    testing::eventually("all are counted or not", || {
        counted_prompts(&counted) + prompts(&counted, "busy") >= (CALLS * CLIENTS) as f64
    });
    let (own, busy) = (counted_prompts(&counted), prompts(&counted, "busy"));
    println!("{own} counted, {busy} without room");
    assert!(busy > 0.0 && own > 0.0, "{own} {busy}");
    assert_eq!(counted.gate.metric("tollgate_counting_bytes", &[]), 0.0);
    let rows = counted.end();
    assert_eq!(rows.len(), CALLS * CLIENTS);
    let of = |source: &str| {
        rows.values()
            .filter(|r| r["prompt_source"] == source)
            .count()
    };
    assert_eq!(
        (of("counted"), of("estimated")),
        (own as usize, busy as usize)
    );
    let is_marked =
        |row: &Value| (row["prompt_uncounted"] == "busy") == (row["prompt_source"] == "estimated");
    assert!(rows.values().all(is_marked));
}

#[test]
fn a_prompt_longer_than_the_bound_is_not_counted_but_its_completion_is() {
    let engine = engine(EngineConfig::default());
    let counting = "tokenizers: { gpt-oss-120b: harmony }\ncounting: { longest: 10kB }";
    let mut counted = CountingGate::start(engine.addr(), counting, &[]);
    let body = |words: usize| {
        json!({"model": "gpt-oss-120b", "stream": true, "max_tokens": 5,
            "messages": [{"role": "user", "content": "word ".repeat(words)}]})
    };
    counted.chat("long", &[], &body(3000));
    counted.chat("short", &[], &body(300));
    let rows = counted.end();
    assert!(rows["long"]["prompt_counted"].is_null(), "{}", rows["long"]);
    assert_eq!(rows["long"]["prompt_uncounted"], "too_long");
    assert!(rows["long"]["completion_counted"].is_u64());
    assert!(rows["short"]["prompt_counted"].is_u64());
    engine.stop();
}

#[test]
fn shutdown_waits_until_every_row_is_counted() {
    let upstream = silent();
    let counting = "tokenizers: { gpt-oss-120b: harmony }";
    let mut counted = CountingGate::start(upstream.address, counting, &[]);
    for n in 0..15 {
        let text = "words that take a while to count ".repeat(3000);
        let body = json!({"model": "gpt-oss-120b", "max_tokens": 1,
            "messages": [{"role": "user", "content": text}]});
        counted.chat(&format!("c{n}"), &[], &body);
    }
    // Ends at once, with most of them not counted yet.
    let rows = counted.end();
    assert_eq!(rows.len(), 15);
    assert!(rows.values().all(|row| row["prompt_counted"].is_u64()));
}
