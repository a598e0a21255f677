//! A simulated machine behind the API: load is shared, cache blocks are released, and its metrics add up.

use std::time::Duration;

use engine::{EngineConfig, EngineHandle, Hardware};
use serde_json::json;
use simulator::cost::{DecodeCost, FrontendCost, PrefillCost, StepCost};
use simulator::kv::KvConfig;
use simulator::preset::Preset;
use simulator::scheduler::SchedulerConfig;
use simulator::virtual_time::Parallelism;
use testing::{Began, Draw, eventually, number_of, seed};

use crate::client::{chat, fast, get, open, post, post_chat, start, wait_for};

/// A machine whose every step takes `step_ms`, and each prompt token `prefill_us` more.
pub(crate) fn machine(step_ms: f64, prefill_us: f64, blocks: u32) -> EngineConfig {
    let scheduler = SchedulerConfig {
        max_num_seqs: 1024,
        max_num_batched_tokens: 8192,
        max_model_len: 8192,
        reserve_full_prompt: true,
        async_scheduling: true,
        kv: KvConfig {
            block_size: 16,
            blocks,
            prefix_caching: true,
            sliding_window: None,
        },
    };
    let preset = Preset::named("instant").unwrap();
    let cost = StepCost {
        experts: None,
        overhead_ms: step_ms,
        prefill: PrefillCost {
            base_ms: 0.0,
            per_token_us: prefill_us,
            per_pair_ns: 0.0,
        },
        decode: DecodeCost::Line {
            base_ms: 0.0,
            per_sequence_us: 0.0,
            per_context_token_ns: 0.0,
        },
    };
    let frontend = FrontendCost {
        before_queue: Duration::ZERO,
        per_token: Duration::ZERO,
    };
    EngineConfig {
        hardware: Some(Hardware {
            parallelism: Parallelism::default(),
            scheduler,
            cost,
            frontend,
            bounds: None,
            gpus: preset.gpus,
        }),
        max_model_len: 8192,
        ..fast()
    }
}

