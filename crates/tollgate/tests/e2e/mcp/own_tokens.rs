//! Tokens of their own that callers bring for servers: to whom they go, and that nothing of theirs is shown to anybody else.
//!
//! Not here: the gate's own credentials (`upstream_credentials`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::modern::{headers, meta, modern_reply};
use super::{Caller, Told, config, reply, server, url};
use crate::harness::{Gate, Seen, Step, Upstream, answer, answer::whole};

/// A server with sessions that shows each token a tool of its own, and answers calls with the session that they are of.
pub(super) fn personal() -> Upstream {
    let sessions = AtomicUsize::new(0);
    Upstream::start(move |_, seen| vec![Step::Send(personal_reply(&sessions, seen))])
}

fn token(seen: &Seen) -> String {
    seen.header("authorization").join(" and ")
}

fn personal_reply(sessions: &AtomicUsize, seen: &Seen) -> Vec<u8> {
    if seen.body.is_empty() || token(seen).is_empty() {
        return whole(401, "text/plain", b"");
    }
    let message = seen.json();
    let result = match message["method"].as_str() {
        Some("initialize") => {
            let session = sessions.fetch_add(1, Ordering::SeqCst);
            let answer = String::from_utf8(reply("one", seen)).expect("text");
            return answer
                .replace("of-one", &format!("s{session}"))
                .into_bytes();
        }
        Some("tools/list") => {
            let name = token(seen).replace("Bearer ", "of_");
            json!({"tools": [{"name": name, "inputSchema": {}}]})
        }
        Some("tools/call") => {
            json!({"content": [], "token": token(seen), "session": seen.header("mcp-session-id")})
        }
        _ => return reply("one", seen),
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    answer::json(200, &body.to_string())
}

/// A request of a client without a session that brings this.
pub(super) fn bringing(caller: &Caller<'_>, fields: &[&str], method: &str, params: &Value) -> Told {
    let mut params = params.clone();
    params["_meta"] = meta(&json!({}));
    let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let own = headers(method, &params);
    let own = own.iter().map(String::as_str).chain(fields.iter().copied());
    caller.send(
        "POST",
        &own.collect::<Vec<&str>>(),
        message.to_string().as_bytes(),
    )
}

pub(super) fn tools(told: &Told) -> Vec<String> {
    let tools = told.body["result"]["tools"].as_array();
    let tools = tools.unwrap_or_else(|| panic!("{}", told.body));
    let names = tools
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name").to_owned());
    names.collect()
}

#[test]
fn what_a_server_says_at_length_to_one_caller_is_asked_for_once() {
    let says = "use it so. ".repeat(700);
    let told = says.clone();
    let one = Upstream::start(move |_, seen| {
        let reply = String::from_utf8(modern_reply("one", seen)).expect("text");
        let (_, body) = reply.split_once("\r\n\r\n").expect("a head");
        let body = body.replace("use one", &told);
        vec![Step::Send(answer::json(200, &body))]
    });
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let routes = "    - { workload: agent, own_tokens: { one: x-one-token } }";
    let gate = Gate::start(
        &("workers: 1\n".to_owned() + &config(&servers, routes)),
        &[],
    );
    let caller = Caller::new(&gate, "agent");
    for method in ["tools/list", "server/discover", "tools/list"] {
        let told = bringing(&caller, &["x-one-token: ada"], method, &json!({}));
        assert_eq!(told.status, 200, "{}", told.body);
        if method == "server/discover" {
            let told = told.body["result"]["instructions"].as_str();
            assert!(told.is_some_and(|told| told.contains(&says)), "{told:?}");
        }
    }
    let asked = |method: &str| {
        let seen = one.seen();
        let of = seen
            .iter()
            .filter(|seen| seen.header("mcp-method") == [method]);
        of.count()
    };
    assert_eq!(asked("server/discover"), 1);
}

#[test]
fn a_callers_own_token_goes_to_its_server_alone_and_what_it_shows_to_nobody_else() {
    let (one, two) = (personal(), server("two"));
    let servers = format!(
        "    one: {{ url: \"{}\", credential: {{ inline: shared }} }}\n    two: {{ url: \"{}\" }}",
        url(&one),
        url(&two)
    );
    let routes =
        "    - { workload: [ada, ben], own_tokens: { one: x-one-token } }\n    - { workload: cem }";
    let gate = Gate::start(
        &("workers: 1\n".to_owned() + &config(&servers, routes)),
        &[],
    );
    let ada = Caller::new(&gate, "ada");
    let list = |caller: &Caller<'_>, fields: &[&str]| {
        let told = bringing(caller, fields, "tools/list", &json!({}));
        assert_eq!(
            told.body["result"]["cacheScope"], "private",
            "{}",
            told.body
        );
        tools(&told)
    };
    let its = |own: &str| {
        [own, "two__read", "two__delete"]
            .map(str::to_owned)
            .to_vec()
    };
    assert_eq!(list(&ada, &[]), its("one__of_shared"));
    assert_eq!(list(&ada, &["x-one-token: hers"]), its("one__of_hers"));
    assert_eq!(list(&ada, &["X-One-Token: his"]), its("one__of_his"));
    assert_eq!(
        list(&ada, &[]),
        its("one__of_shared"),
        "the list that is kept"
    );
    // Sessions at the server are apart by token, of one caller, too.
    let call = |caller: &Caller<'_>, fields: &[&str]| {
        let params = json!({"name": "one__any", "arguments": {}});
        let told = bringing(caller, fields, "tools/call", &params);
        let result = &told.body["result"];
        (result["token"].clone(), result["session"].clone())
    };
    let (shared, hers) = (call(&ada, &[]), call(&ada, &["x-one-token: hers"]));
    assert_eq!(
        (&shared.0, &hers.0),
        (&json!("Bearer shared"), &json!("Bearer hers"))
    );
    assert_ne!(shared.1, hers.1);
    assert_eq!(call(&ada, &["x-one-token: hers"]), hers);
    assert_eq!(
        call(&Caller::new(&gate, "ben"), &["x-one-token: hers"]).0,
        hers.0
    );
    // A client with a session brings it, too; where a route takes none, it goes nowhere.
    let mut ben = Caller::new(&gate, "ben");
    let posted = |ben: &Caller<'_>, method: &str, params: &Value| {
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        ben.send(
            "POST",
            &["x-one-token: bens"],
            message.to_string().as_bytes(),
        )
    };
    ben.session = posted(&ben, "initialize", &super::initialize()).session;
    let told = posted(&ben, "tools/call", &json!({"name": "one__any"}));
    assert_eq!(told.body["result"]["token"], "Bearer bens", "{}", told.body);
    assert_eq!(
        call(&Caller::new(&gate, "cem"), &["x-one-token: cems"]).0,
        "Bearer shared"
    );
    for bad in [
        &["x-one-token: a", "x-one-token: b"][..],
        &["x-one-token: a b"],
    ] {
        let told = bringing(&ada, bad, "tools/list", &json!({}));
        assert_eq!(
            (told.status, &told.body["error"]["code"]),
            (400, &json!(-32020)),
            "{}",
            told.body
        );
    }
    for seen in one.seen().iter().chain(&two.seen()) {
        assert!(
            !seen.head.to_lowercase().contains("x-one-token"),
            "{}",
            seen.head
        );
    }
    for seen in two.seen() {
        assert!(
            !seen.head.contains("hers") && token(&seen).is_empty(),
            "{}",
            seen.head
        );
    }
    assert!(!gate.log().contains("hers"), "no token is in the log");
}

