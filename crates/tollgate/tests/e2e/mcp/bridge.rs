//! Clients with a session before servers without, and clients without a session before servers with: what is kept, what is made anew, and what
//! is refused by name. The table of all of it is in docs/mcp.md.
//!
//! Not here: clients and servers of the same kind (`super`, `modern`).

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::modern::{VERSION, ask, call, headers, messages, meta, modern, modern_reply};
use super::streams::Listening;
use super::{Caller, config, reply, server, url};
use crate::harness::answer::{self, chunk, events_head, whole};
use crate::harness::{Gate, Seen, Signal, Step, Upstream};

/// An answer to a request that listens, as far as it has come.
pub(super) struct Stream {
    tcp: TcpStream,
    heard: Vec<u8>,
}

impl Stream {
    pub(super) fn begin(caller: &Caller<'_>, headers: &[String], message: &Value) -> Self {
        let body = message.to_string();
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nhost: g\r\nx-workload-app: {}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
            caller.workload,
            body.len()
        );
        if let Some(session) = &caller.session {
            head.push_str(&format!("mcp-session-id: {session}\r\n"));
        }
        for header in headers {
            head.push_str(&format!("{header}\r\n"));
        }
        let mut tcp = TcpStream::connect(caller.gate.data).expect("the gate listens");
        tcp.set_read_timeout(Some(Duration::from_secs(60)))
            .expect("a socket option");
        tcp.write_all(format!("{head}\r\n{body}").as_bytes())
            .expect("it is taken");
        Self {
            tcp,
            heard: Vec::new(),
        }
    }

    /// Reads until it has heard this; all that it has heard.
    pub(super) fn until(&mut self, what: &str) -> String {
        let mut bytes = [0; 4096];
        loop {
            let text = String::from_utf8_lossy(&self.heard).into_owned();
            if text.contains(what) {
                return text;
            }
            let read = self
                .tcp
                .read(&mut bytes)
                .expect("more before the time is up");
            assert_ne!(read, 0, "it ended before {what}: {text}");
            self.heard.extend_from_slice(&bytes[..read]);
        }
    }
}

pub(super) fn listen(notifications: &Value) -> (Vec<String>, Value) {
    let params = json!({"_meta": meta(&json!({})), "notifications": notifications});
    let message =
        json!({"jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen", "params": params});
    (headers("subscriptions/listen", &json!({})), message)
}

fn event(message: &Value) -> Step {
    Step::Send(chunk(format!("data: {message}\n\n").as_bytes()))
}

fn is_method(seen: &Seen, method: &str) -> bool {
    !seen.body.is_empty() && seen.json()["method"] == method
}