fn value(metrics: &str, start: &str) -> f64 {
    let line = metrics
        .lines()
        .find(|l| l.starts_with(start))
        .unwrap_or_else(|| panic!("{start}\n{metrics}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn steps_take_their_time_and_answers_are_complete() {
    let engine = start(machine(5.0, 0.0, 1000));
    for streamed in [false, true] {
        let began = Began::now();
        let reply = post(
            engine.addr(),
            "/v1/chat/completions",
            &[("x-engine-tokens", "40")],
            &chat(json!({"stream": streamed, "n": 2})).to_string(),
        );
        began.took_at_least(Duration::from_millis(195));
        assert_eq!(reply.status, 200, "{}", reply.body);
    }
    assert_eq!(engine.stats().generation_tokens, 160);
}

#[test]
fn a_long_prompt_slows_the_others() {
    let engine = start(machine(20.0, 150.0, 4000));
    let address = engine.addr();
    // It would take two minutes to its end.
    let headers = [("x-engine-tokens", "6000")];
    let body = chat(json!({"stream": true})).to_string();
    let other = open(address, "POST", "/v1/chat/completions", &headers, &body);
    wait_for(&engine, "the first", |s| s.generation_tokens > 5);
    let body = chat(
        json!({"messages": [{"role": "user", "content": "word ".repeat(6000)}], "max_tokens": 1}),
    );
    assert_eq!(post_chat(address, &body).status, 200);
    // 6,000 tokens of 150 us in one step, for which the other request waits too: by the machine's own clock.
    eventually("a gap between the other's tokens", || {
        let page = get(address, "/metrics").body;
        let of = |edge: &str| {
            let gaps = "vllm:inter_token_latency_seconds_bucket{engine=\"0\"";
            of_engine(&page, gaps, &format!("le=\"{edge}\""))
        };
        of("+Inf") > of("0.75")
    });
    assert_eq!(
        engine.stats().finished_stop + engine.stats().finished_length,
        1
    );
    drop(other);
    wait_for(&engine, "its abort", |s| s.finished_abort == 1);
}

#[test]
fn metrics_show_the_prefix_cache_and_the_scheduler() {
    let engine = start(machine(0.2, 0.0, 1000));
    let long =
        chat(json!({"messages": [{"role": "user", "content": "word ".repeat(200)}]})).to_string();
    for _ in 0..2 {
        post(engine.addr(), "/v1/chat/completions", &[], &long);
    }
    wait_for(&engine, "the end", |s| s.running == 0);
    let metrics = get(engine.addr(), "/metrics").body;
    let labels = "{engine=\"0\",model_name=\"gpt-oss-120b\"";
    let of = |name: &str| value(&metrics, &format!("vllm:{name}{labels}"));
    assert_eq!(of("request_success_total"), 2.0);
    let (queries, hits) = (
        of("prefix_cache_queries_total"),
        of("prefix_cache_hits_total"),
    );
    assert!(hits > 200.0 && hits < queries / 2.0, "{hits} of {queries}");
    assert_eq!(of("prompt_tokens_cached_total"), hits);
    assert_eq!(of("request_queue_time_seconds_count"), 2.0);
    assert_eq!(of("kv_cache_usage_perc"), 0.0);
    assert!(of("iteration_tokens_total_count") > 10.0);
    assert!(metrics.contains("vllm:cache_config_info{block_size=\"16\""));
}

#[test]
fn a_request_that_can_never_fit_is_refused() {
    let engine = start(machine(0.2, 0.0, 10));
    let body = chat(
        json!({"messages": [{"role": "user", "content": "word ".repeat(200)}], "max_tokens": 9}),
    );
    let reply = post_chat(engine.addr(), &body);
    assert_eq!(reply.status, 400, "{}", reply.body);
    assert!(reply.body.contains("KV cache"));
    let metrics = get(engine.addr(), "/metrics").body;
    let finished = metrics
        .lines()
        .filter(|line| line.starts_with("vllm:request_success_total{"));
    let counted: f64 = finished
        .map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap())
        .sum();
    assert_eq!(counted, 0.0, "it is no request of the engine: {metrics}");
}

#[test]
fn random_disconnects_leak_no_requests_or_cache_blocks() {
    let clients = number_of("ENGINE_ABORTS", 120);
    let engine = start(machine(1.0, 5.0, 400));
    let mut draw = Draw::new(seed("random_disconnects_leak_no_requests_or_cache_blocks"));
    let mut held = Vec::new();
    for i in 0..clients {
        let words = "word ".repeat(draw.below(300));
        let body = chat(
            json!({"stream": i % 3 != 0, "n": 1 + i % 2, "messages": [{"role": "user", "content": words}]}),
        );
        held.push(open(
            engine.addr(),
            "POST",
            "/v1/chat/completions",
            &[("x-engine-tokens", "500")],
            &body.to_string(),
        ));
        // Only a request that was read can be leaked.
        wait_for(&engine, "a request", |s| s.received > i);
        if held.len() > 20 {
            held.swap_remove(draw.below(held.len()));
        }
    }
    drop(held);
    let stats = wait_for(&engine, "all gone", |s| {
        s.running == 0 && s.kv_blocks_used == 0
    });
    let sequences = (0..clients).map(|i| 1 + i % 2).sum::<u64>();
    assert_eq!(
        stats.finished_stop + stats.finished_abort,
        sequences,
        "{stats:?}"
    );
    // How many depends on how long the machine stood still between two of them.
    assert!(stats.finished_abort > 0, "{stats:?}");
    let metrics = get(engine.addr(), "/metrics").body;
    for gauge in [
        "num_requests_running",
        "num_requests_waiting",
        "kv_cache_usage_perc",
    ] {
        assert_eq!(value(&metrics, &format!("vllm:{gauge}{{")), 0.0);
    }
    let after = post(
        engine.addr(),
        "/v1/chat/completions",
        &[("x-engine-tokens", "9")],
        &chat(json!({})).to_string(),
    );
    assert_eq!(after.status, 200);
}

#[test]
fn a_gpu_exporter_is_served_beside_the_engine() {
    let engine = start(EngineConfig {
        dcgm: Some("127.0.0.1:0".parse().unwrap()),
        ..machine(5.0, 0.0, 1000)
    });
    let exporter = engine.dcgm_addr().unwrap();
    let headers = [("x-engine-tokens", "220")];
    post(
        engine.addr(),
        "/v1/chat/completions",
        &headers,
        &chat(json!({})).to_string(),
    );
    let page = get(exporter, "/metrics").body;
    let busy = page
        .lines()
        .find(|l| l.starts_with("DCGM_FI_DEV_GPU_UTIL{"))
        .unwrap_or_else(|| panic!("{page}"));
    // How much of the time that is depends on what else had its turn.
    assert!(
        busy.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap() > 0.0,
        "{busy}"
    );
    assert_eq!(get(exporter, "/").status, 404);
}

/// What `/metrics` has as the sum and the count of a histogram.
fn histogram(engine: &EngineHandle, name: &str) -> (f64, f64) {
    let page = get(engine.addr(), "/metrics").body;
    let of = |part: &str| value(&page, &format!("vllm:{name}_{part}{{"));
    (of("sum"), of("count"))
}

#[test]
fn what_is_of_a_request_is_counted_once_for_all_its_choices() {
    let engine = start(machine(0.2, 0.0, 1000));
    let ask = |path: &str, body: &serde_json::Value| {
        let reply = post(engine.addr(), path, &[], &body.to_string());
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()
    };
    let answer = ask(
        "/v1/chat/completions",
        &chat(json!({"n": 3, "max_tokens": 900})),
    );
    wait_for(&engine, "the end", |s| s.running == 0);
    assert_eq!(histogram(&engine, "request_params_n"), (3.0, 1.0));
    assert_eq!(
        histogram(&engine, "request_params_max_tokens"),
        (900.0, 1.0)
    );
    let (longest, requests) = histogram(&engine, "request_max_num_generation_tokens");
    assert_eq!(requests, 1.0);
    let (all, sequences) = histogram(&engine, "request_generation_tokens");
    assert_eq!(sequences, 3.0);
    assert_eq!(answer["usage"]["completion_tokens"], all as u64);
    assert!(longest < all && longest >= all / 3.0, "{longest} of {all}");
    // Each prompt of a batch is a request; one without a cap may fill the context.
    ask(
        "/v1/completions",
        &json!({"model": "gpt-oss-120b", "prompt": ["a", "b"], "n": 2}),
    );
    let prompt = answer["usage"]["prompt_tokens"].as_f64().unwrap();
    ask("/v1/chat/completions", &chat(json!({})));
    wait_for(&engine, "the end", |s| s.running == 0);
    assert_eq!(
        histogram(&engine, "request_params_n"),
        (3.0 + 2.0 * 2.0 + 1.0, 4.0)
    );
    let caps = 900.0 + 2.0 * 16.0 + (8192.0 - prompt);
    assert_eq!(histogram(&engine, "request_params_max_tokens"), (caps, 4.0));
}

#[test]
fn cached_tokens_are_told_in_every_dialect_and_in_streams() {
    let engine = start(EngineConfig {
        enable_prompt_tokens_details: true,
        ..machine(0.2, 0.0, 1000)
    });
    let words = "word ".repeat(200);
    let user = json!([{"role": "user", "content": words}]);
    let ask = |path: &str, extra: serde_json::Value| {
        let mut body = json!({"model": "gpt-oss-120b"});
        for (name, value) in extra.as_object().unwrap() {
            body[name] = value.clone();
        }
        post(engine.addr(), path, &[], &body.to_string())
    };
    let first = ask("/v1/chat/completions", json!({"messages": user})).json();
    assert_eq!(first["usage"]["prompt_tokens_details"], json!(null));
    let again = ask("/v1/chat/completions", json!({"messages": user})).json();
    let prompt = again["usage"]["prompt_tokens"].as_u64().unwrap();
    let cached = again["usage"]["prompt_tokens_details"]["cached_tokens"]
        .as_u64()
        .unwrap();
    assert!(
        cached > 200 && cached % 16 == 0 && cached < prompt,
        "{cached} of {prompt}"
    );
    let options = json!({"include_usage": true, "continuous_usage_stats": true});
    let stream = json!({"messages": user, "stream": true, "stream_options": options});
    for event in ask("/v1/chat/completions", stream).events() {
        if let Ok(event) = serde_json::from_str::<serde_json::Value>(&event) {
            assert_eq!(
                event["usage"]["prompt_tokens_details"]["cached_tokens"],
                cached
            );
        }
    }
    let response = ask("/v1/responses", json!({"input": words})).json();
    assert_eq!(
        response["usage"]["input_tokens_details"]["cached_tokens"],
        cached
    );
    let message = json!({"messages": user, "max_tokens": 99});
    let usage = ask("/v1/messages", message.clone()).json()["usage"].clone();
    assert_eq!(usage["cache_read_input_tokens"], cached);
    assert_eq!(usage["input_tokens"], prompt - cached);
    let mut stream = message;
    stream["stream"] = json!(true);
    let events = ask("/v1/messages", stream).events();
    let last = events
        .iter()
        .rev()
        .find(|e| e.contains("message_delta"))
        .unwrap();
    let last: serde_json::Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["usage"]["cache_read_input_tokens"], cached);
    // By default it is as in vLLM: not told.
    let quiet = start(machine(0.2, 0.0, 1000));
    let body = json!({"model": "gpt-oss-120b", "messages": user}).to_string();
    for _ in 0..2 {
        let answer = post(quiet.addr(), "/v1/chat/completions", &[], &body).json();
        assert_eq!(answer["usage"]["prompt_tokens_details"], json!(null));
    }
}