#[test]
fn a_server_may_have_no_credential_but_its_callers_own() {
    let one = personal();
    let servers = format!("    one: {{ url: \"{}\" }}", url(&one));
    let routes = "    - { workload: ada, own_tokens: { one: x-one-token } }";
    let gate = Gate::start(&config(&servers, routes), &[]);
    let ada = Caller::new(&gate, "ada");
    let told = bringing(&ada, &[], "tools/list", &json!({}));
    let data = json!({"code": "mcp_token_refused", "server": "one", "header": "x-one-token", "status": 401, "wants": {}});
    assert_eq!((told.status, &told.body["error"]["data"]), (403, &data));
    let told = bringing(&ada, &["x-one-token: hers"], "tools/list", &json!({}));
    assert_eq!(
        tools(&told),
        ["one__of_hers"],
        "who brings none costs nobody else"
    );
}

/// A server that refuses tokens: `stale` whole, `narrow` for calls, the gate's own, and `echoed`, which it says again.
fn wanting() -> Upstream {
    let asks = |status: u16, challenge: &str| {
        let head = format!(
            "HTTP/1.1 {status} No\r\nwww-authenticate: {challenge}\r\ncontent-length: 0\r\n\r\n"
        );
        vec![Step::Send(head.into_bytes())]
    };
    let sessions = AtomicUsize::new(0);
    Upstream::start(move |_, seen| {
        let is_call = || seen.json()["method"] == "tools/call";
        match &*token(seen) {
            "Bearer stale" => asks(
                401,
                "Bearer error=\"invalid_token\", resource_metadata=\"https://one.example/.well-known/oauth-protected-resource\"",
            ),
            "Bearer narrow" if !seen.body.is_empty() && is_call() => asks(
                403,
                "Bearer error=\"insufficient_scope\", scope=\"repo read:org\", error_description=\"call ada\"",
            ),
            "Bearer echoed" => asks(401, "Bearer error=\"invalid_token\", scope=\"of echoed\""),
            "Bearer shared" => asks(401, "Bearer scope=\"of the gate\""),
            _ => vec![Step::Send(personal_reply(&sessions, seen))],
        }
    })
}

