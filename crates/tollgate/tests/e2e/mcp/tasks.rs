//! Tasks: calls that a server without sessions answers later, and who may ask about them.
//!
//! Not here: ids as they are sealed (`mcp::session`, `mcp::task`).

use serde_json::{Value, json};
use testing::eventually;

use super::bridge::Stream;
use super::modern::{ask, headers, messages, meta, modern, modern_reply};
use super::{Caller, Told, config, server, url};
use crate::harness::answer::{chunk, events_head};
use crate::harness::{Gate, Seen, Signal, Step, Upstream, answer};

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// What a client says that knows tasks.
pub(super) fn knows() -> Value {
    json!({"extensions": {EXTENSION: {}}})
}

/// A server that answers a call with the task `job/1` of one who knows tasks, and answers about that as it was asked.
pub(super) fn making() -> Upstream {
    Upstream::start(|_, seen| vec![Step::Send(reply(seen))])
}

fn reply(seen: &Seen) -> Vec<u8> {
    if seen.body.is_empty() {
        return modern_reply("one", seen);
    }
    let message = seen.json();
    let params = &message["params"];
    let can = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    let knows = can["extensions"][EXTENSION].is_object();
    let result = match message["method"].as_str() {
        Some("server/discover") => {
            json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 1000, "cacheScope": "public",
                "capabilities": {"tools": {}, "extensions": {EXTENSION: {}, "io.modelcontextprotocol/ui": {}}}})
        }
        Some("tools/call") if knows || params["arguments"]["anyway"] == true => {
            json!({"resultType": "task", "taskId": "job/1", "status": "working", "ttlMs": 60_000})
        }
        Some("tasks/get") if params["taskId"] == "job/1" => {
            json!({"resultType": "complete", "taskId": "job/1", "status": "completed",
                "result": {"content": [], "taskId": "job/1"}, "named": seen.header("mcp-name")})
        }
        Some("tasks/update" | "tasks/cancel") => {
            json!({"resultType": "complete", "sent": params})
        }
        _ => return modern_reply("one", seen),
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    answer::json(200, &body.to_string())
}

fn about(caller: &Caller<'_>, method: &str, params: &Value) -> Told {
    let mut params = params.clone();
    params["_meta"] = meta(&knows());
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let mut headers = headers(method, &params);
    headers.push(format!(
        "mcp-name: {}",
        params["taskId"].as_str().expect("an id")
    ));
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    caller.send("POST", &headers, message.to_string().as_bytes())
}

/// What became of a question about a task.
fn asked(caller: &Caller<'_>, method: &str, task: &str) -> Value {
    let told = about(caller, method, &json!({"taskId": task}));
    match told.body["error"]["data"]["code"].as_str() {
        Some(code) => json!([told.status, code]),
        None => told.body["result"].clone(),
    }
}

fn made(caller: &Caller<'_>, tool: &str) -> String {
    let told = ask(
        caller,
        "tools/call",
        &json!({"name": tool, "arguments": {}, "_meta": meta(&knows())}),
    );
    let result = &told.body["result"];
    assert_eq!(result["resultType"], "task", "{}", told.body);
    result["taskId"].as_str().expect("an id").to_owned()
}

/// How many questions about tasks came to a server.
fn questions(server: &Upstream) -> usize {
    let seen = server.seen();
    let of = |seen: &Seen| seen.header("mcp-method").concat().starts_with("tasks/");
    seen.iter().filter(|seen| of(seen)).count()
}

#[test]
fn a_task_is_asked_about_updated_and_cancelled_by_the_id_that_its_client_has() {
    let one = making();
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let gate = Gate::start(&config(&servers, "    - { workload: ada }"), &[]);
    let ada = Caller::new(&gate, "ada");
    let told = ask(&ada, "server/discover", &json!({}));
    assert_eq!(
        told.body["result"]["capabilities"]["extensions"],
        json!({EXTENSION: {}}),
        "what is carried is offered, and nothing else"
    );
    let task = made(&ada, "one__read");
    assert!(!task.contains("job"), "{task}");
    let got = asked(&ada, "tasks/get", &task);
    assert_eq!(
        (&got["taskId"], &got["status"]),
        (&json!(task), &json!("completed"))
    );
    assert_eq!(got["result"]["taskId"], "job/1", "what its tool said stays");
    assert_eq!(got["named"], json!(["job/1"]));
    let params = json!({"taskId": task, "inputResponses": {"who": {"action": "accept"}}});
    let told = about(&ada, "tasks/update", &params);
    let sent = &told.body["result"]["sent"];
    assert_eq!(
        (&sent["taskId"], &sent["inputResponses"]),
        (&json!("job/1"), &params["inputResponses"])
    );
    assert_eq!(
        asked(&ada, "tasks/cancel", &task)["sent"]["taskId"],
        "job/1"
    );
    let records = gate.records(5);
    // Workers write theirs as they come.
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let of = |r: &&Value| r["mcp_method"] == method && r["mcp_name"] == "one__read";
        assert_eq!(records.iter().filter(of).count(), 1, "{method}");
    }
}

