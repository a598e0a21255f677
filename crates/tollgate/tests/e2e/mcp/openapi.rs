//! HTTP APIs as servers of tools, by their descriptions: the official SDK's client, what arrives at the API, and descriptions that are fetched.
//!
//! Not here: how each argument is encoded (unit tests of `openapi`).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use testing::eventually;

use super::{Caller, SECRET, initialize, modern};
use crate::harness::answer::{self, whole};
use crate::harness::{Gate, Sdk, Seen, Step, Upstream, free_address};

/// What an API says of itself; `server` is where it is.
pub(super) fn description(server: &str) -> String {
    let pet = json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "tag": {"$ref": "#/components/schemas/Tag"}}});
    let id = json!({"name": "petId", "in": "path", "required": true, "schema": {"type": "string"}});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": server}],
        "paths": {
            "/pets": {
                "get": {"operationId": "listPets", "summary": "Lists pets", "parameters": [
                    {"name": "tags", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
                    {"name": "x-trace", "in": "header", "schema": {"type": "string"}},
                    {"name": "x-api-key", "in": "header", "schema": {"type": "string"}},
                ]},
                "post": {"operationId": "addPet", "requestBody": {"required": true, "content": {"application/json": {"schema": pet}}}},
            },
            "/pets/{petId}": {"parameters": [id], "get": {"operationId": "getPet"}, "delete": {"operationId": "removePet"}},
            "/photos": {"post": {"operationId": "photo", "requestBody": {"content": {"multipart/form-data": {}}}}},
        },
        "components": {"schemas": {"Tag": {"type": "string"}}},
    })
    .to_string()
}

/// An API of pets that says where it is asked.
fn api() -> Upstream {
    Upstream::start(|_, seen| vec![Step::Send(pets(seen))])
}

