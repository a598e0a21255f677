//! Format and pace of streams, over HTTP/1.1 and over HTTP/2 with prior knowledge.

use std::time::Duration;

use bytes::Bytes;
use engine::tokenizer::Tokenizer;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use testing::Began;

use crate::client::{Reply, chat, fast, post, post_chat, start};

fn stream(extra: Value, headers: &[(&str, &str)]) -> Reply {
    let engine = start(fast());
    let mut body = chat(extra);
    body["stream"] = json!(true);
    post(
        engine.addr(),
        "/v1/chat/completions",
        headers,
        &body.to_string(),
    )
}

fn chunks(reply: &Reply) -> Vec<Value> {
    let mut events = reply.events();
    assert_eq!(events.pop().as_deref(), Some("[DONE]"));
    events
        .iter()
        .map(|e| serde_json::from_str(e).expect("a JSON chunk"))
        .collect()
}

#[test]
fn a_chat_stream_is_role_tokens_finish_usage_done() {
    let reply = stream(
        json!({"stream_options": {"include_usage": true}}),
        &[("x-engine-tokens", "9")],
    );
    assert!(
        reply.head.contains("content-type: text/event-stream"),
        "{}",
        reply.head
    );
    let chunks = chunks(&reply);
    // Four of the nine tokens are special tokens, which have no text.
    assert_eq!(chunks.len(), 1 + 5 + 1 + 1);
    assert_eq!(
        chunks[0]["choices"][0]["delta"],
        json!({"role": "assistant", "content": ""})
    );
    let content: String = chunks[1..6]
        .iter()
        .map(|c| c["choices"][0]["delta"]["content"].as_str().unwrap())
        .collect();
    assert_eq!(Tokenizer::o200k().count(&content), 5);
    assert_eq!(chunks[6]["choices"][0]["finish_reason"], "stop");
    assert_eq!(chunks[7]["choices"], json!([]));
    assert_eq!(chunks[7]["usage"]["completion_tokens"], 9);
    assert!(chunks[..7].iter().all(|c| c.get("usage").is_none()));
}

#[test]
fn usage_is_streamed_only_if_asked() {
    let chunks = chunks(&stream(json!({}), &[]));
    assert!(
        chunks
            .iter()
            .all(|c| c.get("usage").is_none() && c["choices"][0].is_object())
    );
}