#[test]
fn a_client_without_a_session_uses_a_server_with_sessions_in_one_that_the_gate_keeps() {
    let old = server("old");
    let servers = format!("    old: {{ url: \"{}\" }}", url(&old));
    let gate = Gate::start(&config(&servers, "    - { workload: [ada, ben] }"), &[]);
    let (ada, ben) = (Caller::new(&gate, "ada"), Caller::new(&gate, "ben"));
    let told = ask(&ada, "server/discover", &json!({}));
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!(
        told.body["result"]["capabilities"],
        json!({"tools": {}, "prompts": {}, "resources": {"subscribe": true}, "completions": {}})
    );
    let told = ask(&ada, "tools/list", &json!({}));
    assert_eq!(told.body["result"]["tools"][0]["name"], "old__read");
    assert_eq!(
        (
            &told.body["result"]["resultType"],
            &told.body["result"]["cacheScope"]
        ),
        (&json!("complete"), &json!("private"))
    );
    for _ in 0..20 {
        let told = call(&ada, "old__read");
        assert_eq!(
            (told.status, &told.body["result"]["tool"]),
            (200, &json!("read")),
            "{}",
            told.body
        );
        assert_eq!(told.body["result"]["resultType"], "complete");
    }
    let told = ask(&ada, "resources/read", &json!({"uri": "old+file:///a"}));
    assert_eq!(
        (
            &told.body["result"]["ttlMs"],
            &told.body["result"]["cacheScope"]
        ),
        (&json!(0), &json!("private"))
    );
    assert_eq!(call(&ben, "old__read").status, 200);
    let count = |method: &str| {
        old.seen()
            .iter()
            .filter(|seen| is_method(seen, method))
            .count()
    };
    assert_eq!(
        count("initialize"),
        2,
        "one session for each caller, whichever worker serves it"
    );
    assert_eq!(count("notifications/initialized"), 2);
    let sent = old
        .seen()
        .into_iter()
        .rfind(|seen| is_method(seen, "tools/call"))
        .expect("a call");
    assert_eq!(sent.header("mcp-session-id"), ["of-old"]);
    assert_eq!(sent.header("mcp-protocol-version"), ["2025-06-18"]);
    assert!(sent.header("mcp-method").is_empty() && sent.header("mcp-name").is_empty());
    assert_eq!(
        sent.json()["params"]["_meta"],
        json!({}),
        "it is not told what its session says"
    );
    let mut ids: Vec<String> = old
        .seen()
        .iter()
        .filter(|seen| is_method(seen, "tools/call"))
        .map(|seen| seen.json()["id"].to_string())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(
        ids.len(),
        21,
        "clients of one caller that count alike are told apart"
    );
    let state = ask(
        &ada,
        "tools/call",
        &json!({"name": "old__read", "requestState": "x"}),
    );
    assert_eq!(
        (state.status, &state.body["error"]["data"]["code"]),
        (400, &json!("mcp_state_invalid")),
        "it has given none"
    );
}

#[test]
fn a_session_that_the_gate_keeps_is_begun_anew_where_its_server_has_it_no_more() {
    let old = Upstream::start(|nth, seen| {
        let is_gone = nth > 5 && seen.header("mcp-session-id") == ["of-old"];
        let gone = || whole(404, "application/json", b"{\"error\":\"no session\"}");
        let fresh = || {
            let text = String::from_utf8(reply("old", seen)).expect("text");
            text.replace("of-old", if nth > 5 { "of-new" } else { "of-old" })
                .into_bytes()
        };
        vec![Step::Send(if is_gone { gone() } else { fresh() })]
    });
    let servers = format!("    old: {{ url: \"{}\" }}", url(&old));
    let gate = Gate::start(
        &("workers: 1\n".to_owned() + &config(&servers, "    - { workload: agent }")),
        &[],
    );
    let caller = Caller::new(&gate, "agent");
    while old.count() < 8 {
        let told = call(&caller, "old__read");
        assert_eq!(
            (told.status, &told.body["result"]["tool"]),
            (200, &json!("read")),
            "{}",
            told.body
        );
    }
    let told = call(&caller, "old__read");
    assert_eq!(told.status, 200, "{}", told.body);
    let sent = old.seen().pop().expect("a call");
    assert_eq!(sent.header("mcp-session-id"), ["of-new"]);
}

