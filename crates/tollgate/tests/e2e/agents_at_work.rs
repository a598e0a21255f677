//! The real Claude Code and Codex, ten turns each with nine calls of a tool between them, in front of the gate and of a provider that is
//! faked, in their own API and in front of one that has chat completions alone: every row is what the provider served.
//!
//! They run where `TOLLGATE_E2E_AGENTS` names the modules that npm installed, as `cargo xtask agents` has it.
//! Not here: traffic of their kind without them (`translation::agents`).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Ended, Gate, Seen, Step, Upstream, run};

/// Turns of one run; all but the last call a tool.
const TURNS: u64 = 10;
const ASKED: &str = "Say each number by a command of the shell.";

/// A program that npm installed for this machine; none where it is not there.
fn agent(package: &str, path: &str) -> Option<PathBuf> {
    let Some(modules) = std::env::var_os("TOLLGATE_E2E_AGENTS") else {
        testing::skip("TOLLGATE_E2E_AGENTS names no Claude Code and Codex (cargo xtask agents)");
        return None;
    };
    let program = Path::new(&modules).join(package).join(path);
    if !program.is_file() {
        let lacks = format!(
            "{} is not there: npm has none for this machine",
            program.display()
        );
        testing::skip(&lacks);
        return None;
    }
    Some(program)
}

/// Runs an agent with a home of its own and nothing of this environment.
fn at_work(mut command: Command, home: &Path, environment: &[(&str, &str)]) -> Ended {
    let work = home.join("work");
    std::fs::create_dir_all(&work).expect("a directory");
    command.env_clear().env("PATH", "/usr/bin:/bin");
    command.env("HOME", home).current_dir(work);
    command.envs(environment.iter().copied());
    run(&mut command, "")
}

fn event(name: &str, data: &Value) -> String {
    let mut data = data.clone();
    data["type"] = json!(name);
    format!("event: {name}\ndata: {data}\n\n")
}