#[test]
fn what_a_server_wants_in_place_of_a_callers_token_is_told_to_that_caller() {
    let one = wanting();
    let servers = format!(
        "    one: {{ url: \"{}\", credential: {{ inline: shared }} }}",
        url(&one)
    );
    let routes = "    - { workload: ada, own_tokens: { one: x-one-token } }";
    let gate = Gate::start(&config(&servers, routes), &[]);
    let ada = Caller::new(&gate, "ada");
    let called = |line: &str| {
        let params = json!({"name": "one__any", "arguments": {}});
        let told = bringing(&ada, &[line], "tools/call", &params);
        assert!(
            !told.head.contains("www-authenticate"),
            "it is not the gate that wants one"
        );
        (told.status, told.body["error"].clone())
    };
    let refused = |status: u16, wants: &Value| json!({"code": "mcp_token_refused", "server": "one", "header": "x-one-token", "status": status, "wants": wants});
    let (status, error) = called("x-one-token: stale");
    let metadata = "https://one.example/.well-known/oauth-protected-resource";
    let wants = json!({"error": "invalid_token", "resource_metadata": metadata});
    assert_eq!((status, &error["data"]), (403, &refused(401, &wants)));
    assert_eq!(
        error["message"],
        "the server one refused the token in the header x-one-token (401); `data.wants` is what it asks for"
    );
    let (status, error) = called("x-one-token: narrow");
    let wants = json!({"error": "insufficient_scope", "scope": "repo read:org"});
    assert_eq!((status, &error["data"]), (403, &refused(403, &wants)));
    let (_, error) = called("x-one-token: echoed");
    let wants = json!({"error": "invalid_token"});
    assert_eq!(error["data"], refused(401, &wants), "no token is told");
    assert_eq!(called("x-one-token: good").0, 200);
    // With a session it is the same.
    let begin =
        json!({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": super::initialize()});
    let mut session = Caller::new(&gate, "ada");
    let told = session.send(
        "POST",
        &["x-one-token: narrow"],
        begin.to_string().as_bytes(),
    );
    assert_eq!(told.status, 200, "{}", told.body);
    session.session = told.session;
    let call =
        json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "one__any"}});
    let told = session.send(
        "POST",
        &["x-one-token: narrow"],
        call.to_string().as_bytes(),
    );
    assert_eq!(
        (told.status, &told.body["error"]["data"]["status"]),
        (403, &json!(403))
    );
    // The gate's own is the gate's matter.
    let told = bringing(&ada, &[], "tools/list", &json!({}));
    let error = &told.body["error"];
    assert_eq!(
        (told.status, &error["data"]),
        (502, &json!({"code": "upstream_credential_refused"})),
    );
    assert_eq!(
        error["message"],
        "the server one refused the gateway's credential"
    );
    let records = gate.records(7);
    let codes: Vec<&Value> = records.iter().map(|record| &record["code"]).collect();
    let is_told = |record: &&Value| record["code"] == "mcp_token_refused";
    assert_eq!(records.iter().filter(is_told).count(), 4, "{codes:?}");
    // Workers write theirs as they come.
    let says = "the server one refused the token in the header x-one-token (401)";
    let has_reason = |record: &Value| {
        let reason = record["reason"].as_str().unwrap_or_default();
        reason.starts_with(says)
    };
    assert!(records.iter().any(has_reason), "{records:?}");
    let label = "code=\"mcp_token_refused\"";
    assert_eq!(gate.metric("tollgate_refusals_total", &[label]), 4.0);
    let of_gates = || {
        let log = gate.log();
        log.matches("an endpoint refuses the gate's credential")
            .count()
    };
    testing::eventually("it is told of", || of_gates() > 0);
    assert_eq!(of_gates(), 1, "once, for its own");
}