#[test]
fn a_server_with_sessions_that_asks_a_client_without_one_is_told_that_nobody_answers_and_only_wanted_logs_are_passed_on()
 {
    let answered = Signal::default();
    let given = answered.clone();
    let old = Upstream::start(move |_, seen| {
        if is_method(seen, "tools/call") {
            let log = |level: &str| json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": level, "data": level}});
            let id = &seen.json()["id"];
            return vec![
                Step::Send(events_head()),
                event(&log("info")),
                event(&log("error")),
                event(
                    &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}),
                ),
                event(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})),
                event(&json!({"jsonrpc": "2.0", "id": 40, "method": "ping"})),
                event(
                    &json!({"jsonrpc": "2.0", "id": 41, "method": "elicitation/create", "params": {}}),
                ),
                Step::Until(given.clone()),
                event(&json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}})),
                Step::Send(chunk(b"")),
            ];
        }
        if !seen.body.is_empty() && seen.json()["id"] == 41 {
            given.give();
        }
        vec![Step::Send(reply("old", seen))]
    });
    let servers = format!("    old: {{ url: \"{}\" }}", url(&old));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::new(&gate, "agent");
    let mut of = meta(&json!({"elicitation": {}}));
    of["io.modelcontextprotocol/logLevel"] = json!("warning");
    let told = ask(
        &caller,
        "tools/call",
        &json!({"name": "old__read", "_meta": of}),
    );
    let said = messages(told.body.as_str().expect("events"));
    let methods: Vec<&str> = said.iter().filter_map(|of| of["method"].as_str()).collect();
    assert_eq!(
        methods,
        ["notifications/message", "notifications/progress"],
        "{said:?}"
    );
    assert_eq!(said[0]["params"]["level"], "error");
    assert_eq!(
        said.last().expect("an answer")["result"]["resultType"],
        "complete"
    );
    let answer = |id: u64| {
        old.seen()
            .iter()
            .map(|seen| {
                if seen.body.is_empty() {
                    json!({})
                } else {
                    seen.json()
                }
            })
            .find(|of| of["id"] == id)
            .expect("an answer")
    };
    assert_eq!(answer(40)["result"], json!({}));
    assert_eq!(answer(41)["error"]["code"], -32601);
    let begun = old
        .seen()
        .iter()
        .find(|seen| is_method(seen, "initialize"))
        .expect("a handshake")
        .json();
    assert_eq!(
        begun["params"]["capabilities"],
        json!({}),
        "it is offered nothing that it could ask"
    );
    let told = call(&caller, "old__read");
    let said = messages(told.body.as_str().expect("events"));
    assert!(
        !said
            .iter()
            .any(|of| of["method"] == "notifications/message"),
        "none was wanted: {said:?}"
    );
}

