//! A client disconnect stops the work and is counted as an abort.

use std::io::Read;
use std::time::Duration;

use serde_json::json;
use testing::nothing_happens_for;

use crate::client::{chat, fast, open, start, wait_for};

/// Of an answer that does not end by itself while a test waits.
const ENDLESS: (&str, &str) = ("x-engine-tokens", "50000");

#[test]
fn a_disconnect_aborts_a_stream_after_the_tokens_it_generated() {
    let engine = start(fast());
    let headers = [("x-engine-itl-ms", "20"), ENDLESS];
    let body = chat(json!({"stream": true})).to_string();
    let mut client = open(
        engine.addr(),
        "POST",
        "/v1/chat/completions",
        &headers,
        &body,
    );
    let mut some = [0; 64];
    client.read_exact(&mut some).unwrap();
    wait_for(&engine, "three tokens", |s| s.generation_tokens >= 3);
    drop(client);
    let stats = wait_for(&engine, "an abort", |s| s.finished_abort == 1);
    assert_eq!((stats.running, stats.finished_stop), (0, 0));
    assert!(stats.generation_tokens < 50_000);
    nothing_happens_for(Duration::from_millis(80));
    assert_eq!(
        engine.stats().generation_tokens,
        stats.generation_tokens,
        "no token after the abort"
    );
}

#[test]
fn a_disconnect_aborts_a_unary_call_too() {
    let engine = start(fast());
    let headers = [("x-engine-itl-ms", "20"), ENDLESS];
    let client = open(
        engine.addr(),
        "POST",
        "/v1/chat/completions",
        &headers,
        &chat(json!({})).to_string(),
    );
    wait_for(&engine, "a start", |s| s.running == 1);
    // Its tokens are counted by the time that has passed when it is left.
    nothing_happens_for(Duration::from_millis(60));
    drop(client);
    let stats = wait_for(&engine, "an abort", |s| s.finished_abort == 1);
    assert!((3..50_000).contains(&stats.generation_tokens), "{stats:?}");
}

#[test]
fn stopping_the_engine_cuts_calls_in_flight() {
    let engine = start(fast());
    let headers = [("x-engine-itl-ms", "20"), ENDLESS];
    let mut client = open(
        engine.addr(),
        "POST",
        "/v1/chat/completions",
        &headers,
        &chat(json!({"stream": true})).to_string(),
    );
    wait_for(&engine, "a start", |s| s.running == 1);
    engine.stop();
    let mut rest = String::new();
    let _ = client.read_to_string(&mut rest);
    assert!(!rest.contains("[DONE]"));
}