/// How many lists of tools a server was asked for.
fn lists(server: &Upstream) -> usize {
    let seen = server.seen();
    let is_list = |seen: &&Seen| !seen.body.is_empty() && seen.json()["method"] == "tools/list";
    seen.iter().filter(is_list).count()
}

#[test]
fn what_a_server_lists_to_a_token_is_kept_for_who_brings_that_until_its_server_refuses_it() {
    let (is_revoked, sessions) = (Arc::new(AtomicBool::new(false)), AtomicUsize::new(0));
    let is_so = Arc::clone(&is_revoked);
    let one = Upstream::start(move |_, seen| {
        let is_refused = is_so.load(Ordering::SeqCst) && token(seen) == "Bearer hers";
        vec![Step::Send(match is_refused {
            true => whole(401, "text/plain", b""),
            false => personal_reply(&sessions, seen),
        })]
    });
    let servers = format!(
        "    one: {{ url: \"{}\", credential: {{ inline: shared }} }}",
        url(&one)
    );
    let routes = "    - { workload: [ada, ben], own_tokens: { one: x-one-token } }";
    let config = "workers: 1\n".to_owned() + &config(&servers, routes);
    let gate = Gate::start(&config.replace("  within:", "  lists: 1h\n  within:"), &[]);
    let (ada, ben) = (Caller::new(&gate, "ada"), Caller::new(&gate, "ben"));
    let list = |caller: &Caller<'_>, token: &str| {
        let told = bringing(caller, &[token], "tools/list", &json!({}));
        let result = &told.body["result"];
        assert_eq!(result["cacheScope"], "private", "{}", told.body);
        tools(&told)
    };
    for _ in 0..3 {
        assert_eq!(list(&ada, "x-one-token: hers"), ["one__of_hers"]);
        assert_eq!(list(&ben, "x-one-token: hers"), ["one__of_hers"]);
        assert_eq!(list(&ben, "x-one-token: his"), ["one__of_his"]);
    }
    assert_eq!(lists(&one), 2, "each token's once");
    // The token was taken back: its first call learns of that, and the list is nobody's.
    is_revoked.store(true, Ordering::SeqCst);
    assert_eq!(
        list(&ada, "x-one-token: hers"),
        ["one__of_hers"],
        "it is kept"
    );
    let call = json!({"name": "one__any", "arguments": {}});
    let told = bringing(&ada, &["x-one-token: hers"], "tools/call", &call);
    assert_eq!(told.body["error"]["data"]["code"], "mcp_token_refused");
    assert!(list(&ada, "x-one-token: hers").is_empty());
    assert_eq!(list(&ben, "x-one-token: his"), ["one__of_his"]);
    assert_eq!(lists(&one), 3, "and it was asked for once more");
}