#[test]
fn a_client_with_a_session_uses_a_server_without_sessions() {
    let (new, old) = (modern("new"), server("old"));
    let servers = format!(
        "    new: {{ url: \"{}\" }}\n    old: {{ url: \"{}\" }}",
        url(&new),
        url(&old)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let mut caller = Caller::new(&gate, "agent");
    let mut params = super::initialize();
    params["capabilities"] = json!({"roots": {"listChanged": true}, "sampling": {"tools": {}}});
    let told = caller.request("initialize", &params);
    assert_eq!(told.status, 200, "{}", told.body);
    assert_eq!(told.body["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(
        told.body["result"]["capabilities"]["tools"],
        json!({"listChanged": true})
    );
    assert_eq!(told.body["result"]["instructions"], "# new\n\nuse new");
    caller.session = told.session;
    let initialized = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(caller.send("POST", &[], initialized).status, 202);
    assert_eq!(
        caller.tools().0,
        ["new__read", "new__delete", "old__read", "old__delete"]
    );
    assert_eq!(caller.call("old__read").body["result"]["server"], "old");
    let told = caller.request(
        "tools/call",
        &json!({"name": "new__read", "arguments": {"where": "ü"}, "_meta": {"progressToken": 3}}),
    );
    assert_eq!(told.body["result"]["server"], "new", "{}", told.body);
    let said = &told.body["result"]["meta"];
    assert_eq!(said["io.modelcontextprotocol/protocolVersion"], VERSION);
    assert_eq!(
        said["io.modelcontextprotocol/clientCapabilities"],
        json!({"roots": {}, "sampling": {"tools": {}}})
    );
    assert_eq!(said["progressToken"], 3);
    let sent = new.seen().pop().expect("a call");
    assert_eq!(
        sent.header("mcp-param-where"),
        ["=?base64?w7w=?="],
        "the gate writes the headers of arguments"
    );
    let told = caller.request("resources/read", &json!({"uri": "new+file:///a"}));
    assert_eq!(told.body["result"]["named"], "file:///a", "{}", told.body);
    let told = caller.request("prompts/get", &json!({"name": "new__greet"}));
    assert_eq!(told.body["result"]["tool"], "greet", "{}", told.body);
    let told = caller.request(
        "tools/call",
        &json!({"name": "new__read", "requestState": "x"}),
    );
    assert_eq!(
        told.status, 400,
        "what has no meaning in a session is not passed on: {}",
        told.body
    );
    assert_eq!(caller.send("DELETE", &[], b"").status, 200);
    let strays = new
        .seen()
        .iter()
        .filter(|seen| seen.body.is_empty() || seen.json()["id"].is_null())
        .count();
    assert_eq!(strays, 0, "it is told nothing outside requests");
}

#[test]
fn a_client_without_a_session_that_leaves_has_cancelled_at_a_server_with_sessions() {
    let old = Upstream::start(|_, seen| {
        if is_method(seen, "tools/call") {
            return vec![
                Step::Send(events_head()),
                event(&notification(
                    "notifications/progress",
                    &json!({"progressToken": 1, "progress": 1}),
                )),
                Step::silence(),
            ];
        }
        vec![Step::Send(reply("old", seen))]
    });
    let servers = format!("    old: {{ url: \"{}\" }}", url(&old));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::new(&gate, "agent");
    let params = json!({"name": "old__read", "_meta": meta(&json!({}))});
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
    let mut stream = Stream::begin(&caller, &headers("tools/call", &params), &message);
    stream.until("notifications/progress");
    drop(stream);
    let seen = |method: &'static str| {
        old.seen()
            .into_iter()
            .find(|seen| is_method(seen, method))
            .map(|seen| seen.json())
    };
    testing::eventually("the server is told that nobody waits", || {
        seen("notifications/cancelled").is_some()
    });
    let (asked, cancelled) = (
        seen("tools/call").expect("a call"),
        seen("notifications/cancelled").expect("a message"),
    );
    assert_eq!(cancelled["params"]["requestId"], asked["id"]);
}

/// A server without sessions that wants to know something before it answers `read`.
fn asking(kind: &'static str) -> Upstream {
    Upstream::start(move |_, seen| {
        if !is_method(seen, "tools/call") {
            return vec![Step::Send(modern_reply("new", seen))];
        }
        let message = seen.json();
        let params = &message["params"];
        let result = match params["requestState"].as_str() {
            None if kind == "task" => json!({"resultType": "task", "task": {}}),
            None if kind == "state" => {
                json!({"resultType": "input_required", "requestState": "s".repeat(2 << 20)})
            }
            None if kind == "question" => {
                let asks = "q".repeat(9 << 20);
                json!({"resultType": "input_required", "inputRequests": {
                "who": {"method": "elicitation/create", "params": {"message": asks}}}})
            }
            None => {
                json!({"resultType": "input_required", "requestState": "one", "inputRequests": {
                "who": {"method": "elicitation/create", "params": {"message": "Who?"}},
                "roots": {"method": "roots/list"}}})
            }
            Some("one") => {
                json!({"resultType": "input_required", "requestState": "two", "inputRequests": {
                "sure": {"method": "elicitation/create", "params": {"message": "Sure?"}}}})
            }
            Some(_) => {
                json!({"resultType": "complete", "content": [], "responses": params["inputResponses"], "state": params["requestState"]})
            }
        };
        let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
        vec![Step::Send(answer::json(200, &body.to_string()))]
    })
}

fn begun_with<'g>(gate: &'g Gate, capabilities: &Value) -> Caller<'g> {
    let mut caller = Caller::new(gate, "agent");
    let mut params = super::initialize();
    params["capabilities"] = capabilities.clone();
    caller.session = caller.request("initialize", &params).session;
    caller
}

