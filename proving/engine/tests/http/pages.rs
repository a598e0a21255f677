//! What the server tells of itself: paths, settings, load, its tokenizer, its metrics of HTTP and of the process.

use std::time::Duration;

use engine::{EngineConfig, ModelFiles, VLLM_VERSION};
use serde_json::{Value, json};
use testing::eventually;

use crate::client::{chat, fast, get, open, post, post_chat, send, start};
use crate::machine::machine;

#[test]
fn every_path_that_is_told_answers_and_no_other_method_does() {
    let engine = start(fast());
    let document = get(engine.addr(), "/openapi.json").json();
    assert_eq!(document["info"]["version"], VLLM_VERSION);
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 20, "{paths:?}");
    for (path, methods) in paths {
        let methods = methods.as_object().unwrap();
        let asked = path.replace("{model}", "gpt-oss-120b");
        for method in ["GET", "POST", "DELETE", "PUT"] {
            let reply = send(engine.addr(), method, &asked, &[], "{}");
            let is_told = methods.contains_key(&method.to_lowercase());
            assert_eq!(
                reply.status != 405,
                is_told,
                "{method} {path}: {}",
                reply.body
            );
            assert_ne!(reply.status, 404, "{method} {path}");
        }
    }
    for path in [
        "/docs",
        "/v1/audio/speech",
        "/_engine/nothing",
        "/v1",
        "/v1/models/",
    ] {
        assert_eq!(get(engine.addr(), path).status, 404, "{path}");
    }
    let closed = start(EngineConfig {
        inspect: false,
        ..fast()
    });
    let document = get(closed.addr(), "/openapi.json").json();
    assert_eq!(document["paths"]["/_engine/requests"], Value::Null);
    assert_eq!(get(closed.addr(), "/_engine/requests").status, 404);
}

#[test]
fn what_a_path_requires_is_what_its_refusal_misses() {
    let engine = start(EngineConfig {
        enable_scale_out: true,
        ..fast()
    });
    let document = get(engine.addr(), "/openapi.json").json();
    let mut seen = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let schema = &methods["post"]["requestBody"]["content"]["application/json"]["schema"];
        let all = json!({"messages": [{"role": "user", "content": "x"}], "prompt": "x", "input": "x",
            "max_tokens": 5, "text_1": "x", "text_2": "x", "query": "x", "documents": ["x"], "tokens": [1]});
        let required = schema["required"].as_array();
        for member in required.into_iter().flatten() {
            let mut body = json!({});
            for name in required.into_iter().flatten().filter_map(Value::as_str) {
                body[name] = all[name].clone();
            }
            let whole = post(engine.addr(), path, &[], &body.to_string());
            assert_eq!(whole.status, 200, "{path}: {}", whole.body);
            body.as_object_mut()
                .unwrap()
                .remove(member.as_str().unwrap());
            let reply = post(engine.addr(), path, &[], &body.to_string());
            assert_eq!(reply.status, 400, "{path} without {member}: {}", reply.body);
            seen += 1;
        }
    }
    assert_eq!(seen, 23);
}

#[test]
fn the_version_is_that_of_the_vllm_that_is_imitated() {
    let engine = start(fast());
    assert_eq!(
        get(engine.addr(), "/version").json(),
        json!({"version": VLLM_VERSION})
    );
    let keyed = start(EngineConfig {
        api_key: Some("sk-secret".to_owned()),
        ..machine(1.0, 0.0, 500)
    });
    let info = get(keyed.addr(), "/server_info?config_format=json").json();
    assert_eq!(info["vllm_config"]["cache_config"]["num_gpu_blocks"], 500);
    assert_eq!(info["vllm_config"]["model_config"]["max_model_len"], 8192);
    let text = get(keyed.addr(), "/server_info");
    let said = text.json()["vllm_config"].as_str().unwrap().to_owned();
    assert!(said.contains("num_gpu_blocks=500"), "{said}");
    assert!(!text.body.contains("sk-secret"));
    assert_eq!(
        get(keyed.addr(), "/server_info?config_format=xml").status,
        400
    );
}