#[test]
fn a_task_is_nobody_elses_on_no_other_route_and_a_made_up_one_is_none() {
    let one = making();
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let routes = "    - { workload: [ada, ben] }\n    - { workload: cem }";
    let gate = Gate::start(&config(&servers, routes), &[]);
    let callers = ["ada", "ben", "cem"].map(|who| Caller::new(&gate, who));
    let [ada, ben, cem] = &callers;
    let task = made(ada, "one__read");
    let (start, end) = task.split_at(task.len() / 2);
    let other = if end.starts_with('A') { "B" } else { "A" };
    let changed = format!("{start}{other}{}", &end[1..]);
    let attempts = [
        (ben, &*task),
        (cem, &task),
        (ada, "job/1"),
        (ada, &changed),
        (ada, "one__read"),
    ];
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for (caller, task) in attempts {
            assert_eq!(
                asked(caller, method, task),
                json!([200, "mcp_not_found"]),
                "{method} {task}"
            );
        }
    }
    let state = json!({"taskId": task, "requestState": "made up"});
    let told = about(ada, "tasks/update", &state);
    assert_eq!(told.body["error"]["data"]["code"], "mcp_state_invalid");
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tasks/get",
        "params": {"taskId": task, "_meta": meta(&knows())}});
    let fields = headers("tasks/get", &message["params"]);
    let mut fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    fields.push("mcp-name: another");
    let told = ada.send("POST", &fields, message.to_string().as_bytes());
    assert_eq!(told.body["error"]["code"], -32020, "{}", told.body);
    assert_eq!(questions(&one), 0, "nothing of it went on");
}

#[test]
fn whoever_may_use_a_tool_no_more_may_not_ask_about_its_task() {
    let one = making();
    let of = |tools: &str, rest: &str| {
        let servers = format!(
            "    one: {{ url: \"{}\", tools: {{ allow: [{tools}] }} }}",
            url(&one)
        );
        // One worker: what is in force for one call is so for the next.
        "workers: 1\n".to_owned() + &config(&servers, "    - { workload: ada }") + rest
    };
    let gate = Gate::start(&of("read, delete", ""), &[]);
    let ada = Caller::new(&gate, "ada");
    let task = made(&ada, "one__delete");
    assert_eq!(asked(&ada, "tasks/get", &task)["status"], "completed");
    gate.reconfigure(&of("read", ""));
    let not_found = json!([200, "mcp_not_found"]);
    eventually("the filter is in force", || {
        asked(&ada, "tasks/get", &task) == not_found
    });
    // Rules are asked about it as about a call.
    let rules = "authority:\n  rules:\n  - name: read\n    allow: 'method == \"tools/call\" && path == \"one__read\"'\n";
    gate.reconfigure(&of("read, delete", rules));
    let not_authorized = json!([403, "not_authorized"]);
    eventually("the rules are in force", || {
        asked(&ada, "tasks/get", &task) == not_authorized
    });
    assert_eq!(asked(&ada, "tasks/cancel", &task), not_authorized);
    let task = made(&ada, "one__read");
    assert_eq!(asked(&ada, "tasks/get", &task)["status"], "completed");
}

#[test]
fn a_gate_that_began_anew_takes_the_id_of_a_task_and_questions_are_no_calls_of_its_tool() {
    let one = making();
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let directory = tempfile::tempdir().expect("a directory");
    let rest = format!(
        "ledger: {{ path: {} }}\nbudgets:\n  reads: {{ calls: 2, tool: one__read, per: month }}\n",
        directory.path().join("usage.db").display()
    );
    let config = config(&servers, "    - { workload: ada }") + &rest;
    let mut gate = Gate::start(&config, &[]);
    let task = made(&Caller::new(&gate, "ada"), "one__read");
    gate.signal(libc::SIGTERM);
    assert!(gate.ended().success());
    let gate = Gate::start(&config, &[]);
    let ada = Caller::new(&gate, "ada");
    for _ in 0..3 {
        assert_eq!(asked(&ada, "tasks/get", &task)["status"], "completed");
    }
    made(&ada, "one__read");
    let told = ask(
        &ada,
        "tools/call",
        &json!({"name": "one__read", "arguments": {}}),
    );
    assert_eq!(told.status, 402, "{}", told.body);
}

#[test]
fn a_task_is_made_for_who_can_ask_about_it_alone() {
    let (one, two) = (making(), server("two"));
    let servers = format!(
        "    one: {{ url: \"{}\" }}\n    two: {{ url: \"{}\" }}",
        url(&one),
        url(&two)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: ada }"), &[]);
    let anyway = json!({"name": "one__read", "arguments": {"anyway": true}});
    let told = ask(&Caller::new(&gate, "ada"), "tools/call", &anyway);
    let not_bridged = (502, json!("mcp_not_bridged"));
    let code = |told: &Told| (told.status, told.body["error"]["data"]["code"].clone());
    assert_eq!(code(&told), not_bridged, "{}", told.body);
    // A client with a session knows of no such thing, and is offered none.
    let ben = Caller::begun(&gate, "ada");
    let told = ben.request("tools/call", &anyway);
    assert_eq!(code(&told), not_bridged, "{}", told.body);
    let told = ben.request("tasks/get", &json!({"taskId": "job/1"}));
    assert_eq!(told.body["error"]["code"], -32601, "{}", told.body);
    assert_eq!(questions(&one), 0);
}