#[test]
fn what_a_server_without_sessions_wants_to_know_is_asked_on_the_stream_of_the_call() {
    let new = asking("input");
    let servers = format!("    new: {{ url: \"{}\" }}", url(&new));
    let gate = Gate::start(
        &("workers: 2\n".to_owned() + &config(&servers, "    - { workload: agent }")),
        &[],
    );
    let caller = begun_with(&gate, &json!({"elicitation": {}, "roots": {}}));
    let other = begun_with(&gate, &json!({"elicitation": {}, "roots": {}}));
    let message =
        json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "new__read"}});
    let mut stream = Stream::begin(&caller, &[], &message);
    let asked = |text: &str| -> Vec<Value> {
        messages(text)
            .into_iter()
            .filter(|of| of["method"].is_string())
            .collect()
    };
    stream.until("Who?");
    let text = stream.until("roots/list");
    let first = asked(&text);
    assert_eq!(first.len(), 2, "{text}");
    let answer = |caller: &Caller<'_>, id: &Value, result: Value| {
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        caller.send("POST", &[], answer.as_bytes()).status
    };
    let of = |method: &str| {
        first
            .iter()
            .find(|of| of["method"] == method)
            .expect("a request")["id"]
            .clone()
    };
    let (who, roots) = (of("elicitation/create"), of("roots/list"));
    assert_eq!(
        answer(
            &other,
            &who,
            json!({"action": "accept", "content": {"who": "eve"}})
        ),
        400,
        "another session's answer is none"
    );
    assert_eq!(
        answer(
            &caller,
            &who,
            json!({"action": "accept", "content": {"who": "ada"}})
        ),
        202
    );
    assert_eq!(
        answer(&caller, &who, json!({"action": "decline"})),
        400,
        "the first one counts"
    );
    assert_eq!(answer(&caller, &roots, json!({"roots": []})), 202);
    let text = stream.until("Sure?");
    let sure = asked(&text).pop().expect("a request")["id"].clone();
    assert_eq!(answer(&caller, &sure, json!({"action": "accept"})), 202);
    let text = stream.until("\"state\":\"two\"");
    let told = messages(&text).pop().expect("an answer");
    assert_eq!(
        (&told["id"], &told["result"]["responses"]["sure"]["action"]),
        (&json!(9), &json!("accept"))
    );
    let sent: Vec<Value> = new
        .seen()
        .iter()
        .filter(|seen| is_method(seen, "tools/call"))
        .map(Seen::json)
        .collect();
    assert_eq!(sent.len(), 3);
    assert_eq!(
        sent[1]["params"]["inputResponses"],
        json!({"who": {"action": "accept", "content": {"who": "ada"}}, "roots": {"roots": []}})
    );
    assert_eq!(sent[1]["params"]["name"], "read");
    assert_eq!(
        sent[1]["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        json!({"roots": {}, "elicitation": {}})
    );
}

#[test]
fn what_cannot_be_told_to_a_client_with_a_session_is_refused_by_name() {
    let both = "application/json, text/event-stream";
    let bridged = (502, "mcp_not_bridged");
    for (kind, capabilities, accept, (status, code), says) in [
        (
            "state",
            json!({"elicitation": {}}),
            both,
            bridged,
            "`requestState` is longer than 1048576 bytes",
        ),
        (
            "question",
            json!({"elicitation": {}}),
            both,
            (503, "mcp_no_room"),
            "questions of servers to this session, their `requestState` and their answers would take more than 8388608 bytes",
        ),
        ("task", json!({}), both, bridged, "with the result `task`"),
        (
            "input",
            json!({"roots": {}}),
            both,
            bridged,
            "elicitation/create, which its client did not offer",
        ),
        (
            "input",
            json!({"roots": {}, "elicitation": {}}),
            "application/json",
            bridged,
            "takes no text/event-stream",
        ),
    ] {
        let new = asking(kind);
        let servers = format!("    new: {{ url: \"{}\" }}", url(&new));
        let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
        let caller = begun_with(&gate, &capabilities);
        let message = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "new__read"}});
        let told = caller.send(
            "POST",
            &[&format!("accept: {accept}")],
            message.to_string().as_bytes(),
        );
        assert_eq!(
            (told.status, &told.body["error"]["data"]["code"]),
            (status, &json!(code)),
            "{}",
            told.body
        );
        assert!(
            told.body["error"]["message"]
                .as_str()
                .expect("a text")
                .contains(says),
            "{}",
            told.body
        );
        assert_eq!(
            (&told.body["id"], &told.body["error"]["code"]),
            (
                &json!(9),
                &json!(if status == 503 { -32000 } else { -32603 })
            )
        );
    }
}

