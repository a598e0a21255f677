//! Loops of tools as Claude Code and Codex make them, in front of an engine that has chat completions alone: every call of a tool has an
//! id of its own, which is taken back with what the tool gave, and what is recorded is what the engine counted.
//!
//! `TOLLGATE_AGENT_SESSIONS=1000` runs so many sessions in place of a sample.
//! Not here: the agents themselves, which need accounts; what each member becomes (`vectors/translate`).

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use engine::{EngineConfig, spawn_thread};
use serde_json::{Value, json};
use testing::{Draw, eventually, number_of, seed};

use crate::harness::{Gate, post};

/// Sessions of a sample.
const SAMPLE: u64 = 24;
/// Sessions that run beside each other.
const BESIDE: usize = 4;
const WHO: &str = "x-workload-app: open";

#[test]
fn loops_of_tools_lose_no_call_and_use_what_the_engine_counts() {
    let config = EngineConfig {
        models: vec!["m".into()],
        ttft: Duration::ZERO,
        inter_token: Duration::ZERO,
        ..EngineConfig::default()
    };
    let engine = spawn_thread(config).expect("an engine");
    let config = format!(
        "backends: {{ up: {{ url: http://{}/v1, dialect: openai }} }}\n\
         routes: [ {{ workload: open, backend: up, model: m }} ]\n",
        engine.addr()
    );
    let gate = Gate::start(&config, &[]);
    let first = seed("e2e::agents");
    let all = usize::try_from(number_of("TOLLGATE_AGENT_SESSIONS", SAMPLE)).expect("sessions");
    let calls: usize = thread::scope(|scope| {
        let runs: Vec<_> = (0..BESIDE)
            .map(|nth| {
                let gate = &gate;
                scope.spawn(move || {
                    (nth..all)
                        .step_by(BESIDE)
                        .map(|number| session(gate, number, first))
                        .sum::<usize>()
                })
            })
            .collect();
        runs.into_iter()
            .map(|run| run.join().expect("every session went well"))
            .sum()
    });
    eventually("every call has its record", || {
        gate.records(1).len() >= calls
    });
    let records = gate.records(calls);
    assert_eq!(records.len(), calls);
    let is_whole = |r: &&Value| r["outcome"] == "completed" && r["prompt_source"] == "reported";
    assert_eq!(records.iter().filter(is_whole).count(), calls);
    let sum = |name: &str| records.iter().filter_map(|r| r[name].as_u64()).sum::<u64>();
    let stats = engine.stats();
    assert_eq!(
        (sum("prompt_tokens"), sum("completion_tokens")),
        (stats.prompt_tokens, stats.generation_tokens)
    );
    println!(
        "{all} sessions, {calls} calls, {} tokens",
        sum("completion_tokens")
    );
}

/// One session, from its task to its answer. Gives how many calls it made.
fn session(gate: &Gate, number: usize, first: u64) -> usize {
    let mut random = Draw::new(first.wrapping_add(number as u64));
    let turns = 2 + random.below(6);
    match number % 2 {
        0 => as_claude_code(gate, turns, &mut random),
        _ => as_codex(gate, turns, &mut random),
    }
}

/// The data of each event of a stream.
fn events(gate: &Gate, path: &str, body: &Value) -> Vec<Value> {
    let response = gate.call(&post(path, &[WHO], &body.to_string()));
    let text = response.text();
    assert_eq!(response.status, 200, "{text}\nfor {body}");
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).expect("an event is JSON"))
        .collect()
}

/// What a tool gives, of some length.
fn given(random: &mut Draw) -> String {
    "a line of a file\n".repeat(1 + random.below(20))
}

fn schema() -> Value {
    json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] })
}

fn as_claude_code(gate: &Gate, turns: usize, random: &mut Draw) -> usize {
    let mut messages = vec![json!({ "role": "user", "content": "Find the fault." })];
    let mut ids = HashSet::new();
    for turn in 0..=turns {
        let choice = match turn == turns {
            true => json!({ "type": "none" }),
            false => json!({ "type": "tool", "name": "Read" }),
        };
        let body = json!({
            "model": "claude-sonnet-4-5", "max_tokens": 400, "stream": true, "messages": messages,
            "system": [{ "type": "text", "text": "Be short.", "cache_control": { "type": "ephemeral" } }],
            "tools": [{ "name": "Read", "description": "Reads a file.", "input_schema": schema() }],
            "tool_choice": choice, "metadata": { "user_id": "u" },
        });
        let told = events(gate, "/v1/messages", &body);
        let ended = told.last().map(|event| &event["type"]);
        assert_eq!(ended, Some(&json!("message_stop")), "{told:?}");
        if turn == turns {
            break;
        }
        let is_call = |event: &&Value| event["content_block"]["type"] == "tool_use";
        let calls: Vec<&Value> = told.iter().filter(is_call).collect();
        assert!(!calls.is_empty(), "{told:?}");
        let (mut said, mut results) = (Vec::new(), Vec::new());
        for call in calls {
            let id = call["content_block"]["id"].as_str().expect("an id");
            assert!(ids.insert(id.to_owned()), "{id} was told before");
            let pieces = told.iter().filter(|event| event["index"] == call["index"]);
            let pieces = pieces.filter_map(|event| event["delta"]["partial_json"].as_str());
            let input: Value =
                serde_json::from_str(&pieces.collect::<String>()).expect("whole arguments");
            said.push(json!({ "type": "tool_use", "id": id, "name": "Read", "input": input }));
            results.push(
                json!({ "type": "tool_result", "tool_use_id": id, "content": given(random) }),
            );
        }
        messages.push(json!({ "role": "assistant", "content": said }));
        messages.push(json!({ "role": "user", "content": results }));
    }
    turns + 1
}

fn as_codex(gate: &Gate, turns: usize, random: &mut Draw) -> usize {
    let mut input = vec![json!({ "role": "user", "content": "Find the fault." })];
    let mut ids = HashSet::new();
    for turn in 0..=turns {
        let choice = if turn == turns { "none" } else { "required" };
        let body = json!({
            "model": "gpt-5-codex", "stream": true, "store": false, "instructions": "Be short.",
            "max_output_tokens": 400, "input": input, "tool_choice": choice,
            "include": ["reasoning.encrypted_content"],
            "tools": [{ "type": "function", "name": "shell", "parameters": schema(), "strict": false }],
        });
        let told = events(gate, "/v1/responses", &body);
        let ended = told.last().expect("an end");
        let kind = ended["type"].as_str().unwrap_or_default();
        assert!(
            kind == "response.completed" || (turn == turns && kind == "response.incomplete"),
            "{ended}"
        );
        if turn == turns {
            break;
        }
        let output = ended["response"]["output"].as_array().expect("items");
        let is_call = |item: &&Value| item["type"] == "function_call";
        let calls: Vec<&Value> = output.iter().filter(is_call).collect();
        assert!(!calls.is_empty(), "{ended}");
        input.extend(output.iter().cloned());
        for call in calls {
            let id = call["call_id"].as_str().expect("an id");
            assert!(ids.insert(id.to_owned()), "{id} was told before");
            let arguments = call["arguments"].as_str().expect("arguments");
            let _whole: Value = serde_json::from_str(arguments).expect("whole arguments");
            input.push(
                json!({ "type": "function_call_output", "call_id": id, "output": given(random) }),
            );
        }
    }
    turns + 1
}