#[test]
fn continuous_usage_grows_with_the_tokens() {
    let options =
        json!({"stream_options": {"include_usage": true, "continuous_usage_stats": true}});
    let chunks = chunks(&stream(options, &[("x-engine-tokens", "7")]));
    let counts: Vec<u64> = chunks
        .iter()
        .map(|c| c["usage"]["completion_tokens"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [0, 4, 5, 6, 7, 7]);
}

#[test]
fn the_arguments_of_a_streamed_tool_call_concatenate_to_json() {
    let tools = json!([{"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}}}]);
    let choice = json!({"type": "function", "function": {"name": "f"}});
    let chunks = chunks(&stream(json!({"tools": tools, "tool_choice": choice}), &[]));
    let call = |c: &Value| c["choices"][0]["delta"]["tool_calls"][0]["function"].clone();
    let names: Vec<Value> = chunks
        .iter()
        .map(|c| call(c)["name"].clone())
        .filter(|n| !n.is_null())
        .collect();
    assert_eq!(names, ["f"]);
    let spelled: String = chunks[1..]
        .iter()
        .filter_map(|c| call(c)["arguments"].as_str().map(str::to_owned))
        .collect();
    let arguments: Value = serde_json::from_str(&spelled).unwrap();
    assert!(
        arguments["n"].is_i64() && arguments.as_object().unwrap().len() == 1,
        "{spelled}"
    );
    assert_eq!(
        chunks.last().unwrap()["choices"][0]["finish_reason"],
        "stop"
    );
}

#[test]
fn a_completion_stream_ends_on_its_last_token() {
    let engine = start(fast());
    let body = json!({"model": "gpt-oss-120b", "prompt": "a", "max_tokens": 4, "ignore_eos": true, "stream": true,
        "stream_options": {"include_usage": true}});
    let chunks = chunks(&post(
        engine.addr(),
        "/v1/completions",
        &[],
        &body.to_string(),
    ));
    let reasons: Vec<&Value> = chunks[..4]
        .iter()
        .map(|c| &c["choices"][0]["finish_reason"])
        .collect();
    assert_eq!(
        reasons,
        [&Value::Null, &Value::Null, &Value::Null, &json!("length")]
    );
    assert_eq!(chunks[4]["usage"]["completion_tokens"], 4);
}

#[test]
fn a_response_stream_is_numbered_and_ends_completed() {
    let engine = start(fast());
    let body = json!({"model": "gpt-oss-120b", "input": "hi", "stream": true});
    let reply = post(
        engine.addr(),
        "/v1/responses",
        &[("x-engine-tokens", "9")],
        &body.to_string(),
    );
    let events: Vec<Value> = reply
        .events()
        .iter()
        .map(|e| serde_json::from_str(e).unwrap())
        .collect();
    let kinds: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    let delta = "response.output_text.delta";
    assert_eq!(
        kinds,
        [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            delta,
            delta,
            delta,
            delta,
            delta,
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.completed",
        ]
    );
    assert!(
        events
            .iter()
            .enumerate()
            .all(|(i, e)| e["sequence_number"] == i)
    );
    let deltas: String = events.iter().filter_map(|e| e["delta"].as_str()).collect();
    let last = &events[12]["response"];
    assert_eq!(last["output"][0]["content"][0]["text"], deltas);
    assert_eq!(last["usage"]["output_tokens"], 9);
    assert_eq!(Tokenizer::o200k().count(&deltas), 5);
}

#[test]
fn the_pace_is_that_of_the_headers() {
    let headers = [
        ("x-engine-ttft-ms", "40"),
        ("x-engine-itl-ms", "10"),
        ("x-engine-tokens", "6"),
    ];
    for streamed in [true, false] {
        let engine = start(fast());
        let began = Began::now();
        post(
            engine.addr(),
            "/v1/chat/completions",
            &headers,
            &chat(json!({"stream": streamed})).to_string(),
        );
        began.took_at_least(Duration::from_millis(90));
    }
}

#[test]
fn http_2_with_prior_knowledge_streams_the_same() {
    let engine = start(fast());
    let address = engine.addr();
    let mut body = chat(json!({"stream": true}));
    let over_1 = post_chat(address, &body);
    body["stream"] = json!(true);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (version, collected) = runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(socket))
                .await
                .unwrap();
        let driver = tokio::spawn(connection);
        let uri = format!("http://{address}/v1/chat/completions");
        let request = http::Request::post(uri)
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        let response = sender.send_request(request).await.unwrap();
        let version = response.version();
        let collected = response.into_body().collect().await.unwrap().to_bytes();
        driver.abort();
        (version, collected)
    });
    assert_eq!(version, http::Version::HTTP_2);
    let over_2 = Reply {
        status: 200,
        head: String::new(),
        body: String::from_utf8(collected.to_vec()).unwrap(),
    };
    let deltas = |reply: &Reply| {
        chunks(reply)
            .iter()
            .map(|c| c["choices"][0].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(deltas(&over_1), deltas(&over_2));
}

#[test]
fn a_messages_stream_starts_fills_and_stops_its_blocks() {
    let engine = start(fast());
    let mut body = json!({"model": "gpt-oss-120b", "max_tokens": 60,
        "messages": [{"role": "user", "content": "Where is the gate?"}]});
    let whole = post(engine.addr(), "/v1/messages", &[], &body.to_string()).json();
    body["stream"] = json!(true);
    let events = post(engine.addr(), "/v1/messages", &[], &body.to_string()).events();
    let events: Vec<Value> = events
        .iter()
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect();
    let kinds: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"message_start"));
    assert_eq!(kinds[kinds.len() - 2..], ["message_delta", "message_stop"]);
    let mut blocks_streamed = Vec::new();
    for event in &events {
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                assert_eq!(event["index"], blocks_streamed.len());
                blocks_streamed.push(String::new());
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                let text = delta["text"].as_str().or(delta["thinking"].as_str());
                let at = event["index"].as_u64().unwrap() as usize;
                assert_eq!(at + 1, blocks_streamed.len(), "one block after another");
                blocks_streamed[at].push_str(text.unwrap());
            }
            _ => {}
        }
    }
    let blocks = whole["content"].as_array().unwrap();
    let said = |b: &Value| {
        b["text"]
            .as_str()
            .or(b["thinking"].as_str())
            .map(str::to_owned)
    };
    assert_eq!(
        blocks_streamed,
        blocks.iter().filter_map(said).collect::<Vec<_>>()
    );
    assert_eq!(
        events[0]["message"]["usage"]["input_tokens"],
        whole["usage"]["input_tokens"]
    );
    assert_eq!(events[events.len() - 2]["usage"], whole["usage"]);
}