/// A server without sessions that agrees to what it is asked, and says these when it is told to.
fn telling(name: &'static str, signal: &Signal, said: Vec<Value>) -> Upstream {
    let signal = signal.clone();
    Upstream::start(move |_, seen| {
        if !is_method(seen, "subscriptions/listen") {
            return vec![Step::Send(modern_reply(name, seen))];
        }
        let message = seen.json();
        let agreed = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
            "_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]}, "notifications": message["params"]["notifications"]}});
        let mut steps = vec![
            Step::Send(events_head()),
            event(&agreed),
            Step::Until(signal.clone()),
        ];
        steps.extend(said.iter().map(event));
        steps.push(Step::silence());
        steps
    })
}

fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[test]
fn a_client_without_a_session_listens_to_servers_of_both_kinds_on_one_stream() {
    let go = Signal::default();
    let updated = |uri: &str| notification("notifications/resources/updated", &json!({"uri": uri}));
    let said = vec![
        notification("notifications/prompts/list_changed", &json!({})),
        updated("file:///etc/passwd"),
        updated("file:///b"),
        updated("file:///a"),
        notification(
            "notifications/tools/list_changed",
            &json!({"_meta": {"io.modelcontextprotocol/subscriptionId": "theirs"}}),
        ),
    ];
    let new = telling("new", &go, said);
    let told = go.clone();
    let old = Upstream::start(move |_, seen| {
        if !seen.head.starts_with("GET") {
            return vec![Step::Send(reply("old", seen))];
        }
        vec![
            Step::Send(events_head()),
            Step::Until(told.clone()),
            event(&json!({"jsonrpc": "2.0", "id": 50, "method": "ping"})),
            event(&notification(
                "notifications/message",
                &json!({"level": "error", "data": "x"}),
            )),
            event(&updated("file:///a")),
            Step::silence(),
        ]
    });
    let servers = format!(
        "    new: {{ url: \"{}\", resources: {{ deny: \"file:///etc/*\" }} }}\n    old: {{ url: \"{}\" }}",
        url(&new),
        url(&old)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::new(&gate, "agent");
    let wanted = json!({"toolsListChanged": true, "resourcesListChanged": true,
        "resourceSubscriptions": ["new+file:///a", "new+file:///etc/passwd", "old+file:///a", "nobody+x:y"]});
    let (headers, message) = listen(&wanted);
    let mut stream = Stream::begin(&caller, &headers, &message);
    let text = stream.until("acknowledged");
    assert!(
        text.starts_with("HTTP/1.1 200") && text.contains("text/event-stream"),
        "{text}"
    );
    let first = messages(&text).remove(0);
    let id = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(
        first["params"],
        json!({"_meta": {id: "l"}, "notifications": {"toolsListChanged": true, "resourceSubscriptions": ["new+file:///a", "old+file:///a"]}})
    );
    let asked = new
        .seen()
        .into_iter()
        .find(|seen| is_method(seen, "subscriptions/listen"))
        .expect("a request")
        .json();
    assert_eq!(
        asked["params"]["notifications"],
        json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]})
    );
    let subscribed = old
        .seen()
        .into_iter()
        .find(|seen| is_method(seen, "resources/subscribe"))
        .expect("a request")
        .json();
    assert_eq!(subscribed["params"]["uri"], "file:///a");
    go.give();
    stream.until("tools/list_changed");
    let text = stream.until("old+file:///a\"}}");
    let said = messages(&text);
    let mut uris: Vec<&str> = said
        .iter()
        .filter_map(|of| of["params"]["uri"].as_str())
        .collect();
    uris.sort_unstable();
    assert_eq!(uris, ["new+file:///a", "old+file:///a"], "{text}");
    assert!(
        said.iter().all(|of| of["params"]["_meta"][id] == "l"),
        "{text}"
    );
    assert!(
        !text.contains("prompts/list_changed") && !text.contains("notifications/message"),
        "{text}"
    );
    testing::eventually(
        "a server that asks whether anybody is there is told so",
        || {
            old.seen()
                .iter()
                .any(|seen| !seen.body.is_empty() && seen.json()["id"] == 50)
        },
    );
}

