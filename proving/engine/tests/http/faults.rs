//! Injected faults.

use std::io::Read;
use std::time::Duration;

use engine::EngineHandle;
use serde_json::{Value, json};
use testing::Began;

use crate::client::{Reply, chat, fast, get, open, post, send, start};

fn stream(engine: &EngineHandle, fault: &str) -> Reply {
    let headers = [("x-fault", fault), ("x-engine-tokens", "9")];
    let body = chat(json!({"stream": true, "stream_options": {"include_usage": true}}));
    post(
        engine.addr(),
        "/v1/chat/completions",
        &headers,
        &body.to_string(),
    )
}

/// The bytes of a stream, however it ended.
fn raw(engine: &EngineHandle, fault: &str) -> String {
    let headers = [("x-fault", fault), ("x-engine-tokens", "9")];
    let body = chat(json!({"stream": true})).to_string();
    let mut raw = Vec::new();
    let _ = open(
        engine.addr(),
        "POST",
        "/v1/chat/completions",
        &headers,
        &body,
    )
    .read_to_end(&mut raw);
    String::from_utf8_lossy(&raw).into_owned()
}

#[test]
fn an_injected_status_carries_its_retry_after() {
    let engine = start(fast());
    let reply = stream(&engine, "status=429, retry-after=3");
    assert_eq!(
        (reply.status, reply.json()["error"]["code"].clone()),
        (429, json!(429))
    );
    assert!(reply.head.contains("retry-after: 3"), "{}", reply.head);
    assert_eq!(stream(&engine, "status=503").status, 503);
    assert_eq!(stream(&engine, "hail=1").status, 400);
    assert_eq!(stream(&engine, "").status, 200);
}

#[test]
fn every_usage_fault_is_sent() {
    let engine = start(fast());
    let usage = |fault: &str| -> Vec<Value> {
        let events = stream(&engine, fault).events();
        let parsed = events
            .iter()
            .filter_map(|e| serde_json::from_str::<Value>(e).ok());
        parsed.filter_map(|e| e.get("usage").cloned()).collect()
    };
    let true_usage = usage("");
    assert_eq!(
        (true_usage.len(), &true_usage[0]["completion_tokens"]),
        (1, &json!(9))
    );
    assert_eq!(usage("usage=x10")[0]["completion_tokens"], 90);
    assert_eq!(usage("usage=x0.5")[0]["prompt_tokens"], 36);
    assert_eq!(usage("usage=negative")[0]["completion_tokens"], -9);
    assert_eq!(usage("usage=huge")[0]["completion_tokens"], u64::MAX);
    assert_eq!(usage("usage=zero")[0]["total_tokens"], 0);
    assert_eq!(usage("usage=null"), [Value::Null]);
    assert_eq!(usage("usage=missing"), Vec::<Value>::new());
    assert_eq!(usage("usage=repeated").len(), 2);
    let whole = post(
        engine.addr(),
        "/v1/chat/completions",
        &[("x-fault", "usage=x10"), ("x-engine-tokens", "9")],
        &chat(json!({})).to_string(),
    );
    assert_eq!(whole.json()["usage"]["completion_tokens"], 90);
}

#[test]
fn streams_break_at_the_requested_event() {
    let engine = start(fast());
    let events = |text: &str| text.matches("data: ").count();
    let whole = raw(&engine, "");
    assert!(whole.ends_with("0\r\n\r\n"));
    let reset = raw(&engine, "reset=3");
    assert_eq!(events(&reset), 3);
    assert!(!reset.ends_with("0\r\n\r\n"), "cut, not ended");
    let truncated = raw(&engine, "truncate=3");
    assert!(truncated.ends_with("0\r\n\r\n") && !truncated.contains("[DONE]"));
    let garbled = raw(&engine, "garble=2");
    assert!(garbled.contains('\u{fffd}') && garbled.contains("[DONE]"));
    assert_eq!(events(&garbled), events(&whole));
}

#[test]
fn split_events_join_to_the_same_stream() {
    let engine = start(fast());
    let text = |reply: Reply| {
        let parsed = reply
            .events()
            .into_iter()
            .filter_map(|e| serde_json::from_str::<Value>(&e).ok());
        parsed.map(|e| e["choices"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(text(stream(&engine, "split=7")), text(stream(&engine, "")));
}

#[test]
fn stalls_last_as_long_as_requested() {
    let engine = start(fast());
    for fault in ["stall-head=120", "stall=2:120"] {
        let began = Began::now();
        assert_eq!(stream(&engine, fault).status, 200);
        began.took_at_least(Duration::from_millis(120));
    }
}

#[test]
fn an_injected_fault_hits_a_share_of_calls_until_it_is_cleared() {
    let engine = start(fast());
    let asked = json!({"fault": "status=500", "share": 0.5}).to_string();
    assert_eq!(
        post(engine.addr(), "/_engine/faults", &[], &asked).status,
        200
    );
    let body = chat(json!({})).to_string();
    let statuses: Vec<u16> = (0..10)
        .map(|_| post(engine.addr(), "/v1/chat/completions", &[], &body).status)
        .collect();
    assert_eq!(
        statuses.iter().filter(|s| **s == 500).count(),
        5,
        "{statuses:?}"
    );
    assert_eq!(get(engine.addr(), "/_engine/faults").json()["struck"], 5);
    assert_eq!(
        send(engine.addr(), "DELETE", "/_engine/faults", &[], "").status,
        200
    );
    assert_eq!(
        post(engine.addr(), "/v1/chat/completions", &[], &body).status,
        200
    );
    assert_eq!(
        post(
            engine.addr(),
            "/_engine/faults",
            &[],
            "{\"fault\":\"status=1\"}"
        )
        .status,
        400
    );
}
