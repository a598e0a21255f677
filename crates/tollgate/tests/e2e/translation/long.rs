//! Calls and answers that are long: what is gone through beside the worker, what is refused by its number of values, and what may wait
//! for clients that do not take it.
//!
//! Not here: that the worker goes on meanwhile (`proxy::sim::seam::filters`).

use serde_json::{Value, json};
use testing::eventually;

use crate::harness::answer::json as answer;
use crate::harness::{Connection, Gate, Step, Upstream, post};

const GEMINI: &str = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"totalTokenCount":10}}"#;

fn gate(upstream: &Upstream, workloads: &str, more: &str) -> Gate {
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1beta, dialect: gemini, credential: {{ inline: its-key }} }} }}\n\
         routes: [ {{ workload: {workloads}, backend: up }} ]\n{more}",
        upstream.address
    );
    Gate::start(&config, &[])
}

fn call(messages: &[Value]) -> Vec<u8> {
    let body = json!({ "model": "m", "messages": messages }).to_string();
    post("/v1/chat/completions", &["x-workload-app: one"], &body)
}

fn said(text: &str) -> Value {
    json!({ "role": "user", "content": [{ "type": "text", "text": text }] })
}

#[test]
fn a_long_call_is_translated_whole() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer(200, GEMINI))]);
    let gate = gate(&upstream, "[one, two]", "");
    let long = "x".repeat(4 << 10);
    let messages: Vec<Value> = (0..512).map(|nth| said(&format!("{nth} {long}"))).collect();
    let response = gate.call(&call(&messages));
    assert_eq!(response.status, 200, "{}", response.text());
    let seen = upstream.seen().pop().expect("it arrived");
    let body: Value = serde_json::from_slice(&seen.body).expect("JSON");
    // Messages of one role that follow each other are one.
    let parts = body["contents"][0]["parts"].as_array().expect("parts");
    assert_eq!(parts.len(), messages.len());
    for (nth, part) in parts.iter().enumerate() {
        assert_eq!(part["text"], messages[nth]["content"][0]["text"]);
    }
}

#[test]
fn a_long_call_that_names_a_stored_file_is_refused_where_its_account_is_shared() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer(200, GEMINI))]);
    let gate = gate(&upstream, "[one, two]", "");
    let mut messages = vec![said(&"x".repeat(1 << 20))];
    messages.push(
        json!({ "role": "user", "content": [{ "type": "file", "file": { "file_id": "file-1" } }] }),
    );
    let response = gate.call(&call(&messages));
    assert_eq!(
        (response.status, response.code().as_str()),
        (400, "account_shared")
    );
    messages.pop();
    messages.push(json!({ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "https://storage.googleapis.com/b/x.png" } }] }));
    let response = gate.call(&call(&messages));
    assert_eq!(
        (response.status, response.code().as_str()),
        (400, "account_shared")
    );
    assert!(response.text().contains("messages[1].content[0]"));
    assert!(upstream.seen().is_empty());
}

#[test]
fn a_call_of_too_many_parts_is_not_taken_apart() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer(200, GEMINI))]);
    let gate = gate(&upstream, "one", "");
    let parts = vec![json!({ "type": "text", "text": "a" }); 60_000];
    let response = gate.call(&call(&[json!({ "role": "user", "content": parts })]));
    assert_eq!(
        (response.status, response.code().as_str()),
        (400, "call_not_translatable")
    );
    let says = response.text();
    assert!(says.contains("131072 values"), "{says}");
    assert!(upstream.seen().is_empty());
}

#[test]
fn what_is_made_of_a_call_counts_among_the_bodies_that_are_kept() {
    let upstream = Upstream::start(|_, _| vec![Step::Send(answer(200, GEMINI))]);
    let more = "workers: 1\nbounds: { body: 64KiB, bodies: 64KiB }\n";
    let gate = gate(&upstream, "one", more);
    let asked = call(&[said(&"x".repeat(30 << 10))]);
    // Alone it has room, however much is made of it.
    assert_eq!(gate.call(&asked).status, 200);
    let mut other = Connection::open(gate.data);
    other.send(&asked[..20 << 10]);
    eventually("the other body leaves no room", || {
        let response = gate.call(&asked);
        if response.status != 200 {
            assert_eq!(
                (response.status, response.code().as_str()),
                (503, "overloaded")
            );
        }
        response.status != 200
    });
    drop(other);
    eventually("there is room again", || gate.call(&asked).status == 200);
}

/// 20 MiB of text: seven of them are above the bound of what waits.
fn a_book() -> Vec<u8> {
    answer(200, &GEMINI.replace("Hi", &"x".repeat(20 << 20)))
}

#[test]
fn translated_answers_that_nobody_takes_are_bounded() {
    let upstream = Upstream::start(|_, seen| {
        let is_long = seen.body.windows(4).any(|word| word == b"book");
        vec![Step::Send(if is_long {
            a_book()
        } else {
            answer(200, GEMINI)
        })]
    });
    let gate = gate(
        &upstream,
        "one",
        "workers: 1\nbounds: { write_stall: 10m }\n",
    );
    let mut waiting = Vec::new();
    // Each takes nothing of its answer, but for what the system keeps of a connection.
    eventually("there is no room for another answer", || {
        let mut client = Connection::open(gate.data);
        client.send(&call(&[said("book")]));
        waiting.push(client);
        let response = gate.call(&call(&[said("book")]));
        if response.status == 200 {
            return false;
        }
        let code = response.code();
        assert_eq!(response.status, 503, "{code}");
        // Or it is no more than the bodies that are read at the same time.
        code == "answers_untaken"
    });
    // What is short needs no room, and what is taken leaves some.
    let response = gate.call(&call(&[said("short")]));
    assert_eq!(response.status, 200, "{}", response.text());
    drop(waiting);
    eventually("there is room again", || {
        gate.call(&call(&[said("book")])).status == 200
    });
}