/// A server with sessions that has one standing stream in each, as the official SDKs' have.
fn with_one_stream_a_session(go: &Signal) -> Upstream {
    let (go, streams) = (go.clone(), Mutex::new(HashSet::new()));
    let begun = AtomicUsize::new(0);
    Upstream::start(move |_, seen| {
        if seen.head.starts_with("GET") {
            let session = seen.header("mcp-session-id");
            if !streams.lock().expect("nobody panicked").insert(session) {
                return vec![Step::Send(answer::json(409, "{}"))];
            }
            let uri = json!({"uri": "file:///a"});
            return vec![
                Step::Send(events_head()),
                Step::Until(go.clone()),
                event(&notification("notifications/resources/updated", &uri)),
                Step::silence(),
            ];
        }
        if seen.head.starts_with("DELETE") || !is_method(seen, "initialize") {
            return vec![Step::Send(reply("old", seen))];
        }
        let result = String::from_utf8(reply("old", seen)).expect("text");
        let nth = begun.fetch_add(1, Ordering::Relaxed);
        vec![Step::Send(
            result
                .replace("of-old", &format!("of-old-{nth}"))
                .into_bytes(),
        )]
    })
}

#[test]
fn a_second_stream_of_a_caller_hears_a_server_with_sessions_in_a_session_of_its_own() {
    let go = Signal::default();
    let old = with_one_stream_a_session(&go);
    let servers = format!("    old: {{ url: \"{}\" }}", url(&old));
    let gate = Gate::start(
        &("workers: 2\n".to_owned() + &config(&servers, "    - { workload: agent }")),
        &[],
    );
    let caller = Caller::new(&gate, "agent");
    let (headers, message) = listen(&json!({"resourceSubscriptions": ["old+file:///a"]}));
    let mut streams: Vec<Stream> = (0..3)
        .map(|_| {
            let mut stream = Stream::begin(&caller, &headers, &message);
            let text = stream.until("acknowledged");
            let told = messages(&text).remove(0);
            let heard = &told["params"]["notifications"]["resourceSubscriptions"];
            assert_eq!(heard, &json!(["old+file:///a"]));
            stream
        })
        .collect();
    go.give();
    for stream in &mut streams {
        stream.until("resources/updated");
    }
    let of = |method: &str| {
        let seen = old.seen();
        seen.iter().filter(|seen| is_method(seen, method)).count()
    };
    assert_eq!((of("initialize"), of("resources/subscribe")), (3, 3));
    drop(streams);
    let ended = || {
        let seen = old.seen();
        seen.iter()
            .filter(|seen| seen.head.starts_with("DELETE"))
            .count()
    };
    testing::eventually("sessions of their own end with the streams", || {
        ended() == 2
    });
}

#[test]
fn a_client_with_a_session_hears_of_changes_at_a_server_without_sessions() {
    let go = Signal::default();
    let new = telling(
        "new",
        &go,
        vec![notification("notifications/tools/list_changed", &json!({}))],
    );
    let servers = format!("    new: {{ url: \"{}\" }}", url(&new));
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let caller = Caller::begun(&gate, "agent");
    let mut listening = Listening::begin(&caller, "");
    go.give();
    let heard = listening.until("tools/list_changed");
    assert!(!heard.contains("acknowledged"), "{heard}");
}