fn stream(events: &[String]) -> Vec<u8> {
    let body = events.concat();
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

/// What was served in a turn: tokens of the prompt, those a cache had, and the output.
fn served(turn: u64) -> [u64; 3] {
    [1_000 + 10 * turn, 100 * turn, 20 + turn]
}

/// A turn of Anthropic's API, by how many results of tools the call holds.
fn message(seen: &Seen) -> Vec<u8> {
    if !seen.head.starts_with("POST /v1/messages") {
        return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec();
    }
    let call = seen.json();
    let turn = results(&call["messages"], &|item| {
        let parts = item["content"].as_array().into_iter().flatten();
        parts.filter(|part| part["type"] == "tool_result").count() as u64
    });
    let [prompt, cached, output] = served(turn);
    let usage = json!({ "input_tokens": prompt - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0, "output_tokens": 1 });
    let message = json!({ "id": format!("msg_{turn}"), "type": "message", "role": "assistant", "model": call["model"], "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage });
    let input = of_bash(turn);
    let (block, delta, stop) = match turn + 1 < TURNS {
        true => (
            json!({ "type": "tool_use", "id": format!("toolu_{turn}"), "name": "Bash", "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
            "tool_use",
        ),
        false => (
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": "All are said." }),
            "end_turn",
        ),
    };
    stream(&[
        event("message_start", &json!({ "message": message })),
        event(
            "content_block_start",
            &json!({ "index": 0, "content_block": block }),
        ),
        event(
            "content_block_delta",
            &json!({ "index": 0, "delta": delta }),
        ),
        event("content_block_stop", &json!({ "index": 0 })),
        event(
            "message_delta",
            &json!({ "delta": { "stop_reason": stop, "stop_sequence": null }, "usage": { "output_tokens": output } }),
        ),
        event("message_stop", &json!({})),
    ])
}

/// The same of OpenAI's Responses.
fn response(seen: &Seen) -> Vec<u8> {
    if !seen.head.starts_with("POST /v1/responses ") {
        return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec();
    }
    let call = seen.json();
    let turn = results(&call["input"], &|item| {
        u64::from(item["type"] == "function_call_output")
    });
    let [prompt, cached, output] = served(turn);
    let tools = call["tools"].as_array().into_iter().flatten();
    let names: BTreeSet<&str> = tools.filter_map(|tool| tool["name"].as_str()).collect();
    assert!(names.contains("exec_command"), "{names:?}");
    let arguments = of_exec_command(turn);
    let item = match turn + 1 < TURNS {
        true => {
            json!({ "type": "function_call", "id": format!("fc_{turn}"), "call_id": format!("call_{turn}"), "name": "exec_command", "arguments": arguments.to_string(), "status": "completed" })
        }
        false => {
            json!({ "type": "message", "id": format!("msg_{turn}"), "role": "assistant", "status": "completed", "content": [{ "type": "output_text", "text": "All are said.", "annotations": [] }] })
        }
    };
    let usage = json!({
        "input_tokens": prompt, "input_tokens_details": { "cached_tokens": cached },
        "output_tokens": output, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": prompt + output,
    });
    let about = |status: &str, output: Value| json!({ "id": format!("resp_{turn}"), "object": "response", "status": status, "model": call["model"], "output": output });
    let mut whole = about("completed", json!([item]));
    whole["usage"] = usage;
    stream(&[
        event(
            "response.created",
            &json!({ "sequence_number": 0, "response": about("in_progress", json!([])) }),
        ),
        event(
            "response.output_item.added",
            &json!({ "sequence_number": 1, "output_index": 0, "item": item }),
        ),
        event(
            "response.output_item.done",
            &json!({ "sequence_number": 2, "output_index": 0, "item": item }),
        ),
        event(
            "response.completed",
            &json!({ "sequence_number": 3, "response": whole }),
        ),
    ])
}

/// The same of chat completions, which neither of them speaks: what was thought, and a call of this tool.
fn completion(seen: &Seen, tool: &str, arguments: fn(u64) -> Value) -> Vec<u8> {
    if !seen.head.starts_with("POST /v1/chat/completions ") {
        return b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec();
    }
    let call = seen.json();
    let turn = results(&call["messages"], &|item| u64::from(item["role"] == "tool"));
    let [prompt, cached, output] = served(turn);
    let chunk = |choices: Value, usage: Value| {
        let chunk = json!({ "id": format!("chatcmpl-{turn}"), "object": "chat.completion.chunk", "created": 1, "model": call["model"], "choices": choices, "usage": usage });
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value, reason: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": reason });
        chunk(json!([choice]), Value::Null)
    };
    let thought = json!({ "role": "assistant", "reasoning_content": thought(turn) });
    let mut events = vec![delta(thought, Value::Null)];
    if turn + 1 < TURNS {
        let text = arguments(turn).to_string();
        let (first, rest) = text.split_at(7);
        let begun = json!({ "index": 0, "id": format!("call_{turn}"), "type": "function", "function": { "name": tool, "arguments": first } });
        let more = json!({ "index": 0, "function": { "arguments": rest } });
        events.push(delta(json!({ "tool_calls": [begun] }), Value::Null));
        events.push(delta(json!({ "tool_calls": [more] }), Value::Null));
        events.push(delta(json!({}), json!("tool_calls")));
    } else {
        events.push(delta(json!({ "content": "All are said." }), Value::Null));
        events.push(delta(json!({}), json!("stop")));
    }
    let usage = json!({
        "prompt_tokens": prompt, "completion_tokens": output, "total_tokens": prompt + output,
        "prompt_tokens_details": { "cached_tokens": cached },
    });
    events.push(chunk(json!([]), usage));
    events.push("data: [DONE]\n\n".to_owned());
    stream(&events)
}

/// What the model of such a provider thinks in a turn.
fn thought(turn: u64) -> String {
    format!("It is number {turn} that is next.")
}

fn results(items: &Value, of: &dyn Fn(&Value) -> u64) -> u64 {
    items.as_array().into_iter().flatten().map(of).sum()
}

fn gate(provider: &Upstream, credential: &str) -> Gate {
    gate_to(provider, &format!("credential: {{ {credential} }}"), "")
}

/// A gate whose provider has chat completions alone, for one model.
fn translating(provider: &Upstream) -> Gate {
    let backend = "credential: { inline: \"the-provider's-key\" }, dialect: openai";
    gate_to(provider, backend, ", model: openai/gpt-oss-120b")
}

fn gate_to(provider: &Upstream, backend: &str, route: &str) -> Gate {
    let config = format!(
        "backends: {{ provider: {{ url: http://{}/v1, {backend} }} }}\n\
         routes: [ {{ workload: agent, backend: provider{route} }} ]\n",
        provider.address
    );
    Gate::start(&config, &[])
}

/// Each turn but the last is told again with what was thought in it, the call as it was made, and one result of its own.
fn assert_history(provider: &Upstream, tool: &str, arguments: fn(u64) -> Value) {
    let seen = provider.seen();
    let last = seen.last().expect("calls").json();
    assert_eq!(last["model"], "openai/gpt-oss-120b");
    let messages = last["messages"].as_array().expect("messages");
    let said: Vec<&Value> = messages
        .iter()
        .filter(|m| m["tool_calls"].is_array())
        .collect();
    let given: Vec<&Value> = messages.iter().filter(|m| m["role"] == "tool").collect();
    for (turn, nth) in (0..TURNS - 1).zip(0..) {
        let [said, given]: [&Value; 2] = [said[nth], given[nth]];
        assert_eq!(said["reasoning_content"], thought(turn), "{said}");
        let [call] = &said["tool_calls"].as_array().expect("calls")[..] else {
            panic!("{said}")
        };
        assert_eq!(call["function"]["name"], tool);
        let told = call["function"]["arguments"].as_str().expect("a text");
        let told: Value = serde_json::from_str(told).expect("whole arguments");
        assert_eq!(told, arguments(turn), "{said}");
        assert_eq!(given["tool_call_id"], call["id"], "{given}");
    }
}

/// Each turn has its row, with what the provider served, and each tool gave what its command says.
fn assert_rows(gate: &Gate, operation: &str, provider: &Upstream) {
    let turns = usize::try_from(TURNS).expect("few");
    let is_turn = |record: &Value| record["operation"] == operation && record["status"] == 200;
    testing::eventually("each turn has its record", || {
        gate.records(1)
            .iter()
            .filter(|record| is_turn(record))
            .count()
            >= turns
    });
    let records = gate.records(turns);
    let counts = |record: &Value| {
        let names = ["prompt_tokens", "cached_tokens", "completion_tokens"];
        names.map(|name| record[name].as_u64().unwrap_or(0))
    };
    let mut told: Vec<[u64; 3]> = records.iter().filter(|r| is_turn(r)).map(counts).collect();
    told.sort_unstable();
    let wanted: Vec<[u64; 3]> = (0..TURNS).map(served).collect();
    assert_eq!(told, wanted, "{records:?}");
    let others = records.iter().filter(|record| !is_turn(record));
    for other in others {
        assert_eq!(other["prompt_tokens"], Value::Null, "{other}");
    }
    let seen = provider.seen();
    let calls = seen.iter().filter(|seen| seen.head.starts_with("POST "));
    let calls: Vec<&Seen> = calls.collect();
    assert_eq!(
        calls.len(),
        turns,
        "{:?}",
        calls.iter().map(|seen| &seen.head).collect::<Vec<_>>()
    );
    for seen in &calls {
        assert!(!seen.head.contains("a-dummy"), "{}", seen.head);
        assert!(seen.head.contains("the-provider's-key"), "{}", seen.head);
    }
    let last = String::from_utf8_lossy(&calls[turns - 1].body);
    for turn in 0..TURNS - 1 {
        assert!(
            last.contains(&format!("turn {turn}\\n")) || last.contains(&format!("turn {turn}\"")),
            "turn {turn}: {last}"
        );
    }
}

/// What Claude Code ends with in front of a gate; none where it is not there.
fn claude_code(gate: &Gate) -> Option<Ended> {
    let path = match std::env::consts::ARCH {
        "aarch64" => "claude-code-linux-arm64/claude",
        _ => "claude-code-linux-x64/claude",
    };
    let claude = agent("@anthropic-ai", path)?;
    let home = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(claude);
    command.args(["-p", ASKED, "--model", "claude-sonnet-4-5"]);
    command.args(["--allowedTools", "Bash"]);
    let base = format!("http://{}", gate.data);
    Some(at_work(
        command,
        home.path(),
        &[
            ("ANTHROPIC_BASE_URL", &base),
            ("ANTHROPIC_API_KEY", "a-dummy"),
            ("ANTHROPIC_CUSTOM_HEADERS", "x-workload-app: agent"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ],
    ))
}

/// The same of Codex.
fn codex(gate: &Gate) -> Option<Ended> {
    let path = match std::env::consts::ARCH {
        "aarch64" => "codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
        _ => "codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
    };
    let codex = agent("@openai", path)?;
    let home = tempfile::tempdir().expect("a directory");
    let config = format!(
        "model = \"gpt-5.2-codex\"\nmodel_provider = \"gate\"\n[model_providers.gate]\nname = \"gate\"\n\
         base_url = \"http://{}/v1\"\nenv_key = \"GATE_KEY\"\nwire_api = \"responses\"\n\
         http_headers = {{ \"x-workload-app\" = \"agent\" }}\n",
        gate.data
    );
    let of_codex = home.path().join(".codex");
    std::fs::create_dir_all(&of_codex).expect("a directory");
    std::fs::write(of_codex.join("config.toml"), config).expect("a file");
    let mut command = Command::new(codex);
    // Its own sandbox needs rights that a test may not have; what it runs are the faked provider's words.
    command.args([
        "exec",
        "--skip-git-repo-check",
        "-s",
        "danger-full-access",
        ASKED,
    ]);
    Some(at_work(command, home.path(), &[("GATE_KEY", "a-dummy")]))
}

/// It came to its end, and each turn is a row as it was served.
fn assert_worked(ended: &Ended, gate: &Gate, operation: &str, provider: &Upstream) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("All are said."), "{ended:?}");
    assert_rows(gate, operation, provider);
}

#[test]
fn claude_code_works_ten_turns_and_each_is_a_row_as_it_was_served() {
    let provider = Upstream::start(|_, seen| vec![Step::Send(message(seen))]);
    let credential = "inline: \"the-provider's-key\", header: x-api-key";
    let gate = gate(&provider, credential);
    if let Some(ended) = claude_code(&gate) {
        assert_worked(&ended, &gate, "messages", &provider);
    }
}

#[test]
fn codex_works_ten_turns_and_each_is_a_row_as_it_was_served() {
    let provider = Upstream::start(|_, seen| vec![Step::Send(response(seen))]);
    let gate = gate(&provider, "inline: \"the-provider's-key\"");
    if let Some(ended) = codex(&gate) {
        assert_worked(&ended, &gate, "responses", &provider);
    }
}

fn of_bash(turn: u64) -> Value {
    json!({ "command": format!("echo turn {turn}"), "description": "says it" })
}

fn of_exec_command(turn: u64) -> Value {
    json!({ "cmd": format!("echo turn {turn}") })
}

#[test]
fn claude_code_works_ten_turns_in_front_of_chat_completions() {
    let provider = Upstream::start(|_, seen| vec![Step::Send(completion(seen, "Bash", of_bash))]);
    let gate = translating(&provider);
    if let Some(ended) = claude_code(&gate) {
        assert_worked(&ended, &gate, "messages", &provider);
        assert_history(&provider, "Bash", of_bash);
    }
}

#[test]
fn codex_works_ten_turns_in_front_of_chat_completions() {
    let tool = "exec_command";
    let served = move |seen: &Seen| completion(seen, tool, of_exec_command);
    let provider = Upstream::start(move |_, seen| vec![Step::Send(served(seen))]);
    let gate = translating(&provider);
    if let Some(ended) = codex(&gate) {
        assert_worked(&ended, &gate, "responses", &provider);
        assert_history(&provider, tool, of_exec_command);
    }
}