/// The same as [`making`], which tells whoever listens of `job/1`, of a task that nobody asked about, and of `job/1` again when it may.
fn telling(go: &Signal) -> Upstream {
    let go = go.clone();
    Upstream::start(move |_, seen| {
        if seen.body.is_empty() || seen.header("mcp-method") != ["subscriptions/listen"] {
            return vec![Step::Send(reply(seen))];
        }
        let message = seen.json();
        let params = &message["params"];
        let can = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        assert!(can["extensions"][EXTENSION].is_object(), "{params}");
        let subscription = json!({"io.modelcontextprotocol/subscriptionId": message["id"]});
        let event = |method: &str, params: Value| {
            let mut params = params;
            params["_meta"] = subscription.clone();
            let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
            Step::Send(chunk(
                format!("event: message\ndata: {message}\n\n").as_bytes(),
            ))
        };
        let task = |id: &str, status: &str| {
            event(
                "notifications/tasks",
                json!({"taskId": id, "status": status}),
            )
        };
        let asked = json!({"notifications": params["notifications"]});
        vec![
            Step::Send(events_head()),
            event("notifications/subscriptions/acknowledged", asked),
            task("job/1", "working"),
            task("job/2", "working"),
            Step::Until(go.clone()),
            task("job/1", "completed"),
            Step::silence(),
        ]
    })
}

#[test]
fn who_listens_to_a_task_hears_of_it_by_the_id_that_its_caller_has_as_long_as_its_tool_may_be_used()
{
    let go = Signal::default();
    let one = telling(&go);
    let of = |tools: &str| {
        let servers = format!(
            "    one: {{ url: \"{}\", tools: {{ allow: [{tools}] }} }}",
            url(&one)
        );
        config(&servers, "    - { workload: [ada, ben] }")
    };
    let gate = Gate::start(&of("read"), &[]);
    let (ada, ben) = (Caller::new(&gate, "ada"), Caller::new(&gate, "ben"));
    let (task, bens) = (made(&ada, "one__read"), made(&ben, "one__read"));
    let listening = |capabilities: &Value| {
        let params = json!({"notifications": {"taskIds": [task, bens, "job/1"]}, "_meta": meta(capabilities)});
        let message = json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params});
        (headers("subscriptions/listen", &json!({})), message)
    };
    let (fields, message) = listening(&knows());
    let mut stream = Stream::begin(&ada, &fields, &message);
    let heard = messages(&stream.until("\"working\""));
    assert_eq!(
        heard[0]["method"],
        "notifications/subscriptions/acknowledged"
    );
    assert_eq!(
        heard[0]["params"]["notifications"],
        json!({"taskIds": [task]})
    );
    let told = |heard: &Value, status: &str| {
        let params = &heard["params"];
        assert_eq!(
            (&heard["method"], &params["taskId"], &params["status"]),
            (&json!("notifications/tasks"), &json!(task), &json!(status)),
            "{heard}"
        );
        assert_eq!(
            params["_meta"]["io.modelcontextprotocol/subscriptionId"],
            "l"
        );
    };
    told(&heard[1], "working");
    go.give();
    let heard = messages(&stream.until("\"completed\""));
    assert_eq!(heard.len(), 3, "of `job/2` nobody asked: {heard:?}");
    told(&heard[2], "completed");
    // Who does not say that it knows tasks is told what it lacks.
    let (fields, message) = listening(&json!({}));
    let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
    let refused = ada.send("POST", &fields, message.to_string().as_bytes());
    let error = &refused.body["error"];
    assert_eq!(
        (refused.status, &error["code"]),
        (400, &json!(-32021)),
        "{error}"
    );
    assert_eq!(error["data"]["requiredCapabilities"], knows());
}

#[test]
fn where_no_server_has_tasks_there_is_no_such_method() {
    let (one, two) = (making(), modern("two"));
    let servers = format!(
        "    one: {{ url: \"{}\" }}\n    two: {{ url: \"{}\" }}",
        url(&one),
        url(&two)
    );
    let routes = "    - { workload: ada }\n    - { workload: ben, servers: two }";
    let gate = Gate::start(&config(&servers, routes), &[]);
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        for (workload, status, code) in [("ada", 200, -32602), ("ben", 404, -32601)] {
            let caller = Caller::new(&gate, workload);
            let told = about(&caller, method, &json!({"taskId": "made-up"}));
            let error = &told.body["error"]["code"];
            assert_eq!(
                (told.status, error),
                (status, &json!(code)),
                "{workload} {method}: {}",
                told.body
            );
        }
    }
}