#[test]
fn what_a_client_says_once_in_its_session_is_told_to_a_server_without_sessions_each_time() {
    let new = Upstream::start(|_, seen| {
        if !is_method(seen, "subscriptions/listen") {
            return vec![Step::Send(modern_reply("new", seen))];
        }
        let message = seen.json();
        let wanted = &message["params"]["notifications"];
        let agreed = notification(
            "notifications/subscriptions/acknowledged",
            &json!({"notifications": wanted}),
        );
        let mut steps = vec![Step::Send(events_head()), event(&agreed)];
        for uri in wanted["resourceSubscriptions"]
            .as_array()
            .into_iter()
            .flatten()
        {
            for uri in [json!("file:///etc/passwd"), uri.clone()] {
                steps.push(event(&notification(
                    "notifications/resources/updated",
                    &json!({"uri": uri}),
                )));
            }
        }
        steps.push(Step::silence());
        steps
    });
    let servers = format!(
        "    new: {{ url: \"{}\", resources: {{ deny: \"file:///etc/*\" }} }}",
        url(&new)
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    let (caller, other) = (Caller::begun(&gate, "agent"), Caller::begun(&gate, "agent"));
    let told = caller.request("logging/setLevel", &json!({"level": "warning"}));
    assert_eq!(told.body["result"], json!({}), "{}", told.body);
    let level = |caller: &Caller<'_>| {
        caller.call("new__read").body["result"]["meta"]["io.modelcontextprotocol/logLevel"].clone()
    };
    assert_eq!(
        (level(&caller), level(&other)),
        (json!("warning"), Value::Null)
    );
    let mut listening = Listening::begin(&caller, "");
    let uri = json!({"uri": "new+file:///a"});
    assert_eq!(
        caller.request("resources/subscribe", &uri).body["result"],
        json!({})
    );
    let heard = listening.until("new+file:///a");
    assert!(
        !heard.contains("passwd") && !heard.contains("acknowledged"),
        "{heard}"
    );
    let hidden = caller.request(
        "resources/subscribe",
        &json!({"uri": "new+file:///etc/passwd"}),
    );
    assert_eq!(hidden.body["error"]["code"], -32002, "{}", hidden.body);
    assert_eq!(
        caller.request("resources/unsubscribe", &uri).body["result"],
        json!({})
    );
    let wanted = || -> Vec<Value> {
        let seen = new.seen();
        let asked = seen
            .iter()
            .filter(|seen| is_method(seen, "subscriptions/listen"));
        asked
            .map(|seen| seen.json()["params"]["notifications"].clone())
            .collect()
    };
    testing::eventually("it is listened to no more", || wanted().len() == 3);
    let lists = json!({"toolsListChanged": true});
    let all = json!({"toolsListChanged": true, "resourceSubscriptions": ["file:///a"]});
    assert_eq!(wanted(), [lists.clone(), all, lists]);
}

#[test]
fn a_server_that_speaks_otherwise_than_it_did_is_spoken_to_otherwise() {
    let is_new = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let now = std::sync::Arc::clone(&is_new);
    let turning = Upstream::start(move |_, seen| {
        let is_new = now.load(std::sync::atomic::Ordering::SeqCst);
        let is_modern = seen.header("mcp-protocol-version") == [VERSION];
        vec![Step::Send(match (is_new, is_modern) {
            (true, true) => modern_reply("turned", seen),
            (false, false) => reply("turned", seen),
            _ => whole(400, "text/plain", b"which version?"),
        })]
    });
    let servers = format!("    one: {{ url: \"{}\" }}", url(&turning));
    let text = "workers: 1\n".to_owned() + &config(&servers, "    - { workload: agent }");
    let gate = Gate::start(&text, &[]);
    let caller = Caller::new(&gate, "agent");
    for modern in [false, true, false] {
        is_new.store(modern, std::sync::atomic::Ordering::SeqCst);
        if call(&caller, "one__read").status != 200 {
            // The first message finds it changed.
            let told = call(&caller, "one__read");
            assert_eq!(told.status, 200, "{}", told.body);
        }
        let seen = turning.seen().pop().expect("a call");
        assert_eq!(seen.header("mcp-protocol-version") == [VERSION], modern);
    }
}