fn of_engine(page: &str, name: &str, label: &str) -> f64 {
    let found = page
        .lines()
        .find(|line| line.starts_with(name) && line.contains(label))
        .unwrap_or_else(|| panic!("no {name} with {label} in {page}"));
    found.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn a_request_at_an_idle_engine_waits_for_nothing_in_its_queue() {
    let [queue, prefill, first_token] = of_an_idle_engine();
    println!("{queue} s in the queue, {prefill} s of prefill, {first_token} s to a token");
    // By the machine's own clock: the front end's 50 ms and the step's 30 ms are no part of the queue.
    assert!(queue < 1e-6, "{queue}");
    assert!((prefill - 0.030).abs() < 1e-6, "{prefill}");
    assert!(first_token >= 0.080, "{first_token}");
}

/// The mean times in the queue, of prefill and to the first token, in seconds, of three requests one after the other.
fn of_an_idle_engine() -> [f64; 3] {
    let mut config = machine(30.0, 0.0, 1000);
    if let Some(hardware) = &mut config.hardware {
        hardware.frontend.before_queue = Duration::from_millis(50);
    }
    let engine = start(config);
    for _ in 0..3 {
        let answer = post(
            engine.addr(),
            "/v1/chat/completions",
            &[("x-engine-tokens", "3")],
            &chat(json!({})).to_string(),
        );
        assert_eq!(answer.status, 200);
    }
    let page = get(engine.addr(), "/metrics").body;
    let mean = |name: &str| {
        let sum = of_engine(&page, &format!("vllm:{name}_sum"), "engine=\"0\"");
        sum / of_engine(&page, &format!("vllm:{name}_count"), "engine=\"0\"")
    };
    [
        "request_queue_time_seconds",
        "request_prefill_time_seconds",
        "time_to_first_token_seconds",
    ]
    .map(mean)
}

#[test]
fn engines_in_parallel_share_the_load_and_show_their_figures_apart() {
    let mut config = machine(20.0, 0.0, 1000);
    if let Some(hardware) = &mut config.hardware {
        hardware.parallelism.data = 2;
    }
    let engine = start(EngineConfig {
        dcgm: Some("127.0.0.1:0".parse().unwrap()),
        ..config
    });
    let address = engine.addr();
    // None ends before the last has come: by itself each would take two minutes.
    let headers = [("x-engine-tokens", "6000")];
    let body = chat(json!({"stream": true})).to_string();
    let all: Vec<_> = (0..8)
        .map(|_| open(address, "POST", "/v1/chat/completions", &headers, &body))
        .collect();
    wait_for(&engine, "eight and their tokens", |s| {
        s.running == 8 && s.generation_tokens > 160
    });
    let ranks = ["engine=\"0\"", "engine=\"1\""];
    let page = get(address, "/metrics").body;
    for rank in ranks {
        let of = |name: &str| of_engine(&page, &format!("vllm:{name}"), rank);
        assert_eq!(of("num_requests_running"), 4.0, "{rank}");
        assert!(of("generation_tokens_total") > 40.0, "{rank}");
        assert!(of("iteration_tokens_total_count") >= 10.0, "{rank}");
        assert_eq!(of("cache_config_info"), 1.0);
    }
    drop(all);
    wait_for(&engine, "eight aborts", |s| s.finished_abort == 8);
    let page = get(address, "/metrics").body;
    for rank in ranks {
        let ended = of_engine(&page, "vllm:e2e_request_latency_seconds_count", rank);
        assert_eq!(ended, 4.0, "{rank}");
    }
    assert!(page.contains("num_gpu_blocks=\"2000\""), "the sum of both");
    let info = get(address, "/server_info?config_format=json").json();
    assert_eq!(
        info["vllm_config"]["cache_config"]["num_gpu_blocks"], 2000,
        "the same as in the metrics"
    );
    let exporter = get(engine.dcgm_addr().unwrap(), "/metrics").body;
    let gpus = exporter
        .lines()
        .filter(|line| line.starts_with("DCGM_FI_DEV_GPU_UTIL{"));
    assert_eq!(gpus.count(), 2);
    assert_eq!(engine.stats().running, 0);
}
