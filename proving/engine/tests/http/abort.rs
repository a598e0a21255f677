//! A client disconnect stops the work and is counted as an abort.

use std::io::Read;
use std::time::{Duration, Instant};

use engine::{EngineHandle, Stats};
use serde_json::json;

use crate::client::{chat, fast, open, start};

fn wait_for(engine: &EngineHandle, what: &str, done: impl Fn(&Stats) -> bool) -> Stats {
    let deadline = Instant::now() + Duration::from_secs(5);
    while !done(&engine.stats()) {
        assert!(Instant::now() < deadline, "{what}: {:?}", engine.stats());
        std::thread::sleep(Duration::from_millis(5));
    }
    engine.stats()
}

#[test]
fn a_disconnect_aborts_a_stream_after_the_tokens_it_generated() {
    let engine = start(fast());
    let headers = [("x-engine-itl-ms", "20"), ("x-engine-tokens", "1000")];
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
    assert!(stats.generation_tokens < 1000);
    std::thread::sleep(Duration::from_millis(80));
    assert_eq!(
        engine.stats().generation_tokens,
        stats.generation_tokens,
        "no token after the abort"
    );
}

#[test]
fn a_disconnect_aborts_a_unary_call_too() {
    let engine = start(fast());
    let headers = [("x-engine-itl-ms", "10"), ("x-engine-tokens", "1000")];
    let client = open(
        engine.addr(),
        "POST",
        "/v1/chat/completions",
        &headers,
        &chat(json!({})).to_string(),
    );
    wait_for(&engine, "a start", |s| s.running == 1);
    std::thread::sleep(Duration::from_millis(60));
    drop(client);
    let stats = wait_for(&engine, "an abort", |s| s.finished_abort == 1);
    assert!((3..1000).contains(&stats.generation_tokens), "{stats:?}");
}

#[test]
fn stopping_the_engine_cuts_calls_in_flight() {
    let engine = start(fast());
    let headers = [("x-engine-itl-ms", "20"), ("x-engine-tokens", "1000")];
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