fn pets(seen: &Seen) -> Vec<u8> {
    let mut words = seen.head.split(' ');
    let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    match (method, path) {
        ("POST", "/v1/pets") => answer::json(201, &String::from_utf8_lossy(&seen.body)),
        ("GET", path) if path.starts_with("/v1/pets?") || path == "/v1/pets" => answer::json(
            200,
            &json!({"asked": path, "count": 12_345_678_901_234_567_u64}).to_string(),
        ),
        ("GET", "/v1/pets/none") => answer::json(404, r#"{"title":"no such pet"}"#),
        ("GET", "/v1/pets/moved") => whole(302, "text/plain", b""),
        ("GET", "/v1/pets/forbidden") => whole(401, "text/plain", b"who are you?"),
        ("GET", path) => whole(200, "text/plain", format!("pet at {path}").as_bytes()),
        ("DELETE", _) => b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        _ => whole(405, "text/plain", b""),
    }
}

fn config(servers: &str, routes: &str) -> String {
    format!(
        "mcp:\n  secret: {{ inline: {SECRET} }}\n  within: 5s\n  servers:\n{servers}\n  routes:\n{routes}\n"
    )
}

fn used(caller: &Caller<'_>, tool: &str, arguments: &Value) -> Value {
    let told = caller.request("tools/call", &json!({"name": tool, "arguments": arguments}));
    assert_eq!(told.status, 200, "{tool}: {}", told.body);
    told.body["result"].clone()
}

fn started(api: &Upstream, further: &str, routes: &str) -> Gate {
    let described = description(&format!("http://{}/v1", api.address));
    let servers = format!("    pets: {{ openapi: pets.json{further} }}");
    let files: [(&str, &[u8]); 1] = [("pets.json", described.as_bytes())];
    Gate::start(&config(&servers, routes), &files)
}

#[test]
fn the_official_sdk_calls_an_http_api_by_its_description() {
    let api = api();
    let gate = started(&api, "", "    - { workload: agent }");
    let input = json!({"gate": format!("http://{}/mcp", gate.data)});
    let passed = json!(["tools", "calls", "errors", "fifty_at_once"]);
    let both = [
        passed.as_array().expect("checks").clone(),
        passed.as_array().expect("checks").clone(),
    ];
    assert_eq!(
        Sdk::Python.run("described", &input),
        Value::from(both.concat())
    );
    let records = gate.records(2 * 50);
    let named = records.iter().filter(|of| of["mcp_name"] == "pets__getPet");
    assert!(named.count() >= 2 * 50, "{records:?}");
    let labels = ["operation=\"mcp\"", "backend=\"mcp:pets\""];
    assert!(gate.metric("tollgate_exchanges_total", &labels) >= 100.0);
}

#[test]
fn arguments_arrive_in_their_places_with_the_gates_own_credential() {
    let api = api();
    let further = ", credential: { inline: canary-of-the-api, header: x-api-key, scheme: \"\" }, headers: { x-team: blue }";
    let gate = started(&api, further, "    - { workload: agent }");
    let caller = Caller::begun(&gate, "agent");
    assert_eq!(
        caller.tools().0,
        [
            "pets__listPets",
            "pets__addPet",
            "pets__getPet",
            "pets__removePet"
        ]
    );
    let arguments = json!({"tags": ["a&b", "c d"], "x-trace": "t1", "x-api-key": "mine"});
    let told = used(&caller, "pets__listPets", &arguments);
    assert_eq!(told["isError"], false);
    let asked = "/v1/pets?tags=a%26b&tags=c%20d";
    assert_eq!(
        told["structuredContent"],
        json!({"asked": asked, "count": 12_345_678_901_234_567_u64})
    );
    let sent = api.seen().pop().expect("a request");
    assert_eq!(sent.path(), asked);
    assert_eq!(sent.header("x-trace"), ["t1"]);
    assert_eq!(
        sent.header("x-api-key"),
        ["canary-of-the-api"],
        "the caller's takes no place of it"
    );
    assert_eq!(sent.header("x-team"), ["blue"]);
    for of_callers in [
        "x-workload-app",
        "mcp-session-id",
        "mcp-protocol-version",
        "authorization",
    ] {
        assert!(
            sent.header(of_callers).is_empty(),
            "{of_callers}: {}",
            sent.head
        );
    }
    let told = used(
        &caller,
        "pets__addPet",
        &json!({"body": {"name": "Rex", "tag": "é"}}),
    );
    assert_eq!(
        told["structuredContent"],
        json!({"name": "Rex", "tag": "é"})
    );
    let sent = api.seen().pop().expect("a request");
    assert_eq!(sent.header("content-type"), ["application/json"]);
    assert_eq!(sent.json(), json!({"name": "Rex", "tag": "é"}));
    let told = used(&caller, "pets__getPet", &json!({"petId": "a/../b?c#d"}));
    assert_eq!(told["isError"], true, "it leads elsewhere: {told}");
    let told = used(&caller, "pets__getPet", &json!({"petId": "a/b?c#d"}));
    assert_eq!(told["content"][0]["text"], "pet at /v1/pets/a%2Fb%3Fc%23d");
    assert_eq!(
        used(&caller, "pets__removePet", &json!({"petId": 7}))["content"][0]["text"],
        "HTTP 204"
    );
    // What the API says of itself is none of the gate's refusals, but for the gate's own credential.
    let told = used(&caller, "pets__getPet", &json!({"petId": "none"}));
    assert_eq!(
        (&told["isError"], &told["content"][0]["text"]),
        (&json!(true), &json!(r#"HTTP 404: {"title":"no such pet"}"#))
    );
    assert_eq!(
        used(&caller, "pets__getPet", &json!({"petId": "moved"}))["isError"],
        true
    );
    let told = caller.request(
        "tools/call",
        &json!({"name": "pets__getPet", "arguments": {"petId": "forbidden"}}),
    );
    assert_eq!(
        told.body["error"]["data"]["code"], "upstream_credential_refused",
        "{}",
        told.body
    );
    let before = api.count();
    let told = used(&caller, "pets__getPet", &json!({"petId": 1, "admin": true}));
    assert!(
        told["content"][0]["text"]
            .as_str()
            .is_some_and(|says| says.contains("no argument `admin`")),
        "{told}"
    );
    assert_eq!(api.count(), before, "what is wrong goes nowhere");
    assert!(!gate.log().contains("canary-of-the-api"));
}

#[test]
fn filters_limits_and_both_kinds_of_clients_are_as_with_any_server() {
    let api = api();
    let routes = "    - { workload: agent, tools: { deny: \"*remove*\" }, tool_limits: [ { tools: \"*addPet\", limits: [ { requests: 1, per: 1h } ] } ] }";
    let gate = started(&api, ", tools: { deny: listPets }", routes);
    let caller = Caller::begun(&gate, "agent");
    assert_eq!(caller.tools().0, ["pets__addPet", "pets__getPet"]);
    let add = json!({"name": "pets__addPet", "arguments": {"body": {"name": "a"}}});
    let told = modern::ask(&caller, "tools/list", &json!({}));
    assert_eq!(
        told.body["result"]["tools"][0]["name"], "pets__addPet",
        "{}",
        told.body
    );
    let told = modern::ask(&caller, "tools/call", &add);
    assert_eq!(
        told.body["result"]["resultType"], "complete",
        "{}",
        told.body
    );
    assert_eq!(
        told.body["result"]["structuredContent"],
        json!({"name": "a"})
    );
    let before = api.count();
    assert_eq!(
        caller.request("tools/call", &add).status,
        429,
        "its own limit"
    );
    for hidden in [
        "pets__listPets",
        "pets__removePet",
        "pets__photo",
        "pets__nothing",
    ] {
        let told = caller.call(hidden);
        assert_eq!(
            told.body["error"]["code"], -32602,
            "{hidden}: {}",
            told.body
        );
    }
    let told = caller.request("prompts/get", &json!({"name": "pets__addPet"}));
    assert_eq!(
        told.body["error"]["code"], -32602,
        "it has tools alone: {}",
        told.body
    );
    assert_eq!(api.count(), before);
    let unlisted = gate
        .records(10)
        .into_iter()
        .filter(|of| of["mcp_name"] == "pets__(unlisted)");
    assert_eq!(unlisted.count(), 3, "made-up names fill no report");
}

#[test]
fn a_description_at_an_address_is_fetched_and_one_that_is_not_there_costs_its_own_server_alone() {
    let is_there = Arc::new(AtomicUsize::new(0));
    let there = Arc::clone(&is_there);
    let api = Upstream::start(move |_, seen| {
        let is_description = seen.head.starts_with("GET /docs/openapi.json ");
        vec![Step::Send(
            match (is_description, there.load(Ordering::SeqCst)) {
                (true, 0) => whole(503, "text/plain", b""),
                (true, _) => answer::json(200, &description("/v1")),
                (false, _) => pets(seen),
            },
        )]
    });
    let local = description(&format!("http://{}/v1", api.address));
    let servers = format!(
        "    fetched: {{ openapi: \"http://{}/docs/openapi.json\", methods: GET }}\n\
         \x20   dead: {{ openapi: \"http://{}/x\" }}\n    local: {{ openapi: pets.json, tools: {{ allow: getPet }} }}",
        api.address,
        free_address()
    );
    let files: [(&str, &[u8]); 1] = [("pets.json", local.as_bytes())];
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &files);
    let mut caller = Caller::new(&gate, "agent");
    let told = caller.request("initialize", &initialize());
    assert_eq!(
        told.body["result"]["_meta"]["tollgate/unavailable"],
        json!(["dead", "fetched"])
    );
    caller.session = told.session;
    assert_eq!(caller.tools().0, ["local__getPet"]);
    is_there.store(1, Ordering::SeqCst);
    eventually("it is asked for again", || {
        let told = caller.request("initialize", &initialize());
        told.body["result"]["_meta"]["tollgate/unavailable"] == json!(["dead"])
    });
    let caller = Caller::begun(&gate, "agent");
    assert_eq!(
        caller.tools().0,
        ["fetched__listPets", "fetched__getPet", "local__getPet"]
    );
    let told = used(&caller, "fetched__getPet", &json!({"petId": "a"}));
    assert_eq!(told["content"][0]["text"], "pet at /v1/pets/a");
    // What is known outlives a reload at which it cannot be fetched.
    is_there.store(0, Ordering::SeqCst);
    let servers = format!("{servers}\n    more: {{ openapi: pets.json }}");
    gate.reconfigure(&config(&servers, "    - { workload: agent }"));
    eventually("the reload is taken", || {
        // A session from just before the reload is not good behind it.
        let caller = Caller::begun(&gate, "agent");
        let told = caller.request("tools/list", &json!({}));
        let tools = told.body["result"]["tools"].as_array().cloned();
        let has = |name: &str| {
            let mut tools = tools.iter().flatten();
            tools.any(|tool| tool["name"] == name)
        };
        has("more__getPet") && has("fetched__getPet")
    });
}

#[test]
fn a_description_leads_to_no_other_host_than_the_one_that_it_came_from() {
    let victim = api();
    let elsewhere = format!("http://{}/v1", victim.address);
    let leads =
        Upstream::start(move |_, _| vec![Step::Send(answer::json(200, &description(&elsewhere)))]);
    let servers = format!(
        "    leads: {{ openapi: \"http://{}/openapi.json\", credential: {{ inline: canary-of-the-api }} }}",
        leads.address
    );
    let gate = Gate::start(&config(&servers, "    - { workload: agent }"), &[]);
    eventually("the log says why", || {
        gate.log().contains("write `base` where that is meant")
    });
    let told = Caller::new(&gate, "agent").request("initialize", &initialize());
    assert!(told.body["error"].is_object(), "{}", told.body);
    assert_eq!(victim.count(), 0);
    let fetch = leads.seen().pop().expect("it was fetched");
    assert!(
        !fetch.head.contains("canary"),
        "without the credential: {}",
        fetch.head
    );
}

#[test]
fn an_answer_that_is_longer_than_may_be_is_none() {
    let huge = Upstream::start(|_, _| {
        let head =
            b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\n".to_vec();
        vec![
            Step::Send(head),
            Step::Send(vec![b'x'; 17 << 20]),
            Step::Close,
        ]
    });
    let gate = started(&huge, "", "    - { workload: agent }");
    let caller = Caller::begun(&gate, "agent");
    let told = caller.request(
        "tools/call",
        &json!({"name": "pets__getPet", "arguments": {"petId": "a"}}),
    );
    assert_eq!(
        told.body["error"]["data"]["code"], "upstream_bad_response",
        "{}",
        told.body
    );
}
