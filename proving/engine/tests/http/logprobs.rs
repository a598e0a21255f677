//! Echoes of prompts, and log probabilities of prompts and answers.

use engine::tokenizer::Tokenizer;
use serde_json::{Value, json};

use crate::client::{chat, fast, post, post_chat, start};
use crate::machine::machine;

fn complete(extra: Value) -> Value {
    let mut body = json!({"model": "gpt-oss-120b", "prompt": "naïve one two", "max_tokens": 6, "ignore_eos": true});
    for (name, value) in extra.as_object().unwrap() {
        body[name] = value.clone();
    }
    let engine = start(fast());
    let reply = post(engine.addr(), "/v1/completions", &[], &body.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    if body["stream"] == true {
        let events = reply.events();
        let parsed = events
            .iter()
            .filter_map(|e| serde_json::from_str::<Value>(e).ok());
        return parsed.collect();
    }
    reply.json()
}

fn list<'a>(logprobs: &'a Value, name: &str) -> &'a Vec<Value> {
    logprobs[name].as_array().unwrap()
}

#[test]
fn a_completion_has_four_lists_of_one_length() {
    let choice = complete(json!({"logprobs": 2}))["choices"][0].clone();
    let lists = &choice["logprobs"];
    for name in ["text_offset", "token_logprobs", "tokens", "top_logprobs"] {
        assert_eq!(list(lists, name).len(), 6, "{name}");
    }
    let joined: String = list(lists, "tokens")
        .iter()
        .map(|t| t.as_str().unwrap())
        .collect();
    assert_eq!(choice["text"], joined);
    let mut at = 0;
    for (i, token) in list(lists, "tokens").iter().enumerate() {
        assert_eq!(lists["text_offset"][i], at);
        at += token.as_str().unwrap().chars().count();
        let top = lists["top_logprobs"][i].as_object().unwrap();
        assert_eq!(top.len(), 2);
        assert_eq!(top[token.as_str().unwrap()], lists["token_logprobs"][i]);
        let sum: f64 = top.values().map(|p| p.as_f64().unwrap().exp()).sum();
        assert!(sum <= 1.0 + 1e-9, "{sum}");
    }
    let least =
        complete(json!({"logprobs": 0}))["choices"][0]["logprobs"]["top_logprobs"][0].clone();
    assert_eq!(
        least.as_object().unwrap().len(),
        1,
        "0 shows the token itself"
    );
    assert_eq!(complete(json!({}))["choices"][0]["logprobs"], Value::Null);
}

#[test]
fn an_echo_says_the_prompt_first_and_its_first_token_has_no_probability() {
    let plain = complete(json!({}))["choices"][0]["text"].clone();
    let answer = complete(json!({"echo": true, "logprobs": 1}));
    let choice = &answer["choices"][0];
    let text = choice["text"].as_str().unwrap();
    assert_eq!(text, format!("naïve one two{}", plain.as_str().unwrap()));
    let prompt = Tokenizer::o200k().count("naïve one two") as usize;
    assert_eq!(answer["usage"]["prompt_tokens"], prompt);
    assert_eq!(answer["usage"]["completion_tokens"], 6);
    let lists = &choice["logprobs"];
    assert_eq!(list(lists, "tokens").len(), prompt + 6);
    assert_eq!(lists["token_logprobs"][0], Value::Null);
    assert_eq!(lists["top_logprobs"][0], Value::Null);
    assert!(list(lists, "token_logprobs")[1..].iter().all(Value::is_f64));
    assert_eq!(
        lists["text_offset"][prompt],
        "naïve one two".chars().count()
    );
    assert_eq!(choice["prompt_logprobs"].as_array().unwrap().len(), prompt);
}

#[test]
fn an_echo_of_no_tokens_is_the_prompt_alone() {
    for stream in [false, true] {
        let mut answer = complete(
            json!({"echo": true, "logprobs": 1, "max_tokens": 0, "stream": stream,
            "stream_options": if stream { json!({"include_usage": true}) } else { Value::Null }}),
        );
        if stream {
            answer = answer[0].take();
        }
        let choice = &answer["choices"][0];
        assert_eq!(choice["text"], "naïve one two", "{answer}");
        assert_eq!(choice["finish_reason"], "length");
        let prompt = Tokenizer::o200k().count("naïve one two") as usize;
        assert_eq!(list(&choice["logprobs"], "tokens").len(), prompt);
    }
}

#[test]
fn a_stream_has_the_lists_of_the_whole_answer() {
    let ask = json!({"echo": true, "logprobs": 2, "n": 2});
    let whole = complete(ask.clone());
    let mut streamed = ask;
    streamed["stream"] = json!(true);
    let events = complete(streamed);
    for i in 0..2 {
        let said = events.as_array().unwrap().iter();
        let mine: Vec<&Value> = said
            .map(|e| &e["choices"][0])
            .filter(|c| c["index"] == i)
            .collect();
        let choice = &whole["choices"][i];
        let text: String = mine.iter().map(|c| c["text"].as_str().unwrap()).collect();
        assert_eq!(choice["text"], text);
        for name in ["text_offset", "token_logprobs", "tokens", "top_logprobs"] {
            let joined: Vec<&Value> = mine
                .iter()
                .flat_map(|c| list(&c["logprobs"], name))
                .collect();
            let all: Vec<&Value> = list(&choice["logprobs"], name).iter().collect();
            assert_eq!(joined, all, "{name} of choice {i}");
        }
    }
}

#[test]
fn a_chat_has_log_probabilities_of_its_prompt() {
    let engine = start(fast());
    let body = chat(json!({"prompt_logprobs": 2}));
    let reply = post_chat(engine.addr(), &body);
    let answer = reply.json();
    let of_prompt = answer["prompt_logprobs"].as_array().unwrap();
    assert_eq!(
        of_prompt.len() as u64,
        answer["usage"]["prompt_tokens"].as_u64().unwrap()
    );
    assert_eq!(of_prompt[0], Value::Null);
    for one in &of_prompt[1..] {
        let entries = one.as_object().unwrap();
        assert_eq!(entries.len(), 2);
        assert!(
            entries
                .values()
                .any(|e| e["rank"] == 1 && e["decoded_token"].is_string()),
            "{one}"
        );
        assert!(entries.keys().all(|id| id.parse::<u32>().is_ok()));
    }
}

#[test]
fn a_prompt_whose_probabilities_are_asked_for_is_computed_whole() {
    let engine = start(engine::EngineConfig {
        enable_prompt_tokens_details: true,
        ..machine(0.2, 0.0, 1000)
    });
    let ask = |extra: Value| {
        let mut body =
            json!({"model": "gpt-oss-120b", "prompt": "word ".repeat(200), "max_tokens": 2});
        body["prompt_logprobs"] = extra;
        let reply = post(engine.addr(), "/v1/completions", &[], &body.to_string());
        reply.json()["usage"]["prompt_tokens_details"].clone()
    };
    assert_eq!(ask(Value::Null), Value::Null);
    assert!(ask(Value::Null)["cached_tokens"].as_u64().unwrap() > 100);
    assert_eq!(ask(json!(1)), Value::Null);
}