#[test]
fn load_is_the_calls_in_flight() {
    let engine = start(EngineConfig {
        ttft: Duration::from_secs(3600),
        ..fast()
    });
    let load = || {
        get(engine.addr(), "/load").json()["server_load"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(load(), 0);
    let body = chat(json!({"stream": true})).to_string();
    let held: Vec<_> = (0..3)
        .map(|_| open(engine.addr(), "POST", "/v1/chat/completions", &[], &body))
        .collect();
    eventually("three calls", || load() == 3);
    drop(held);
    eventually("no call", || load() == 0);
}

#[test]
fn a_reset_empties_the_prefix_cache() {
    let engine = start(EngineConfig {
        enable_prompt_tokens_details: true,
        ..machine(0.2, 0.0, 1000)
    });
    let body = chat(
        json!({"messages": [{"role": "user", "content": "word ".repeat(200)}], "max_tokens": 4}),
    );
    let cached = || {
        let answer = post_chat(engine.addr(), &body).json();
        answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            .as_u64()
            .unwrap_or(0)
    };
    assert_eq!(cached(), 0);
    assert!(cached() > 100);
    let reply = post(engine.addr(), "/reset_prefix_cache", &[], "");
    assert_eq!((reply.status, reply.json()), (200, json!({"reset": true})));
    assert_eq!(cached(), 0);
    assert_eq!(
        post(start(fast()).addr(), "/reset_prefix_cache", &[], "").status,
        200
    );
}

#[test]
fn the_tokenizer_tells_of_itself() {
    let info = get(start(fast()).addr(), "/tokenizer_info").json();
    assert_eq!(
        (&info["eos_token"], &info["vocab_size"]),
        (&json!("<|return|>"), &json!(201_088))
    );
    let words: Vec<String> = (0..300)
        .map(|i| format!("\"\u{120}w{}\": {}", "a".repeat(i), i + 1))
        .collect();
    let tokenizer = format!(
        r#"{{"version":"1.0","added_tokens":[],"normalizer":null,"pre_tokenizer":{{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}},"post_processor":null,"decoder":{{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true}},"model":{{"type":"WordLevel","vocab":{{"[UNK]":0,{}}},"unk_token":"[UNK]"}}}}"#,
        words.join(",")
    );
    let files = ModelFiles {
        tokenizer,
        config: Some(
            r#"{"tokenizer_class":"Odd","eos_token":"[UNK]","chat_template":"{{ messages }}"}"#
                .to_owned(),
        ),
        chat_template: None,
    };
    let engine = start(EngineConfig {
        models: vec!["odd".to_owned()],
        files: Some(files),
        ..fast()
    });
    let info = get(engine.addr(), "/tokenizer_info").json();
    assert_eq!(
        (&info["tokenizer_class"], &info["chat_template"]),
        (&json!("Odd"), &json!("{{ messages }}"))
    );
    assert_eq!(info["vocab_size"], 301);
}

#[test]
fn calls_are_counted_by_path_method_and_class_of_status() {
    let engine = start(fast());
    let body = chat(json!({})).to_string();
    for _ in 0..3 {
        assert_eq!(
            post(engine.addr(), "/v1/chat/completions", &[], &body).status,
            200
        );
    }
    let answer = post(
        engine.addr(),
        "/v1/chat/completions",
        &[],
        &chat(json!({"top_k": -5})).to_string(),
    );
    assert_eq!(answer.status, 400);
    get(engine.addr(), "/nowhere/at/all");
    get(engine.addr(), "/health");
    let page = get(engine.addr(), "/metrics").body;
    let value = |series: &str| -> f64 {
        let line = page
            .lines()
            .find_map(|l| l.strip_prefix(series))
            .unwrap_or_else(|| panic!("{series}\n{page}"));
        line.trim().parse().unwrap()
    };
    let chat = r#"handler="/v1/chat/completions""#;
    assert_eq!(
        value(&format!(
            "http_requests_total{{{chat},method=\"POST\",status=\"2xx\"}}"
        )),
        3.0
    );
    assert_eq!(
        value(&format!(
            "http_requests_total{{{chat},method=\"POST\",status=\"4xx\"}}"
        )),
        1.0
    );
    assert_eq!(
        value(r#"http_requests_total{handler="none",method="GET",status="4xx"}"#),
        1.0
    );
    assert!(!page.contains("/nowhere") && !page.contains("handler=\"/health\""));
    let asked = value(&format!("http_request_size_bytes_sum{{{chat}}}"));
    assert!(asked > 4.0 * 80.0 && asked < 4.0 * 120.0, "{asked}");
    assert!(value(&format!("http_response_size_bytes_sum{{{chat}}}")) > 1000.0);
    assert_eq!(
        value(&format!(
            "http_request_duration_seconds_count{{{chat},method=\"POST\"}}"
        )),
        4.0
    );
    assert_eq!(value("http_request_duration_highr_seconds_count"), 5.0);
    assert_eq!(
        value("http_request_duration_highr_seconds_bucket{le=\"+Inf\"}"),
        5.0
    );
    assert!(value("process_resident_memory_bytes") > 1e6);
    assert!(value("process_cpu_seconds_total") > 0.0);
}

#[test]
fn a_stream_is_counted_when_it_has_ended() {
    let engine = start(EngineConfig {
        inter_token: Duration::from_millis(10),
        ..fast()
    });
    let body = json!({"model": "gpt-oss-120b", "prompt": "x", "max_tokens": 30, "ignore_eos": true, "stream": true});
    post(engine.addr(), "/v1/completions", &[], &body.to_string());
    let page = get(engine.addr(), "/metrics").body;
    let sum = page.lines().find_map(|l| {
        l.strip_prefix(
            "http_request_duration_seconds_sum{handler=\"/v1/completions\",method=\"POST\"} ",
        )
    });
    let took: f64 = sum.unwrap().parse().unwrap();
    assert!(took >= 0.28, "{took}");
    assert!(page.contains("http_response_size_bytes_sum{handler=\"/v1/completions\"} 0.0"));
}

#[test]
fn what_is_alike_scores_higher_and_comes_first() {
    let engine = start(fast());
    let texts = json!({"text_1": "the river runs to the sea", "text_2": ["a paper on budgets", "the river is long"]});
    for path in ["/score", "/v1/score"] {
        let answer = post(engine.addr(), path, &[], &texts.to_string()).json();
        let scores: Vec<f64> = (0..2)
            .map(|i| answer["data"][i]["score"].as_f64().unwrap())
            .collect();
        assert!(
            0.0 < scores[0] && scores[0] < scores[1] && scores[1] < 1.0,
            "{scores:?}"
        );
        assert_eq!(answer["data"][1]["object"], "score");
        assert!(answer["usage"]["prompt_tokens"].as_u64().unwrap() > 15);
        assert!(answer["id"].as_str().unwrap().starts_with("score-"));
    }
    let ask = json!({"query": "river", "documents": ["paper", "a river", "sea"], "top_n": 2});
    for path in ["/rerank", "/v1/rerank", "/v2/rerank"] {
        let answer = post(engine.addr(), path, &[], &ask.to_string()).json();
        let results = answer["results"].as_array().unwrap();
        assert_eq!(results.len(), 2);
        assert!(results[0]["relevance_score"].as_f64() >= results[1]["relevance_score"].as_f64());
        assert_eq!(
            answer["usage"]["prompt_tokens"],
            answer["usage"]["total_tokens"]
        );
        for one in results {
            let index = one["index"].as_u64().unwrap() as usize;
            assert_eq!(one["document"]["text"], ask["documents"][index]);
        }
    }
}

#[test]
fn scores_of_what_does_not_pair_are_refused() {
    let engine = start(EngineConfig {
        api_key: Some("k".to_owned()),
        ..fast()
    });
    for (path, body, status) in [
        (
            "/score",
            json!({"text_1": ["a", "b"], "text_2": ["a", "b", "c"]}),
            400,
        ),
        ("/score", json!({"text_1": [], "text_2": "a"}), 400),
        ("/score", json!({"text_1": "a"}), 400),
        (
            "/rerank",
            json!({"query": ["a", "b"], "documents": ["a"]}),
            400,
        ),
        (
            "/rerank",
            json!({"query": "a", "documents": [{"type": "image_url", "image_url": {}}]}),
            400,
        ),
        (
            "/rerank",
            json!({"query": "a", "documents": ["a"], "top_n": -1}),
            400,
        ),
        (
            "/rerank",
            json!({"query": "a", "documents": {"content": [{"type": "text", "text": "a"}]}}),
            200,
        ),
        ("/v1/rerank", json!({"query": "a", "documents": ["a"]}), 401),
    ] {
        let reply = post(engine.addr(), path, &[], &body.to_string());
        assert_eq!(reply.status, status, "{path} {body}: {}", reply.body);
    }
}
